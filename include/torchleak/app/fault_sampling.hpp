// SPDX-License-Identifier: Apache-2.0
// How often faults are sampled, and for how much of the time they are watched at all. Pure, so that it is
// tested alone.
//
// The period follows the rate of faults: a sample each at low rates, where a huge page or a single one may
// matter, one in 256 (1 MiB) at most. The kernel could adapt it by itself, but then its weights are off by 20
// % in bursts.
//
// The event `page-faults` costs every fault some 0.14 µs, sampled or not, and a training loop that faults
// 100,000 times a second would pay 1.4 %. Beyond the budget faults are watched for a share of the time, in
// windows spread evenly, and each sample weighs more.
#pragma once

#include <algorithm>
#include <cstdint>

namespace torchleak::app {

class FaultSampling {
 public:
  static constexpr double kFaultCostNs = 140;  // by scripts/bench.sh, case c
  static constexpr double kSampleCostNs =
      2000;  // the program by the kernel's statistics, and the event's overflow
  static constexpr double kSmallestShare = 0.1;
  static constexpr std::uint64_t kLargestPeriod = 256;

  // A fixed period, if it is not 0, is never changed and always watched.
  FaultSampling(double max_overhead_percent, std::uint64_t fixed_period);

  // The rate at which faults were seen while they were watched. True if the period changes.
  bool set_rate(double faults_per_second);
  // Faults in a second of the target's own CPU time: what it pays for faults and samples, and so the share
  // and the smallest period, depend on it.
  void set_target_rate(double faults_per_cpu_second);
  // Faults of all processes together: the event is on every CPU, and bystanders run the program too.
  void set_machine_rate(double faults_per_second);

  std::uint64_t period() const { return period_; }
  std::uint64_t largest_period() const { return largest_period_; }
  double share() const { return share_; }
  // Whether the next window is watched; over many windows `share` of them are.
  bool next_window();

 private:
  double max_overhead_;
  bool fixed_;
  std::uint64_t period_;
  std::uint64_t largest_period_;
  double smallest_period() const { return std::max(budget_period_, machine_period_); }
  void respect_smallest_period();

  double budget_period_ = 1;
  double machine_period_ = 1;
  double share_ = 1;
  double credit_ = 1;  // so that the first window is watched
};

}  // namespace torchleak::app
