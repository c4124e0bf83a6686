// The commands that need a GPU, where there is none or nothing of them is asked of it yet.
#include <string>

#include <nlohmann/json.hpp>

#include "core/problem/kernel.hpp"
#include "tests/app/process.hpp"
#include "tests/app/refusal.hpp"
#include "tests/catch.hpp"

namespace {

using flashsim::test::refusal;
using flashsim::test::run_flashsim;
using flashsim::test::TemporaryFolder;
using nlohmann::json;

/// A build with CUDA, on a machine with a GPU, has nothing to refuse.
bool has_gpu() {
  const auto listed = run_flashsim("list devices --format json");
  return !json::parse(listed.out)["result"]["devices"].empty();
}

}  // namespace

TEST_CASE("without a GPU each command that needs one says so in one line, and leaves no file") {
  if (has_gpu()) return;
  for (const char* arguments :
       {"measure", "measure --kernel all --seq 64", "measure --out m.json --format json", "calibrate",
        "calibrate --out gpu.json", "run --device cuda", "run three-token --device cuda --kernel 01",
        "run --device cuda --save here", "measure --kernel 05 --splits 3",
        "measure --pass backward --deterministic", "run --device cuda --backward --deterministic",
        "run --device cuda --algo split-kv --splits auto"}) {
    const TemporaryFolder folder;
    CHECK(refusal(arguments, folder).size() > std::string("error: \n").size());
  }
}

TEST_CASE("what is wrong with a measurement is said before any GPU is asked") {
  CHECK(refusal("measure --kernel 03 --dtype fp16") ==
        "error: 03_flash_fp32 takes fp32, not fp16\nhint: taken by 01_standard, 02_standard_cublas, "
        "04_flash_tensor, 05_flash_split_kv\n");
  CHECK(refusal("measure --kernel 07").starts_with("error: unknown kernel '07'\nhint: known: 01_standard"));
  CHECK(refusal("measure --algo flash1") ==
        "error: no kernel realises flash1\nhint: there are kernels of standard, flash2, split-kv (flashsim "
        "list kernels)\n");
  CHECK(refusal("measure --kernel 01 --algo flash2") ==
        "error: 01_standard realises standard, and --algo is flash2\nhint: leave --algo out\n");
  CHECK(refusal("measure --cold --warm") == "error: give --cold or --warm, not both\n");
  CHECK(refusal("measure --repeats 0") ==
        "error: --repeats must be a whole number from 1 to 10000, not '0'\n");
  CHECK(refusal("measure --counters all").starts_with("error: unknown counter source 'all'\n"));
  CHECK(refusal("measure --kernel all --head-dim 257")
            .starts_with("error: 01_standard takes head dimensions up to 256, not 257\n"));
  CHECK(refusal("measure --kernel 06 --dtype fp32") ==
        "error: 06_flash_backward takes fp16, bf16, not fp32\nhint: no kernel takes it; run it on the CPU\n");
  CHECK(refusal("measure --kernel 06 --head-dim 256")
            .starts_with("error: 06_flash_backward takes head dimensions up to 128, not 256\n"));
  CHECK(refusal("measure --kernel 06 --pass forward") ==
        "error: 06_flash_backward goes backward, and --pass is forward\nhint: leave --pass out\n");
  CHECK(refusal("measure --kernel 05 --splits 0")
            .starts_with("error: --splits must be a whole number from 1 to "));
  CHECK(refusal("measure --splits 4") ==
        "error: --splits means nothing for flash2, which doesn't split the keys\nhint: --algo split-kv\n");
  CHECK(refusal("measure --kernel 05 --deterministic") ==
        "error: --deterministic is a choice of flash2, and the algorithm is split-kv\n");
  CHECK(refusal("measure --kernel 04 --do do.npy") ==
        "error: --do is 'do.npy', and 04_flash_tensor goes forward\nhint: --pass backward\n");
  CHECK(refusal("measure --kernel 05 --fault finite-mask").starts_with("error: unknown option '--fault'\n"));
  CHECK(refusal("measure --tile-q 64").starts_with("error: unknown option '--tile-q'\n"));
  CHECK(refusal("measure --gpu nowhere.json").starts_with("error: "));
  CHECK(refusal("calibrate --seq 5") == "error: unknown option '--seq'\nhint: calibrate --help lists them\n");
}

TEST_CASE("what is wrong with a run on a device is said before it is asked") {
  CHECK(refusal("run --kernel 03") ==
        "error: --kernel is 03_flash_fp32, and the run is on the CPU\nhint: --device cuda\n");
  CHECK(refusal("run --device cuda --tile-q 64") ==
        "error: --tile-q is 64, and 03_flash_fp32 works on tiles of 128×64\nhint: leave --tile-q out\n");
  CHECK(refusal("run --device gpu").starts_with("error: unknown device 'gpu'\n"));
  CHECK(refusal("run --device cuda --kernel 06") ==
        "error: 06_flash_backward makes gradients, and --backward isn't given\nhint: add --backward\n");
  CHECK(refusal("run --device cuda --backward --kernel 05") ==
        "error: --kernel is 05_flash_split_kv, and gradients are made of the O and L of "
        "04_flash_tensor\nhint: leave --kernel out\n");
  CHECK(refusal("run --device cuda --backward --algo standard") ==
        "error: no kernel realises standard backward\nhint: there are kernels of flash2 backward (flashsim "
        "list kernels)\n");
  CHECK(refusal("run --device cuda --kernel 05 --fault finite-mask --dtype fp16") ==
        "error: 05_flash_split_kv isn't built with a part switched off or broken\nhint: taken by "
        "04_flash_tensor\n");
  CHECK(refusal("run --backward --deterministic")
            .starts_with("error: --deterministic is a choice of kernels, and the run is on the CPU"));
}

TEST_CASE("the kernels are listed without any GPU") {
  const json kernels = json::parse(run_flashsim("list kernels --format json").out)["result"]["kernels"];
  REQUIRE(kernels.size() == flashsim::kKernels.size());
  CHECK(kernels[2]["name"] == "03_flash_fp32");
  CHECK(kernels[2]["dtypes"] == json::array({"fp32"}));
  CHECK(kernels[1]["counts_itself"] == false);
  CHECK(kernels[4]["algorithm"] == "split-kv");
  CHECK(kernels[4]["pass"] == "forward");
  CHECK(kernels[5]["pass"] == "backward");
  CHECK(run_flashsim("list kernels").out.find("fp16, bf16, fp32") != std::string::npos);
}
