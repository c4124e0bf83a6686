#include "core/base/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cassert>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include <fmt/format.h>

namespace flashsim {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

Error cannot(std::string_view act, const std::string& path, int number) {
  return file_error(act, path, std::strerror(number));
}

/// The path that `path` leads to. A link keeps pointing where it did: the file behind it is the one that
/// is written, whether it is there yet or not.
std::string end_of_links(const std::string& path) {
  constexpr int kMostLinks = 40;
  std::error_code ignored;
  std::filesystem::path target = path;
  for (int i = 0; i < kMostLinks; ++i) {
    if (!std::filesystem::is_symlink(std::filesystem::symlink_status(target, ignored))) break;
    // An absolute link replaces the folder that it stands in.
    target = target.parent_path() / std::filesystem::read_symlink(target, ignored);
  }
  return target.string();
}

std::string folder_of(const std::string& path) {
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  return folder.empty() ? "." : folder.string();
}

/// What `file` is called while it is open, for linkat.
std::string open_name(const Descriptor& file) { return fmt::format("/proc/self/fd/{}", file.number()); }

}  // namespace

Error file_error(std::string_view act, const std::string& path, std::string_view why, std::string hint) {
  return {fmt::format("can't {} '{}': {}", act, path, why), std::move(hint)};
}

Result<std::string> read_file(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return cannot("read", path, EISDIR);
  const File file(std::fopen(path.c_str(), "rb"));
  if (!file) return cannot("read", path, errno);
  std::string text;
  char buffer[65536];
  for (std::size_t got = 0; (got = std::fread(buffer, 1, sizeof buffer, file.get())) > 0;) {
    text.append(buffer, got);
  }
  if (std::ferror(file.get()) != 0) return cannot("read", path, errno);
  return text;
}

Outcome check_writable(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) return cannot("write", path, EISDIR);
  const std::string where = folder_of(end_of_links(path));
  if (!std::filesystem::is_directory(where, ignored)) return cannot("write", path, ENOENT);
  const bool there = std::filesystem::exists(path, ignored);
  if (::access(there ? path.c_str() : where.c_str(), W_OK) != 0) return cannot("write", path, errno);
  return std::nullopt;
}

Outcome check_folder_writable(const std::string& path) {
  constexpr std::string_view kAct = "write into";
  std::error_code ignored;
  std::filesystem::path folder = path;
  // "out/" is "out".
  if (!folder.has_filename()) folder = folder.parent_path();
  const bool there = std::filesystem::exists(std::filesystem::symlink_status(folder, ignored));
  const std::string where = there ? folder.string() : folder_of(folder.string());
  if (path.empty() || !std::filesystem::exists(where, ignored)) return cannot(kAct, path, ENOENT);
  if (!std::filesystem::is_directory(where, ignored)) return cannot(kAct, path, ENOTDIR);
  if (::access(where.c_str(), W_OK | X_OK) != 0) return cannot(kAct, path, errno);
  return std::nullopt;
}

Outcome make_folder(const std::string& path) {
  constexpr mode_t kAsTheUserWants = 0777;
  if (::mkdir(path.c_str(), kAsTheUserWants) == 0) return std::nullopt;
  const int number = errno;
  std::error_code ignored;
  if (number == EEXIST && std::filesystem::is_directory(path, ignored)) return std::nullopt;
  return cannot("make", path, number);
}

Outcome write_file(const std::string& path, std::string_view text) {
  auto file = WholeFile::open(path);
  if (!file) return file.error();
  if (auto error = file->write(std::as_bytes(std::span(text)))) return error;
  return file->commit();
}

Descriptor::~Descriptor() { reset(-1); }

void Descriptor::reset(int number) {
  if (number_ >= 0) ::close(number_);
  number_ = number;
}

int Descriptor::release() { return std::exchange(number_, -1); }

