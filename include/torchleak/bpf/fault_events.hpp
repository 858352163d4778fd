// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "torchleak/base/result.hpp"
#include "torchleak/base/unique_fd.hpp"

namespace torchleak::bpf {

// The software event `page-faults`, one on each CPU, with a BPF program behind it.
class FaultEvents {
 public:
  // `period` faults a sample, or where it is 0 a period that the kernel adapts to `samples_per_second`.
  static Result<FaultEvents> open(int program_fd, std::uint64_t period, std::uint64_t samples_per_second);

  void enable(bool on) const;
  std::size_t cpus() const { return events_.size(); }

 private:
  std::vector<UniqueFd> events_;
};

}  // namespace torchleak::bpf
