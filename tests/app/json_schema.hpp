// JSON held against the schemas in docs/schema.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace flashsim::test {

/// The first violations, one a line; empty where the document follows docs/schema/<name>.schema.json.
std::string schema_violations(const nlohmann::json& document, const std::string& name);

}  // namespace flashsim::test
