#include "core/base/file.hpp"

#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/catch.hpp"
#include "tests/error_text.hpp"
#include "tests/temporary_folder.hpp"

namespace flashsim {
namespace {

namespace fs = std::filesystem;
using test::message_of;
using test::TemporaryFolder;

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text)); }

/// Whether the folder's file system has files without a name.
bool has_nameless_files(const TemporaryFolder& folder) {
  const int file = ::open(folder.path().c_str(), O_TMPFILE | O_WRONLY, 0600);
  if (file >= 0) ::close(file);
  return file >= 0;
}

/// Makes this process one whose file systems have no nameless files. False where that can't be done.
bool forbid_nameless_files() {
  // Of O_TMPFILE, the bit that isn't O_DIRECTORY.
  constexpr unsigned kNameless = O_TMPFILE & ~O_DIRECTORY;
  std::array<sock_filter, 6> filter{{
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_openat, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, kNameless, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  }};
  const sock_fprog program{filter.size(), filter.data()};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

/// What became of a process that does `act` and, if it comes to that, exits with the status it gives.
template <class Act>
int status_of(Act act) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(act());
  int status = -1;
  return ::waitpid(child, &status, 0) == child ? status : -1;
}

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

TEST_CASE("what is written by parts appears when it is complete") {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.txt", "old");
  auto file = WholeFile::open(path);
  REQUIRE(message_of(file) == test::kNoError);
  CHECK(message_of(file->write(bytes_of("new "))) == test::kNoError);
  CHECK(message_of(file->write(bytes_of("text"))) == test::kNoError);
  CHECK(read_file(path).value() == "old");
  CHECK(message_of(file->commit()) == test::kNoError);
  CHECK(read_file(path).value() == "new text");
  CHECK(folder.names() == std::vector<std::string>{"a.txt"});
}

TEST_CASE("what isn't completed leaves nothing behind") {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.txt", "old");
  for (const std::string& goal : {path, folder / "b.txt"}) {
    auto file = WholeFile::open(goal);
    REQUIRE(message_of(file) == test::kNoError);
    WholeFile moved = std::move(*file);
    CHECK(message_of(moved.write(bytes_of("new"))) == test::kNoError);
  }
  CHECK(read_file(path).value() == "old");
  CHECK(folder.names() == std::vector<std::string>{"a.txt"});
}

TEST_CASE("two writers of one file don't meet: the last to complete it wins") {
  const TemporaryFolder folder;
  const std::string path = folder / "a.txt";
  auto first = WholeFile::open(path);
  auto second = WholeFile::open(path);
  CHECK(message_of(first->write(bytes_of("first"))) == test::kNoError);
  CHECK(message_of(second->write(bytes_of("second"))) == test::kNoError);
  CHECK(message_of(second->commit()) == test::kNoError);
  CHECK(message_of(first->commit()) == test::kNoError);
  CHECK(read_file(path).value() == "first");
  CHECK(folder.names() == std::vector<std::string>{"a.txt"});
}

TEST_CASE("a writer that is killed in the middle leaves the old file and nothing else") {
  const TemporaryFolder folder;
  const std::string old = folder.file("a.txt", "old");
  if (!has_nameless_files(folder)) {
    WARN("skipped: no nameless files in " << folder.path());
    return;
  }
  for (const std::string& path : {old, folder / "b.txt"}) {
    const int status = status_of([&] {
      auto file = WholeFile::open(path);
      if (!file || file->write(bytes_of(std::string(1 << 20, 'x')))) return 1;
      ::raise(SIGKILL);
      return 2;
    });
    REQUIRE(WIFSIGNALED(status));
    CHECK(WTERMSIG(status) == SIGKILL);
    CHECK(read_file(old).value() == "old");
    CHECK(folder.names() == std::vector<std::string>{"a.txt"});
  }
}

