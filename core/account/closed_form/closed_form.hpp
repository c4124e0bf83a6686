// The closed forms, one file an algorithm. `predict` calls the one that is named.
#pragma once

#include "core/account/prediction.hpp"

namespace flashsim {

Prediction predict_standard(const Problem& problem, const Method& method);
Prediction predict_eager(const Problem& problem, const Method& method);
Prediction predict_flash1(const Problem& problem, const Method& method);
Prediction predict_flash2(const Problem& problem, const Method& method);
Prediction predict_split_kv(const Problem& problem, const Method& method);
Prediction predict_block_sparse(const Problem& problem, const Method& method);

/// The FLOPs for the pairs that block-sparse attention leaves visible.
Formula exact_of_pattern(const Problem& problem, const Method& method);

}  // namespace flashsim
