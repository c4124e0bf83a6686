#include "core/problem/model.hpp"

#include <cassert>

#include <fmt/format.h>

#include "core/base/json_reader.hpp"
#include "core/problem/library.hpp"

namespace flashsim {
namespace {

constexpr const char* kFolder = "models";
constexpr const char* kSchema = "flashsim.model/1";

Result<Model> read_model(const NamedText& data) {
  const auto parsed = parse_json(data.text, data.source);
  if (!parsed) return parsed.error();
  JsonReader reader(*parsed, data.source + ": ");
  reader.expect_schema(kSchema);
  const auto required = [&](const std::string& key) {
    if (!reader.has(key)) reader.fail({fmt::format("{} is missing", reader.path_of(key)), ""});
    return reader.dimension(key).value_or(1);
  };
  Model model;
  model.name = reader.text("name").value_or("");
  model.title = reader.text("title").value_or(model.name);
  model.heads = required("heads");
  model.kv_heads = required("kv_heads");
  model.head_dim = required("head_dim");
  model.layers = required("layers");
  model.source = reader.text("source").value_or("");
  if (model.heads % model.kv_heads != 0) {
    reader.fail({fmt::format("{}: {} query heads can't share {} key/value heads evenly", data.source,
                             model.heads, model.kv_heads),
                 ""});
  }
  if (auto error = reader.finish()) return *error;
  return model;
}

}  // namespace

Result<Model> find_model(const std::string& name_or_path) {
  const auto data = find_data("model", kFolder, name_or_path);
  if (!data) return data.error();
  return read_model(*data);
}

std::vector<Model> built_in_models() {
  std::vector<Model> models;
  for (const std::string& name : built_in_names(kFolder)) {
    auto model = read_model(find_data("model", kFolder, name).value());
    assert(model.ok());
    models.push_back(std::move(model).value());
  }
  return models;
}

}  // namespace flashsim