Result<PartwiseFile> PartwiseFile::open(const std::string& path) {
  // Opening a pipe would otherwise wait for its other end.
  PartwiseFile file(path, ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status {};
  if (file.file_.number() < 0 || ::fstat(file.file_.number(), &status) != 0) {
    return cannot("read", path, errno);
  }
  if (S_ISDIR(status.st_mode)) return cannot("read", path, EISDIR);
  if (!S_ISREG(status.st_mode)) return file_error("read", path, "it isn't a regular file");
  file.size_ = status.st_size;
  return file;
}

Outcome PartwiseFile::read(std::int64_t offset, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t got = ::pread(file_.number(), bytes.data(), bytes.size(), offset);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return cannot("read", path_, errno);
    if (got == 0) return file_error("read", path_, "it ended while it was read");
    offset += got;
    bytes = bytes.subspan(static_cast<std::size_t>(got));
  }
  return std::nullopt;
}

Result<WholeFile> WholeFile::open(const std::string& path) {
  if (path.empty()) return cannot("write", path, ENOENT);
  struct stat status {};
  const bool there = ::stat(path.c_str(), &status) == 0;
  if (there && S_ISDIR(status.st_mode)) return cannot("write", path, EISDIR);
  WholeFile file(path);
  if (there && !S_ISREG(status.st_mode)) {
    file.file_.reset(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (file.file_.number() < 0) return cannot("write", path, errno);
    return file;
  }
  file.goal_ = end_of_links(path);
  if (!file.open_nameless() && !file.open_temporary()) return cannot("write", path, errno);
  constexpr mode_t kPermissions = 07777;
  if (there) ::fchmod(file.file_.number(), status.st_mode & kPermissions);
  return file;
}

bool WholeFile::open_nameless() {
#ifdef O_TMPFILE
  file_.reset(::open(folder_of(goal_).c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666));
  if (file_.number() < 0) return false;
  // Without /proc it could never be named.
  if (::access(open_name(file_).c_str(), F_OK) == 0) return true;
  file_.reset(-1);
#endif
  return false;
}

bool WholeFile::open_temporary() {
  for (int attempt = 0;; ++attempt) {
    const std::string name = temporary_name(attempt);
    file_.reset(::open(name.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666));
    if (file_.number() >= 0) {
      temporary_ = name;
      return true;
    }
    if (errno != EEXIST) return false;
  }
}

std::string WholeFile::temporary_name(int attempt) const {
  return fmt::format("{}.{}-{}.part", goal_, ::getpid(), attempt);
}

WholeFile::WholeFile(WholeFile&& other) noexcept
    : path_(std::move(other.path_)),
      goal_(std::move(other.goal_)),
      temporary_(std::exchange(other.temporary_, {})),
      file_(std::move(other.file_)) {}

WholeFile::~WholeFile() {
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Outcome WholeFile::write(std::span<const std::byte> bytes) {
  assert(file_.number() >= 0);
  while (!bytes.empty()) {
    const ssize_t put = ::write(file_.number(), bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) return cannot("write", path_, errno);
    bytes = bytes.subspan(static_cast<std::size_t>(put));
  }
  return std::nullopt;
}

Outcome WholeFile::commit() {
  assert(file_.number() >= 0);
  if (!goal_.empty() && temporary_.empty()) {
    // Where there is no such file yet its name is given at once. Otherwise only a rename replaces it.
    std::string name = goal_;
    for (int attempt = 0;
         ::linkat(AT_FDCWD, open_name(file_).c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) != 0;
         ++attempt) {
      if (errno != EEXIST) return cannot("write", path_, errno);
      name = temporary_name(attempt);
    }
    if (name != goal_) temporary_ = name;
  }
  if (::close(file_.release()) != 0) return cannot("write", path_, errno);
  if (temporary_.empty()) return std::nullopt;
  if (std::rename(temporary_.c_str(), goal_.c_str()) != 0) return cannot("write", path_, errno);
  temporary_.clear();
  return std::nullopt;
}

}  // namespace flashsim
