// SPDX-License-Identifier: Apache-2.0
#include "torchleak/app/fault_sampling.hpp"

#include <algorithm>
#include <bit>

namespace torchleak::app {
namespace {

constexpr std::uint64_t kFirstPeriod = 16;
constexpr double kSamplesPerSecond = 1000;
// A change of period loses the part of a period that was under way, so small ones are not followed.
constexpr double kTooMany = 4 * kSamplesPerSecond;
constexpr double kTooFew = kSamplesPerSecond / 8;
// The rest of the budget is for the programs that run at samples and system calls.
constexpr double kPartForFaults = 0.6;

}  // namespace

FaultSampling::FaultSampling(double max_overhead_percent, std::uint64_t fixed_period)
    : max_overhead_(max_overhead_percent / 100),
      fixed_(fixed_period != 0),
      period_(fixed_ ? fixed_period : kFirstPeriod),
      largest_period_(period_) {}

bool FaultSampling::set_rate(double faults_per_second) {
  const double samples_per_second = faults_per_second / static_cast<double>(period_);
  if (fixed_ || (samples_per_second <= kTooMany && samples_per_second >= kTooFew)) {
    return false;
  }
  const double wanted =
      std::clamp(faults_per_second / kSamplesPerSecond, 1.0, static_cast<double>(kLargestPeriod));
  const std::uint64_t period = std::bit_ceil(static_cast<std::uint64_t>(wanted));
  const bool changes = period != period_;
  period_ = period;
  largest_period_ = std::max(largest_period_, period_);
  return changes;
}

void FaultSampling::set_target_rate(double faults_per_cpu_second) {
  if (!fixed_) {
    const double cost_if_always = std::max(faults_per_cpu_second, 1.0) * kFaultCostNs * 1e-9;
    share_ = std::clamp(max_overhead_ * kPartForFaults / cost_if_always, kSmallestShare, 1.0);
  }
}

bool FaultSampling::next_window() {
  credit_ += share_;
  if (credit_ < 1) {
    return false;
  }
  credit_ -= 1;
  return true;
}

}  // namespace torchleak::app
