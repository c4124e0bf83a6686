// A model that people teach with: the attention shape that `--model` fills in (core/problem/models).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/base/result.hpp"

namespace flashsim {

struct Model {
  std::string name;   ///< "llama-3.2-1b"
  std::string title;  ///< "Llama 3.2 1B"
  std::int64_t heads = 0;
  std::int64_t kv_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t layers = 0;
  std::string source;
};

/// A built-in model by name, or a file. Errors: an unknown name and whatever is wrong in the file.
Result<Model> find_model(const std::string& name_or_path);

/// Every built-in model, by name.
std::vector<Model> built_in_models();

}  // namespace flashsim
