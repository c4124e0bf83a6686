// The account of a kernel of the ladder: of its own algorithm, pass, tiles and habits.
#pragma once

#include <optional>
#include <string>

#include "core/base/result.hpp"
#include "core/problem/kernel.hpp"
#include "core/problem/problem.hpp"
#include "core/problem/splits.hpp"
#include "core/study/account.hpp"

namespace flashsim {

/// A kernel on a problem that it takes, and what it leaves open.
struct KernelOnMachine {
  Kernel kernel{};
  Problem problem;
  std::string gpu;
  std::optional<SplitsRequest> splits = std::nullopt;  ///< of split-kv; auto where absent
  bool deterministic = false;                          ///< of the backward pass
  bool simulate = true;                                ///< the blocks are run on the machine
  bool count_never = false;
};

/// The account; its `method` is the kernel's own (method_of), with the splits chosen for the machine. Errors:
/// as make_account's.
Result<AccountReport> account_of(const KernelOnMachine& asked, const Progress& progress = {});

}  // namespace flashsim
