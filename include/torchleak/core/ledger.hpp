// SPDX-License-Identifier: Apache-2.0
// The books of one capture: applies events, observations and snapshots to the processes of the tree, and
// closes them as the Report's process list. Pure: no BPF, no /proc, no clock.
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "torchleak/core/decoder.hpp"
#include "torchleak/core/process.hpp"

namespace torchleak {

struct LedgerOptions {
  std::uint64_t page_bytes = 4096;
  std::int64_t boottime_offset_ns = 0;  // CLOCK_BOOTTIME - CLOCK_MONOTONIC
  std::size_t max_processes =
      4096;  // beyond it ended ones are forgotten, and where none are, new ones not kept
  std::size_t max_timeline = 600;  // points a process; thinned by half when full
};

// What the outside adds to an event: facts that only a look at the target can give.
struct EventFacts {
  ChunkHeader chunk = ChunkHeader::kUnread;  // of the mapping a MAP event made
  std::uint64_t touched_page_bytes = 0;      // size of the page a FAULT brought in; 0 for the base page
  std::uint64_t pages_mapped_around = 0;     // by a FAULT on a file, itself included; 0 where not known
  std::uint64_t attached_bytes = 0;          // length of the segment an ATTACH_SHM mapped
  double sampled_share = 1;                  // of the time in which faults were sampled
};

// A process as /proc shows it when the capture finds it running.
struct FoundProcess {
  std::uint32_t pid = 0;
  std::uint32_t ppid = 0;
  std::uint64_t start_ns = 0;
  bool target = false;
  bool execed = false;
  std::string comm;
  std::vector<std::string> cmdline;
  Observation observation;
};

class Ledger {
 public:
  Ledger(const LedgerOptions& options, std::uint64_t capture_start_ns);

  // A process that runs already. Parents before children.
  void add(const FoundProcess& found);
  // The memory it had before the capture.
  void set_baseline(std::uint32_t pid, const Snapshot& snapshot);

  void apply(const Event& event, const EventFacts& facts = {});
  void observe(std::uint32_t pid, const Observation& observation);
  void set_cmdline(std::uint32_t pid, std::vector<std::string> cmdline);
  void set_counters(std::uint32_t pid, const tl_process& counters);
  // The truth at the end, for a process that still lives.
  void set_end(std::uint32_t pid, const Snapshot& snapshot);

  // Live processes by pid.
  std::vector<std::uint32_t> live() const;
  const Process* find(std::uint32_t pid) const;
  // Whether a process has a file mapped privately at this address. Faults on shared ones may be writes, which
  // bring in their page alone.
  bool is_private_file(std::uint32_t pid, std::uint64_t address) const;
  // Growth of all processes that live, by what was last observed.
  std::int64_t growth_bytes() const;
  std::uint64_t untracked_processes() const { return untracked_processes_; }
  std::uint64_t forgotten_processes() const {
    return forgotten_processes_;
  }                                                               // ended, to make room for others
  std::uint64_t orphan_events() const { return orphan_events_; }  // of processes never heard of

  // The processes of the report, in the order in which they appeared.
  std::vector<ProcessReport> close(std::uint64_t now_ns) const;

 private:
  struct Applier;

  Process* live_process(std::uint32_t pid);
  // The process in whose memory `process` runs.
  Process& memory_owner(Process& process);
  void end(Process& process, std::uint64_t now_ns);
  void make_room();
  double seconds(std::uint64_t time_ns) const;

  LedgerOptions options_;
  std::uint64_t capture_start_ns_;
  std::deque<Process> processes_;                        // never shrinks, so that indices stay
  std::unordered_map<std::uint32_t, std::size_t> live_;  // pid -> index
  std::uint64_t untracked_processes_ = 0;
  std::uint64_t forgotten_processes_ = 0;
  std::uint64_t orphan_events_ = 0;
};

}  // namespace torchleak
