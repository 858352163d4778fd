// SPDX-License-Identifier: Apache-2.0
#include "torchleak/app/fault_sampling.hpp"

#include <algorithm>
#include <bit>

namespace torchleak::app {
namespace {

// The kernel stops an event that samples more than perf_event_max_sample_rate (100,000 a second) until the
// next tick, and what faults meanwhile is lost. One CPU takes some 400,000 faults a second.
constexpr std::uint64_t kFirstPeriod = 8;
constexpr std::uint64_t kLargestStep = 4;
constexpr double kSamplesPerSecond = 1000;
// A change of period loses the part of a period that was under way, so small ones are not followed.
constexpr double kTooMany = 4 * kSamplesPerSecond;
constexpr double kTooFew = kSamplesPerSecond / 8;
// Of the budget; the rest is for the programs that run at system calls.
constexpr double kPartForFaults = 0.4;
constexpr double kPartForSamples = 0.1;
constexpr double kMachineSamplesPerSecond = 10'000;

}  // namespace

FaultSampling::FaultSampling(double max_overhead_percent, std::uint64_t fixed_period)
    : max_overhead_(max_overhead_percent / 100),
      fixed_(fixed_period != 0),
      period_(fixed_ ? fixed_period : kFirstPeriod),
      largest_period_(period_) {}

bool FaultSampling::set_rate(double faults_per_second) {
  const double samples_per_second = faults_per_second / static_cast<double>(period_);
  const bool too_fine = static_cast<double>(period_) < smallest_period() / 2;
  if (fixed_ || (!too_fine && samples_per_second <= kTooMany && samples_per_second >= kTooFew)) {
    return false;
  }
  // A rise goes by steps: what looks like a storm may be over in a moment.
  const double most =
      std::min(static_cast<double>(period_ * kLargestStep), static_cast<double>(kLargestPeriod));
  const double wanted = std::max(std::min(faults_per_second / kSamplesPerSecond, most),
                                 std::max(smallest_period(), static_cast<double>(kFirstPeriod)));
  const std::uint64_t period = std::bit_ceil(static_cast<std::uint64_t>(wanted));
  const bool changes = period != period_;
  period_ = period;
  largest_period_ = std::max(largest_period_, period_);
  return changes;
}

void FaultSampling::set_target_rate(double faults_per_cpu_second) {
  if (fixed_) {
    return;
  }
  const double faults_per_cpu_ns = std::max(faults_per_cpu_second, 1.0) * 1e-9;
  share_ =
      std::clamp(max_overhead_ * kPartForFaults / (faults_per_cpu_ns * kFaultCostNs), kSmallestShare, 1.0);
  budget_period_ = std::clamp(faults_per_cpu_ns * kSampleCostNs / (max_overhead_ * kPartForSamples), 1.0,
                              static_cast<double>(kLargestPeriod));
  respect_smallest_period();
}

void FaultSampling::set_machine_rate(double faults_per_second) {
  if (fixed_) {
    return;
  }
  machine_period_ =
      std::clamp(faults_per_second / kMachineSamplesPerSecond, 1.0, static_cast<double>(kLargestPeriod));
  respect_smallest_period();
}

void FaultSampling::respect_smallest_period() {
  period_ = std::max(period_, std::bit_floor(static_cast<std::uint64_t>(smallest_period())));
  largest_period_ = std::max(largest_period_, period_);
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
