#include "tests/app/json_schema.hpp"

#include <valijson/adapters/nlohmann_json_adapter.hpp>
#include <valijson/schema.hpp>
#include <valijson/schema_parser.hpp>
#include <valijson/validation_results.hpp>
#include <valijson/validator.hpp>

#include "core/base/file.hpp"

namespace flashsim::test {

std::string schema_violations(const nlohmann::json& document, const std::string& name) {
  const auto file = read_file(FLASHSIM_SOURCE_DIR "/docs/schema/" + name + ".schema.json");
  if (!file) return file.error().message;
  const auto text = nlohmann::json::parse(*file);
  valijson::Schema schema;
  valijson::SchemaParser(valijson::SchemaParser::kDraft7)
      .populateSchema(valijson::adapters::NlohmannJsonAdapter(text), schema);
  valijson::Validator validator;
  valijson::ValidationResults results;
  if (validator.validate(schema, valijson::adapters::NlohmannJsonAdapter(document), &results)) return {};
  std::string violations;
  for (valijson::ValidationResults::Error error; results.popError(error);) {
    for (const std::string& part : error.context) violations += part;
    violations += ": " + error.description + "\n";
  }
  return violations;
}

}  // namespace flashsim::test
