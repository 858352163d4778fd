// SPDX-License-Identifier: Apache-2.0
// Who a process of the tree is, and which worker slot it fills. A pure function of what is known of all
// processes, ended ones included, so that a worker respawned at the next epoch continues its slot as a new
// generation.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "torchleak/core/report.hpp"

namespace torchleak {

struct ProcessFacts {
  std::uint32_t pid = 0;
  std::uint64_t start_ns = 0;
  std::optional<std::size_t> parent;      // index into the same span; none for a target and for orphans
  std::optional<std::uint64_t> ended_ns;  // same clock as start_ns
  bool target = false;                    // named by -p, or the command itself
  bool execed = false;                    // has run another program since it was forked
  std::string comm;
  std::vector<std::string> cmdline;
  std::uint64_t caught_signals = 0;  // SigCgt of /proc/PID/status, bit N-1 for signal N; 0 where never read
};

struct RoleOf {
  Role role = Role::kMain;
  std::optional<Worker> worker;
  bool operator==(const RoleOf&) const = default;
};

// One answer for each process, in the same order.
std::vector<RoleOf> assign_roles(std::span<const ProcessFacts> processes);

}  // namespace torchleak
