#include "core/base/file.hpp"

#include <filesystem>
#include <string>
#include <vector>

#include "tests/catch.hpp"
#include "tests/error_text.hpp"
#include "tests/temporary_folder.hpp"

namespace flashsim {
namespace {

namespace fs = std::filesystem;
using test::message_of;
using test::TemporaryFolder;

TEST_CASE("a file reads back byte for byte as it was written") {
  const TemporaryFolder folder;
  std::string text(200'000, 'x');
  text += std::string("\0\r\n\xff", 4);
  for (const std::string& written : {text, std::string()}) {
    CHECK(message_of(write_file(folder / "a.bin", written)) == test::kNoError);
    CHECK(read_file(folder / "a.bin").value() == written);
  }
  CHECK(folder.names() == std::vector<std::string>{"a.bin"});
}

TEST_CASE("an existing file is replaced whole and keeps its permissions") {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.txt", "a long old text");
  const auto only_owner = fs::perms::owner_read | fs::perms::owner_write;
  fs::permissions(path, only_owner);
  CHECK(message_of(write_file(path, "new")) == test::kNoError);
  CHECK(read_file(path).value() == "new");
  CHECK(fs::status(path).permissions() == only_owner);
  CHECK(folder.names() == std::vector<std::string>{"a.txt"});
}

TEST_CASE("a reader who holds the old file open keeps the old text") {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.txt", "old");
  fs::create_hard_link(path, folder / "held");
  CHECK(message_of(write_file(path, "new")) == test::kNoError);
  CHECK(read_file(folder / "held").value() == "old");
}

TEST_CASE("a link is followed: the file behind it is replaced and the link stays") {
  const TemporaryFolder folder;
  const std::string target = folder.file("target.txt", "old");
  fs::create_symlink("target.txt", folder / "link");
  CHECK(message_of(write_file(folder / "link", "new")) == test::kNoError);
  CHECK(fs::is_symlink(folder / "link"));
  CHECK(read_file(target).value() == "new");
  CHECK(folder.names() == std::vector<std::string>{"link", "target.txt"});
}

TEST_CASE("a link to a file that isn't there yet stays, and the file is made") {
  const TemporaryFolder folder;
  fs::create_symlink("target.txt", folder / "link");
  CHECK(message_of(write_file(folder / "link", "new")) == test::kNoError);
  CHECK(fs::is_symlink(folder / "link"));
  const auto made = read_file(folder / "target.txt");
  CHECK(message_of(made) == test::kNoError);
}

TEST_CASE("a missing folder is an error, and nothing is made") {
  const TemporaryFolder folder;
  const std::string path = folder / "missing/a.txt";
  CHECK(message_of(write_file(path, "text")) == "can't write '" + path + "': No such file or directory");
  CHECK(message_of(read_file(path)) == "can't read '" + path + "': No such file or directory");
  CHECK(folder.names().empty());
}

TEST_CASE("a folder is refused as a file") {
  const TemporaryFolder folder;
  const std::string path = folder / "sub";
  fs::create_directory(path);
  CHECK(message_of(write_file(path, "text")) == "can't write '" + path + "': Is a directory");
  CHECK(message_of(read_file(path)) == "can't read '" + path + "': Is a directory");
  CHECK(folder.names() == std::vector<std::string>{"sub"});
}

TEST_CASE("a full disk is an error, not half a file") {
  CHECK(message_of(write_file("/dev/full", "text")) == "can't write '/dev/full': No space left on device");
}

TEST_CASE("what isn't a regular file is written to directly") {
  CHECK(message_of(write_file("/dev/null", "text")) == test::kNoError);
  CHECK(fs::is_character_file("/dev/null"));
}

}  // namespace
}  // namespace flashsim
