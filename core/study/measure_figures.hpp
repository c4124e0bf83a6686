// The figures of a measured kernel, each beside what its account says.
#pragma once

#include <vector>

#include "core/base/units.hpp"
#include "core/problem/device.hpp"
#include "core/study/account.hpp"
#include "core/study/measure.hpp"

namespace flashsim {

/// One figure of each kind, in their order.
std::vector<ByteFigure> byte_figures(const AccountReport& account, const DeviceMeasurement& measurement);

/// Of at least one repeat.
TimeFigure time_figure(const AccountReport& account, const DeviceMeasurement& measurement);

/// L, which every kernel writes, where the algorithm's account has none; else nothing.
Bytes lse_beside(const AccountReport& account);

}  // namespace flashsim
