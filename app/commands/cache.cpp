// flashsim cache: the KV cache beside what a call of attention makes and drops again.
#include <nlohmann/json.hpp>

#include "app/commands/commands.hpp"
#include "app/views/cache_view.hpp"
#include "core/study/report_json.hpp"

namespace flashsim {

Result<int> cache_command(const AccountOptions& account, const CacheOptions& options,
                          const OutputOptions& output) {
  const auto request = cache_request_of(account, options);
  if (!request) return request.error();
  const auto report = make_cache_report(*request);
  if (!report) return report.error();
  const auto error = emit(output, {.document = [&] { return cache_document(*report, account.explain); },
                                   .json = [&] { return cache_json(*report, account.explain); },
                                   .csv = [&] { return cache_csv(*report, account.explain); }});
  if (error) return *error;
  return kDone;
}

}  // namespace flashsim
