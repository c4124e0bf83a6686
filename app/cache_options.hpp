// The options of `flashsim cache`, and what they come to.
#pragma once

#include <optional>
#include <string>

#include "app/options.hpp"
#include "core/base/result.hpp"
#include "core/study/cache.hpp"

namespace CLI {
class App;
}

namespace flashsim {

/// What only a cache has; the rest are options of an account.
struct CacheOptions {
  std::optional<std::string> layers, type, group;
};

/// Adds every option but --format and --out.
void add_cache_options(CLI::App& app, AccountOptions& account, CacheOptions& options);

/// The request that the options make, laid over the one of --input. Errors: each value that can't be.
Result<CacheRequest> cache_request_of(const AccountOptions& account, const CacheOptions& options);

}  // namespace flashsim
