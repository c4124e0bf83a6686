#include "core/base/json_reader.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/base/nearest.hpp"
#include "core/base/parse.hpp"

namespace flashsim {

using nlohmann::json;

namespace {

constexpr std::size_t kShortText = 40;

/// Writes the start of a value and stops soon after kShortText characters, however deep it nests.
void write_start(const json& value, std::string& out) {
  if (out.size() > kShortText) return;
  if (!value.is_structured()) {
    out += value.dump(-1, ' ', true, json::error_handler_t::replace);
    return;
  }
  out += value.is_array() ? '[' : '{';
  bool first = true;
  for (const auto& [key, item] : value.items()) {
    if (out.size() > kShortText) return;
    if (!first) out += ',';
    if (value.is_object()) out += json(key).dump(-1, ' ', true, json::error_handler_t::replace) + ":";
    write_start(item, out);
    first = false;
  }
  out += value.is_array() ? ']' : '}';
}

}  // namespace

Result<json> parse_json(std::string_view text, const std::string& source) {
  // The keys of each object that is open, to see one that stands twice.
  std::vector<std::set<std::string>> open;
  std::string twice;
  const auto watch = [&](int, json::parse_event_t event, json& parsed) {
    if (event == json::parse_event_t::object_start) open.emplace_back();
    if (event == json::parse_event_t::object_end) open.pop_back();
    if (event == json::parse_event_t::key && !open.back().insert(parsed.get<std::string>()).second &&
        twice.empty()) {
      twice = parsed.get<std::string>();
    }
    return true;
  };
  try {
    json parsed = json::parse(text, watch);
    if (!twice.empty()) return Error{fmt::format("{}: key {} stands twice", source, twice), ""};
    return parsed;
  } catch (const json::parse_error& problem) {
    const std::size_t at = std::min(problem.byte == 0 ? 0 : problem.byte - 1, text.size());
    const std::string_view before = text.substr(0, at);
    const auto line = 1 + std::count(before.begin(), before.end(), '\n');
    const std::size_t last_break = before.rfind('\n');
    const std::size_t column = at - (last_break == std::string_view::npos ? 0 : last_break + 1) + 1;
    return Error{fmt::format("{} isn't valid JSON: {} at line {}, column {}", source,
                             at >= text.size() ? "it ends too early," : "it goes wrong", line, column),
                 ""};
  } catch (const json::exception&) {
    return Error{fmt::format("{} isn't valid JSON: a number is out of range", source), ""};
  }
}

std::string short_json(const json& value) {
  std::string text;
  write_start(value, text);
  return text.size() <= kShortText ? text : text.substr(0, kShortText - 3) + "...";
}

JsonReader::JsonReader(const json& object, std::string path) : object_(object), path_(std::move(path)) {
  if (!object_.is_object()) {
    const std::string name = path_.ends_with(": ") ? path_.substr(0, path_.size() - 2) : path_;
    fail({fmt::format("{} must be an object, not {}", name, short_json(object_)), ""});
  }
}

bool JsonReader::has(const std::string& key) const {
  return object_.is_object() && object_.contains(key) && !object_[key].is_null();
}

std::string JsonReader::path_of(const std::string& key) const {
  return path_.empty() || path_.ends_with(": ") ? path_ + key : path_ + "." + key;
}

void JsonReader::fail(Error error) {
  if (!error_) error_ = std::move(error);
}

const json* JsonReader::find(const std::string& key) {
  asked_.insert(key);
  return !error_ && has(key) ? &object_[key] : nullptr;
}

void JsonReader::wrong_type(const std::string& key, std::string_view wanted) {
  fail({fmt::format("{} must be {}, not {}", path_of(key), wanted, short_json(object_[key])), ""});
}

std::optional<std::int64_t> JsonReader::integer(const std::string& key) {
  const json* found = find(key);
  if (found == nullptr) return std::nullopt;
  const bool fits =
      found->is_number_integer() &&
      (!found->is_number_unsigned() ||
       found->get<std::uint64_t>() <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()));
  if (!fits) {
    wrong_type(key, "a whole number");
    return std::nullopt;
  }
  return found->get<std::int64_t>();
}

