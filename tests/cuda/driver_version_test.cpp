#include "cuda/driver_version.hpp"
#include "tests/catch.hpp"

using flashsim::driver_version_in;

TEST_CASE("the driver's version is found in both spellings of the kernel module") {
  CHECK(
      driver_version_in("NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.104.05  Sat Aug 19 01:15:15 UTC "
                        "2023") == "535.104.05");
  CHECK(
      driver_version_in("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  "
                        "(root@host)") == "580.159.04");
}

TEST_CASE("what is no driver's version isn't taken for one") {
  for (const char* text : {"", "NVRM version: unknown", "x86_64 v1.2 1.2.x 7", ". 5. .5"}) {
    CAPTURE(text);
    CHECK(driver_version_in(text).empty());
  }
}
