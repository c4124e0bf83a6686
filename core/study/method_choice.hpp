// What an algorithm leaves open beside its tiles, as a request asks for it: the pass and eager's passes, the
// parts of split-kv, and the pattern of block-sparse attention.
#pragma once

#include <optional>

#include <nlohmann/json_fwd.hpp>

#include "core/base/result.hpp"
#include "core/problem/machine.hpp"
#include "core/problem/method.hpp"
#include "core/problem/splits.hpp"
#include "core/study/request.hpp"

namespace flashsim {

/// Errors: a pass that the algorithm hasn't, an option that means nothing for it, block-sparse without a
/// pattern, and groups that packed are more rows than any dimension may have.
Outcome check_method(const AccountRequest& request, Algorithm algorithm, const Problem& problem);

/// Fills in what `method`, whose algorithm and tiles stand, leaves open. Gives how split-kv's parts were
/// chosen. Errors: a pattern that doesn't fit the tiles.
Result<std::optional<SplitChoice>> choose_rest(const AccountRequest& request, const Problem& problem,
                                               const Machine& machine, Method& method);

/// `splits` and `pattern` of an input, null where there are none.
nlohmann::ordered_json splits_json(const std::optional<SplitsRequest>& splits);
nlohmann::ordered_json pattern_json(const std::optional<PatternRequest>& pattern);
nlohmann::ordered_json splits_json(const std::optional<SplitChoice>& choice);
nlohmann::ordered_json pattern_json(const Method& method);

}  // namespace flashsim
