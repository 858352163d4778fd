// SPDX-License-Identifier: Apache-2.0
// Holds the fault layer to the cost budget. The event `page-faults` costs every fault about 0.14 µs on the
// slow machines it was measured on, whether a sample is taken or not; a training loop that faults 100,000
// times a second would pay 1.4 %. So faults are watched for a share of the time, in windows spread evenly,
// and each sample weighs more.
#pragma once

#include <cstdint>

namespace torchleak::app {

class FaultBudget {
 public:
  static constexpr double kFaultCostNs = 140;
  static constexpr double kSmallestShare = 0.1;

  explicit FaultBudget(double max_overhead_percent) : max_overhead_(max_overhead_percent / 100) {}

  // Faults in a second of the target's own CPU time, as last measured.
  void set_rate(double faults_per_cpu_second);
  // Of the time, how much is watched. 1 at the rates of most jobs.
  double share() const { return share_; }
  // Whether the next window is watched; over many windows `share` of them are.
  bool next_window();

 private:
  double max_overhead_;
  double share_ = 1;
  double credit_ = 0;
};

}  // namespace torchleak::app
