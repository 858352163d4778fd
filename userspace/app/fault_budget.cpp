// SPDX-License-Identifier: Apache-2.0
#include "torchleak/app/fault_budget.hpp"

#include <algorithm>

namespace torchleak::app {
namespace {

// The rest of the budget is for the programs that run at samples and system calls.
constexpr double kPartForFaults = 0.6;

}  // namespace

void FaultBudget::set_rate(double faults_per_cpu_second) {
  const double cost_if_always = std::max(faults_per_cpu_second, 1.0) * kFaultCostNs * 1e-9;
  share_ = std::clamp(max_overhead_ * kPartForFaults / cost_if_always, kSmallestShare, 1.0);
}

bool FaultBudget::next_window() {
  credit_ += share_;
  if (credit_ < 1) {
    return false;
  }
  credit_ -= 1;
  return true;
}

}  // namespace torchleak::app
