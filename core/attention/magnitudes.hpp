// How large the numbers of a run are: what its rounding errors grow with. The truth collects them over the
// rows that it computed and the keys that those see; only finite numbers count.
#pragma once

namespace flashsim {

struct Magnitudes {
  double score = 0;         ///< A: max |scale| Σ|q·k| over the pairs, or of a given |score|
  double value = 0;         ///< V: max |V|
  double summed_value = 0;  ///< V̄: max over rows and columns of Σ_j P_ij |V_jx|
  double output = 0;        ///< O: max |O|

  // What only the gradients need. dP_ij = dO_i · V_j, D_i = Σ_j P_ij dP_ij, dS = P ∘ (dP − D).
  double query = 0;                ///< Q: max |Q|
  double key = 0;                  ///< K: max |K|
  double output_gradient = 0;      ///< G: max |dO|
  double output_gradient_row = 0;  ///< G₁: max over rows of Σ_x |dO_ix|
  double dp_size = 0;              ///< B: max over pairs of Σ_x |dO_ix V_jx|
  double dp = 0;                   ///< X: max |dP|
  double summed_dp = 0;            ///< R: max over rows of Σ_j P_ij |dP_ij|, which is no less than |D|
  double summed_do_o = 0;          ///< B_O: max over rows of Σ_x |dO_ix O_ix|
  double dq_terms = 0;             ///< Z_Q: max of |scale| Σ_j |dS_ij K_jx|
  double dq_weights = 0;           ///< W_Q: max of |scale| Σ_j P_ij |K_jx|
  double dk_terms = 0;             ///< Z_K: max of |scale| Σ_i |dS_ij Q_ix|
  double dk_weights = 0;           ///< W_K: max of |scale| Σ_i P_ij |Q_ix|
  double dv_terms = 0;             ///< Z_V: max of Σ_i P_ij |dO_ix|
  double dq = 0, dk = 0, dv = 0;   ///< max |dQ|, |dK|, |dV|

  /// Each the larger of the two.
  void widen(const Magnitudes& other);
};

}  // namespace flashsim
