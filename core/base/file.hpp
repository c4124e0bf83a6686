// Files, read whole or by parts, and written whole or not at all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/base/result.hpp"

namespace flashsim {

/// The error of an act ("read", "write") on a file: can't read 'x.npy': <why>.
Error file_error(std::string_view act, const std::string& path, std::string_view why, std::string hint = "");

/// The bytes of a file. Errors: it can't be opened, is a folder, can't be read.
Result<std::string> read_file(const std::string& path);

/// What would keep write_file from writing to `path`, as far as it can be told beforehand: a missing
/// folder, a folder in its place, no permission. For long work whose result goes there.
Outcome check_writable(const std::string& path);

/// What would keep files from being written into the folder `path`, as far as it can be told beforehand.
/// It may be missing where make_folder could make it.
Outcome check_folder_writable(const std::string& path);

/// Makes a folder in one that is there. Where it is there already, nothing is done.
Outcome make_folder(const std::string& path);

/// Writes `text` to `path` as WholeFile does.
Outcome write_file(const std::string& path, std::string_view text);

/// Owns an open file of the operating system, −1 for none.
class Descriptor {
 public:
  explicit Descriptor(int number = -1) : number_(number) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept : number_(other.release()) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  Descriptor& operator=(Descriptor&&) = delete;

  [[nodiscard]] int number() const { return number_; }
  /// Closes what it had.
  void reset(int number);
  /// Gives up the file, open.
  int release();

 private:
  int number_;
};

/// A regular file that is read by parts.
class PartwiseFile {
 public:
  /// Errors: it can't be opened, is a folder, is no regular file (a pipe has no size).
  static Result<PartwiseFile> open(const std::string& path);

  /// Bytes, when it was opened.
  [[nodiscard]] std::int64_t size() const { return size_; }
  /// Fills `bytes` with what stands at `offset`. Errors: it can't be read, ends before that.
  [[nodiscard]] Outcome read(std::int64_t offset, std::span<std::byte> bytes) const;

 private:
  PartwiseFile(const std::string& path, int number) : path_(path), file_(number) {}

  std::string path_;
  Descriptor file_;
  std::int64_t size_ = 0;
};

/// A file that is written by parts and appears whole: a reader sees the old file or the new one, never a
/// part. Until it is complete it has no name, so that nothing of it is left even where the process is
/// killed; file systems that don't offer this get a temporary file beside the goal that is renamed. What
/// isn't a regular file (a pipe, /dev/null) is written to directly. Permissions of a file that is replaced
/// are kept, and a link stays: the file behind it is the one that is written.
class WholeFile {
 public:
  /// Errors: a missing folder, a folder in its place, no permission.
  static Result<WholeFile> open(const std::string& path);
  /// Without commit() nothing has happened.
  ~WholeFile();
  WholeFile(WholeFile&& other) noexcept;
  WholeFile(const WholeFile&) = delete;
  WholeFile& operator=(const WholeFile&) = delete;
  WholeFile& operator=(WholeFile&&) = delete;

  /// Appends. Errors: a full disk and its like.
  [[nodiscard]] Outcome write(std::span<const std::byte> bytes);
  /// Puts the file at its path. Once, and last.
  [[nodiscard]] Outcome commit();

 private:
  explicit WholeFile(const std::string& path) : path_(path) {}

  bool open_nameless();
  bool open_temporary();
  /// A name beside the goal, another one for each `attempt`.
  [[nodiscard]] std::string temporary_name(int attempt) const;

  std::string path_;       // as the caller knows it
  std::string goal_;       // where that leads to, or empty where it is written to directly
  std::string temporary_;  // the name that is to vanish, or empty
  Descriptor file_;
};

}  // namespace flashsim
