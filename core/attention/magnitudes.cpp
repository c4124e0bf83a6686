#include "core/attention/magnitudes.hpp"

#include <algorithm>

namespace flashsim {

void Magnitudes::widen(const Magnitudes& other) {
  for (double Magnitudes::*each : {&Magnitudes::score,
                                   &Magnitudes::value,
                                   &Magnitudes::summed_value,
                                   &Magnitudes::output,
                                   &Magnitudes::query,
                                   &Magnitudes::key,
                                   &Magnitudes::output_gradient,
                                   &Magnitudes::output_gradient_row,
                                   &Magnitudes::dp_size,
                                   &Magnitudes::dp,
                                   &Magnitudes::summed_dp,
                                   &Magnitudes::summed_do_o,
                                   &Magnitudes::dq_terms,
                                   &Magnitudes::dq_weights,
                                   &Magnitudes::dk_terms,
                                   &Magnitudes::dk_weights,
                                   &Magnitudes::dv_terms,
                                   &Magnitudes::dq,
                                   &Magnitudes::dk,
                                   &Magnitudes::dv}) {
    this->*each = std::max(this->*each, other.*each);
  }
}

}  // namespace flashsim
