// What is asked of a cache, from JSON, and one request laid over another.
#include <fmt/format.h>

#include "core/base/json_reader.hpp"
#include "core/study/cache.hpp"

namespace flashsim {

CacheRequest laid_over(CacheRequest over, const CacheRequest& given) {
  CacheRequest under = given;
  // The cache's type followed the tensors'.
  if (over.account.dtype && under.account.dtype && under.type == cache_type_of(*under.account.dtype)) {
    under.type.reset();
  }
  if (over.type && !facts_of(*over.type).quantized()) under.group.reset();
  over.account = laid_over(over.account, under.account);
  if (!over.layers) over.layers = under.layers;
  if (!over.type) over.type = under.type;
  if (!over.group) over.group = under.group;
  return over;
}

Result<CacheRequest> read_cache_request(std::string_view text, const std::string& source) {
  const auto parsed = parse_json(text, source);
  if (!parsed) return parsed.error();
  const auto input = input_of(*parsed, source, {"flashsim.cache/1"});
  if (!input) return input.error();
  JsonReader reader(*input->object, input->path);
  CacheRequest request;
  AccountRequest& account = request.account;
  account.batch = reader.dimension("batch");
  account.heads = reader.dimension("heads");
  account.kv_heads = reader.dimension("kv_heads");
  account.seq = reader.dimension("seq");
  account.head_dim = reader.dimension("head_dim");
  account.dtype = reader.named<NumberType>(
      "dtype", [](const std::string& name) { return storage_type_named("type", name); });
  account.gpu = reader.text("gpu");
  request.layers = reader.dimension("layers");
  request.type = reader.named<CacheType>("cache_dtype", cache_type_named);
  request.group = reader.dimension("cache_group");
  if (auto error = reader.finish()) return *error;
  return request;
}

}  // namespace flashsim