TEST_CASE("where files must have a name a temporary one is renamed, and removed when it isn't completed") {
  const TemporaryFolder folder;
  const std::string path = folder.file("a.txt", "old");
  fs::permissions(path, fs::perms::owner_read | fs::perms::owner_write);
  const int status = status_of([&] {
    if (!forbid_nameless_files()) return 100;
    if (has_nameless_files(folder)) return 1;
    {
      const auto dropped = WholeFile::open(path);
      if (!dropped || folder.names().size() != 2) return 2;
      const auto other = WholeFile::open(path);
      if (!other || folder.names().size() != 3) return 3;
    }
    if (folder.names() != std::vector<std::string>{"a.txt"} || read_file(path).value() != "old") return 4;
    if (write_file(path, "new") || read_file(path).value() != "new") return 5;
    if (write_file(folder / "b.txt", "other")) return 6;
    if (message_of(write_file(folder / "c/d.txt", "")) !=
        "can't write '" + (folder / "c/d.txt") + "': No such file or directory") {
      return 7;
    }
    return 0;
  });
  REQUIRE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 100) {
    WARN("skipped: seccomp can't be had");
    return;
  }
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(folder.names() == std::vector<std::string>{"a.txt", "b.txt"});
  CHECK(fs::status(path).permissions() == (fs::perms::owner_read | fs::perms::owner_write));
}

TEST_CASE("a new file has the permissions that the user gives to files") {
  const TemporaryFolder folder;
  const mode_t mask = ::umask(027);
  CHECK(message_of(write_file(folder / "a.txt", "text")) == test::kNoError);
  ::umask(mask);
  CHECK(fs::status(folder / "a.txt").permissions() ==
        (fs::perms::owner_read | fs::perms::owner_write | fs::perms::group_read));
}

TEST_CASE("no path is no file") {
  CHECK(message_of(write_file("", "text")) == "can't write '': No such file or directory");
  CHECK(message_of(check_folder_writable("")) == "can't write into '': No such file or directory");
  CHECK(message_of(make_folder("")) == "can't make '': No such file or directory");
}

TEST_CASE("a folder is made once, in one that is there") {
  const TemporaryFolder folder;
  const std::string path = folder / "sub";
  CHECK(message_of(check_folder_writable(path)) == test::kNoError);
  CHECK(message_of(check_folder_writable(path + "/")) == test::kNoError);
  CHECK(folder.names().empty());
  CHECK(message_of(make_folder(path + "/")) == test::kNoError);
  CHECK(message_of(make_folder(path)) == test::kNoError);
  CHECK(message_of(check_folder_writable(path)) == test::kNoError);
  CHECK(message_of(check_folder_writable(".")) == test::kNoError);
  CHECK(folder.names() == std::vector<std::string>{"sub"});
}

TEST_CASE("what keeps a folder from being written into is told beforehand") {
  const TemporaryFolder folder;
  const std::string deep = folder / "missing/sub";
  CHECK(message_of(check_folder_writable(deep)) ==
        "can't write into '" + deep + "': No such file or directory");
  CHECK(message_of(make_folder(deep)) == "can't make '" + deep + "': No such file or directory");
  const std::string file = folder.file("a.txt", "text");
  CHECK(message_of(check_folder_writable(file)) == "can't write into '" + file + "': Not a directory");
  CHECK(message_of(make_folder(file)) == "can't make '" + file + "': File exists");
  CHECK(message_of(check_folder_writable(file + "/sub")) ==
        "can't write into '" + file + "/sub': Not a directory");
  fs::create_symlink("nowhere", folder / "link");
  CHECK(message_of(check_folder_writable(folder / "link")) ==
        "can't write into '" + (folder / "link") + "': No such file or directory");
  const std::string locked = folder / "locked";
  fs::create_directory(locked);
  fs::permissions(locked, fs::perms::owner_read | fs::perms::owner_exec);
  if (::geteuid() == 0) return;  // Root may write anywhere.
  CHECK(message_of(check_folder_writable(locked)) == "can't write into '" + locked + "': Permission denied");
  CHECK(message_of(make_folder(locked + "/sub")) == "can't make '" + locked + "/sub': Permission denied");
}

}  // namespace
}  // namespace flashsim
