// SPDX-License-Identifier: Apache-2.0
// One process of the tree: what it is, what it holds, and what was counted of it. Plain state; Ledger keeps
// it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "torchleak/core/address_space.hpp"
#include "torchleak/core/report.hpp"

namespace torchleak {

// What /proc said of a process at one moment.
struct Observation {
  std::uint64_t time_ns = 0;
  MemoryCounts memory;
  std::uint64_t minor_faults = 0;
  std::uint64_t major_faults = 0;
  std::uint64_t cpu_ns = 0;
  std::uint64_t caught_signals = 0;
};

// What smaps said: the mappings with their source and the bytes resident or swapped in each.
struct Snapshot {
  std::uint64_t time_ns = 0;  // when reading ended: what happened before is in it
  ProcessTraits traits;
  std::vector<Mapping> mappings;  // baseline_bytes = resident, swap apart
  std::uint64_t swap_bytes = 0;
  std::uint64_t pss = 0;
  std::uint64_t uss = 0;

  SourceBytes by_source() const;
};

struct Process {
  std::uint32_t pid = 0;
  std::uint32_t ppid = 0;
  std::uint64_t start_ns = 0;  // CLOCK_BOOTTIME; with the pid it is the identity
  std::optional<std::size_t> parent;
  std::string comm;
  std::vector<std::string> cmdline;
  bool target = false;
  bool execed = false;
  // vfork: until exec or exit it runs in the memory of this process, and what it does there is that
  // process's.
  std::optional<std::size_t> borrows_memory_of;

  std::uint64_t born_ns = 0;  // when it entered the ledger, CLOCK_MONOTONIC
  std::optional<std::uint64_t> ended_ns;
  std::optional<Exit> exit;
  bool oom_killed = false;

  AddressSpace space;
  std::uint64_t space_from_ns = 0;  // what happened before is in the space's baseline already
  MemoryCounts start;
  MemoryCounts latest;
  std::uint64_t peak_rss = 0;
  std::uint64_t caught_signals = 0;
  std::uint64_t minor_faults_before = 0;
  std::uint64_t major_faults_before = 0;
  SourceBytes start_sources;
  std::optional<SourceBytes>
      end_sources;  // from the last snapshot; without one the space's own estimate holds
  Faults faults;
  std::vector<TimelinePoint> timeline;

  explicit Process(std::uint64_t page_bytes) : space(page_bytes) {}
};

}  // namespace torchleak
