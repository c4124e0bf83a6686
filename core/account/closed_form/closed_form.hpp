// The closed forms, one file an algorithm. `predict` calls the one that is named.
#pragma once

#include "core/account/prediction.hpp"

namespace flashsim {

Prediction predict_standard(const Problem& problem, const Method& method, Explain explain);
Prediction predict_eager(const Problem& problem, const Method& method, Explain explain);
Prediction predict_flash1(const Problem& problem, const Method& method, Explain explain);
Prediction predict_flash2(const Problem& problem, const Method& method, Explain explain);
Prediction predict_three_pass(const Problem& problem, const Method& method, Explain explain);
Prediction predict_memory_efficient(const Problem& problem, const Method& method, Explain explain);
Prediction predict_split_kv(const Problem& problem, const Method& method, Explain explain);
Prediction predict_block_sparse(const Problem& problem, const Method& method, Explain explain);

Prediction predict_standard_backward(const Problem& problem, const Method& method, Explain explain);
Prediction predict_eager_backward(const Problem& problem, const Method& method, Explain explain);
Prediction predict_flash1_backward(const Problem& problem, const Method& method, Explain explain);
Prediction predict_flash2_backward(const Problem& problem, const Method& method, Explain explain);

/// Pairs of a query and a key that block-sparse attention leaves visible in one head.
Count visible_pairs_of_pattern(const Problem& problem, const Method& method);

}  // namespace flashsim
