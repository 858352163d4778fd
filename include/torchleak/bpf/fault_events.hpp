// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "torchleak/base/result.hpp"
#include "torchleak/base/unique_fd.hpp"

namespace torchleak::bpf {

// The software event `page-faults`, one on each CPU, with a BPF program behind it. It counts while this
// lives: even switched off an event costs every fault of the machine something, a closed one nothing.
class FaultEvents {
 public:
  static Result<FaultEvents> open(int program_fd, std::uint64_t faults_a_sample);
  // Opened events do not count yet.
  void enable(bool on) const;

 private:
  std::vector<UniqueFd> events_;
};

}  // namespace torchleak::bpf
