#include "core/problem/model.hpp"

#include <string>

#include <nlohmann/json.hpp>

#include "core/problem/library.hpp"
#include "tests/catch.hpp"
#include "tests/error_text.hpp"
#include "tests/temporary_folder.hpp"

namespace flashsim {
namespace {

using nlohmann::json;
using test::hint_of;
using test::kNoError;
using test::message_of;
using test::TemporaryFolder;

json model_file() { return json::parse(find_data("model", "models", "llama-3.2-1b").value().text); }

std::string message_for(const json& file) {
  const TemporaryFolder folder;
  std::string message = message_of(find_model(folder.file("m.json", file.dump())));
  const std::string place = folder / "";
  for (std::size_t at = 0; (at = message.find(place)) != std::string::npos;) message.erase(at, place.size());
  return message;
}

std::string message_with(const std::string& key, const json& value) {
  json file = model_file();
  file[key] = value;
  return message_for(file);
}

TEST_CASE("every built-in model reads, under the name of its file, with a title and a source") {
  const auto models = built_in_models();
  const auto names = built_in_names("models");
  REQUIRE(models.size() == names.size());
  REQUIRE(models.size() >= 15);
  for (std::size_t i = 0; i < models.size(); ++i) {
    CAPTURE(names[i]);
    CHECK(models[i].name == names[i]);
    CHECK(message_of(find_model(models[i].name)) == kNoError);
    CHECK_FALSE(models[i].title.empty());
    CHECK_FALSE(models[i].source.empty());
    CHECK(models[i].heads % models[i].kv_heads == 0);
  }
}

TEST_CASE("the models have the shapes of their released configurations") {
  struct Row {
    const char* name;
    std::int64_t heads, kv_heads, head_dim, layers;
  };
  for (const Row& row : {Row{"gpt2", 12, 12, 64, 12}, Row{"gpt2-medium", 16, 16, 64, 24},
                         Row{"bert-large", 16, 16, 64, 24}, Row{"llama-2-7b", 32, 32, 128, 32},
                         Row{"llama-3-8b", 32, 8, 128, 32}, Row{"llama-3-70b", 64, 8, 128, 80},
                         Row{"llama-3.2-1b", 32, 8, 64, 16}, Row{"mistral-7b", 32, 8, 128, 32},
                         Row{"gemma-2b", 8, 1, 256, 18}, Row{"qwen2.5-7b", 28, 4, 128, 28}}) {
    CAPTURE(row.name);
    const auto model = find_model(row.name);
    REQUIRE(message_of(model) == kNoError);
    CHECK(model->heads == row.heads);
    CHECK(model->kv_heads == row.kv_heads);
    CHECK(model->head_dim == row.head_dim);
    CHECK(model->layers == row.layers);
  }
}

TEST_CASE("an unknown model is told with the nearest name") {
  CHECK(message_of(find_model("gpt-2")) == "unknown model 'gpt-2'");
  CHECK(hint_of(find_model("gpt-2")).starts_with("did you mean 'gpt2'? known: "));
}

TEST_CASE("a model file with an unknown, missing or wrong key is refused") {
  CHECK(message_for(model_file()) == kNoError);
  CHECK(message_with("head", 3) == "'m.json': unknown key head");
  for (const char* key : {"heads", "kv_heads", "head_dim", "layers"}) {
    CHECK(message_with(key, nullptr) == std::string("'m.json': ") + key + " is missing");
    CHECK(message_with(key, 0) ==
          std::string("'m.json': ") + key + " must be a whole number from 1 to 1099511627776, not 0");
  }
  CHECK(message_with("kv_heads", 5) == "'m.json': 32 query heads can't share 5 key/value heads evenly");
  CHECK(message_with("schema", "flashsim.machine/1") ==
        "'m.json': schema must be \"flashsim.model/1\", not \"flashsim.machine/1\"");
}

}  // namespace
}  // namespace flashsim
