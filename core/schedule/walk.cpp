#include "core/schedule/walk.hpp"

namespace flashsim {

void walk(Algorithm algorithm, const Problem& problem, Tiling tiling, Listener& listener) {
  switch (algorithm) {
    case Algorithm::standard: return walk_standard(problem, tiling, listener);
    case Algorithm::eager: return walk_eager(problem, tiling, listener);
    case Algorithm::flash1: return walk_flash1(problem, tiling, listener);
    case Algorithm::flash2: return walk_flash2(problem, tiling, listener);
  }
}

}  // namespace flashsim
