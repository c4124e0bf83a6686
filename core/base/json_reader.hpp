// Strict reading of JSON: wrong types, and keys that nobody asked for, are errors with their path.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "core/base/result.hpp"

namespace flashsim {

/// Parses `text`; `source` (a file's name) is what errors call it. Errors give line and column.
Result<nlohmann::json> parse_json(std::string_view text, const std::string& source);

/// Reads one JSON object key by key. The first error is kept and every later read gives nothing, so
/// a caller reads all that it wants and asks once, with finish().
class JsonReader {
 public:
  /// `path` is what errors call the object: "walk.json: problem". The object must outlive the reader.
  JsonReader(const nlohmann::json& object, std::string path);

  [[nodiscard]] bool has(const std::string& key) const;
  std::optional<std::int64_t> integer(const std::string& key);
  /// A whole number from 1 to kLargestDimension.
  std::optional<std::int64_t> dimension(const std::string& key);
  /// A finite number.
  std::optional<double> number(const std::string& key);
  std::optional<std::string> text(const std::string& key);
  std::optional<bool> flag(const std::string& key);
  /// A text that `lookup` makes a T of: Result<T>(std::string). Its error becomes the reader's.
  template <class T, class Lookup>
  std::optional<T> named(const std::string& key, Lookup lookup) {
    const auto name = text(key);
    if (!name) return std::nullopt;
    Result<T> found = lookup(*name);
    if (found) return *found;
    fail({path_of(key) + ": " + found.error().message, found.error().hint});
    return std::nullopt;
  }
  /// The key "schema" must be there and say this.
  void expect_schema(std::string_view schema);
  /// Any value; null counts as absent.
  const nlohmann::json* value(const std::string& key);
  /// An object, to be read by a reader of its own.
  const nlohmann::json* object(const std::string& key);

  /// "<path>.<key>", as errors name it.
  [[nodiscard]] std::string path_of(const std::string& key) const;
  /// Keeps `error` if it is the first.
  void fail(Error error);
  /// The first error, or a key that was never asked for.
  Outcome finish();

 private:
  const nlohmann::json* find(const std::string& key);
  void wrong_type(const std::string& key, std::string_view wanted);

  const nlohmann::json& object_;
  std::string path_;
  std::set<std::string> asked_;
  Outcome error_;
};

/// The `input` of a result that we wrote, or the whole of a JSON that is such an input itself; `path` is
/// what a reader of it calls it. Errors: a schema that is none of `schemas`, keys beside schema, input
/// and result, and a result without input.
struct InputObject {
  const nlohmann::json* object = nullptr;
  std::string path;
};
Result<InputObject> input_of(const nlohmann::json& parsed, const std::string& source,
                             std::initializer_list<std::string_view> schemas);

/// A text without line breaks or other control characters, which would reach the terminal.
bool is_one_line(const nlohmann::json& value);

/// A number as our JSON writes it: a number, or "NaN", "Infinity", "-Infinity".
std::optional<double> json_number(const nlohmann::json& value);

/// The JSON of a double: a number where it is finite, else "NaN", "Infinity" or "-Infinity".
nlohmann::ordered_json number_json(double value);

/// A JSON value in the few characters that an error message has room for.
std::string short_json(const nlohmann::json& value);

}  // namespace flashsim