std::optional<std::int64_t> JsonReader::dimension(const std::string& key) {
  const auto given = integer(key);
  if (!given) return std::nullopt;
  const auto checked = check_dimension(path_of(key), *given);
  if (!checked) {
    fail(checked.error());
    return std::nullopt;
  }
  return *checked;
}

std::optional<double> JsonReader::number(const std::string& key) {
  const json* found = find(key);
  if (found == nullptr) return std::nullopt;
  if (!found->is_number() || !std::isfinite(found->get<double>())) {
    wrong_type(key, "a finite number");
    return std::nullopt;
  }
  return found->get<double>();
}

std::optional<std::string> JsonReader::text(const std::string& key) {
  const json* found = find(key);
  if (found == nullptr) return std::nullopt;
  if (!is_one_line(*found)) {
    wrong_type(key, "a text of one line");
    return std::nullopt;
  }
  return found->get<std::string>();
}

std::optional<bool> JsonReader::flag(const std::string& key) {
  const json* found = find(key);
  if (found == nullptr) return std::nullopt;
  if (!found->is_boolean()) {
    wrong_type(key, "true or false");
    return std::nullopt;
  }
  return found->get<bool>();
}

void JsonReader::expect_schema(std::string_view schema) {
  const auto given = text("schema");
  if (given == schema) return;
  fail({given ? fmt::format("{} must be \"{}\", not \"{}\"", path_of("schema"), schema, *given)
              : fmt::format("{} is missing: it must be \"{}\"", path_of("schema"), schema),
        ""});
}

const json* JsonReader::value(const std::string& key) { return find(key); }

const json* JsonReader::object(const std::string& key) {
  const json* found = find(key);
  if (found != nullptr && !found->is_object()) {
    wrong_type(key, "an object");
    return nullptr;
  }
  return found;
}

Outcome JsonReader::finish() {
  if (error_ || !object_.is_object()) return error_;
  for (const auto& [key, ignored] : object_.items()) {
    if (asked_.contains(key)) continue;
    const std::vector<std::string> known(asked_.begin(), asked_.end());
    const std::size_t file = path_.find(": ");
    const std::string where = file == std::string::npos ? "" : path_.substr(0, file + 2);
    return Error{fmt::format("{}unknown key {}", where, path_of(key).substr(where.size())),
                 unknown_name("key", key, known).hint};
  }
  return error_;
}

Result<InputObject> input_of(const json& parsed, const std::string& source,
                             std::initializer_list<std::string_view> schemas) {
  if (!parsed.is_object() || !parsed.contains("input")) {
    if (parsed.is_object() && parsed.contains("result")) return Error{source + ": input is missing", ""};
    return InputObject{&parsed, source + ": "};
  }
  JsonReader reader(parsed, source + ": ");
  const auto schema = reader.text("schema");
  if (schema && std::find(schemas.begin(), schemas.end(), *schema) == schemas.end()) {
    reader.fail({fmt::format("{} must be \"{}\", not \"{}\"", reader.path_of("schema"),
                             fmt::join(schemas, "\" or \""), *schema),
                 ""});
  }
  reader.value("result");
  const json* input = reader.object("input");
  if (auto error = reader.finish()) return *error;
  if (input == nullptr)
    return Error{fmt::format("{} must be an object, not null", reader.path_of("input")), ""};
  return InputObject{input, reader.path_of("input")};
}

bool is_one_line(const json& value) {
  if (!value.is_string()) return false;
  const auto& text = value.get_ref<const std::string&>();
  return std::none_of(text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7F; });
}

std::optional<double> json_number(const json& value) {
  if (value.is_number()) return value.get<double>();
  if (!value.is_string()) return std::nullopt;
  const auto& text = value.get_ref<const std::string&>();
  if (text == "NaN") return std::numeric_limits<double>::quiet_NaN();
  if (text == "Infinity") return std::numeric_limits<double>::infinity();
  if (text == "-Infinity") return -std::numeric_limits<double>::infinity();
  return std::nullopt;
}

nlohmann::ordered_json number_json(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "Infinity" : "-Infinity";
  return value;
}

}  // namespace flashsim
