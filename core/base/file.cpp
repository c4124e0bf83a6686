#include "core/base/file.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <system_error>

#include <fmt/format.h>
#include <unistd.h>

namespace flashsim {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

Error cannot(std::string_view what, const std::string& path, int number) {
  return {fmt::format("can't {} '{}': {}", what, path, std::strerror(number)), ""};
}

Outcome write_to(const std::string& shown, const std::string& path, std::string_view text) {
  File file(std::fopen(path.c_str(), "wb"));
  if (!file) return cannot("write", shown, errno);
  const bool written =
      std::fwrite(text.data(), 1, text.size(), file.get()) == text.size() && std::fflush(file.get()) == 0;
  const int number = errno;
  const bool closed = std::fclose(file.release()) == 0;
  if (!written || !closed) return cannot("write", shown, written ? errno : number);
  return std::nullopt;
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

}  // namespace

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
  const std::filesystem::path folder = std::filesystem::path(end_of_links(path)).parent_path();
  const std::string where = folder.empty() ? "." : folder.string();
  if (!std::filesystem::is_directory(where, ignored)) return cannot("write", path, ENOENT);
  const bool there = std::filesystem::exists(path, ignored);
  if (::access(there ? path.c_str() : where.c_str(), W_OK) != 0) return cannot("write", path, errno);
  return std::nullopt;
}

Outcome write_file(const std::string& path, std::string_view text) {
  std::error_code ignored;
  const auto status = std::filesystem::status(path, ignored);
  if (std::filesystem::is_directory(status)) return cannot("write", path, EISDIR);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    return write_to(path, path, text);
  }
  const std::string target = end_of_links(path);
  const std::string temporary = fmt::format("{}.{}.part", target, ::getpid());
  if (auto error = write_to(path, temporary, text)) {
    std::filesystem::remove(temporary, ignored);
    return error;
  }
  if (std::filesystem::exists(status)) {
    std::filesystem::permissions(temporary, status.permissions(), ignored);
  }
  if (std::rename(temporary.c_str(), target.c_str()) != 0) {
    const int number = errno;
    std::filesystem::remove(temporary, ignored);
    return cannot("write", path, number);
  }
  return std::nullopt;
}

}  // namespace flashsim
