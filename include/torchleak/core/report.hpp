// SPDX-License-Identifier: Apache-2.0
// The Report: the one value in which the ledgers meet. Every output is a rendering of it, and JSON is its
// faithful serialisation (schema torchleak.report/1). Sizes in bytes, times in seconds since the capture
// began.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "torchleak/core/source.hpp"

namespace torchleak {

inline constexpr const char* kReportSchema = "torchleak.report/1";

enum class LayerState : std::uint8_t { kOn, kOff, kDegraded };

struct LayerStatus {
  LayerState state = LayerState::kOff;
  std::string why;  // empty where there is nothing to explain; null in JSON
  bool operator==(const LayerStatus&) const = default;
};

struct Lost {
  std::uint64_t events = 0;
  std::uint64_t samples = 0;
  bool operator==(const Lost&) const = default;
};

struct Cost {
  std::uint64_t bpf_ns = 0;
  std::uint64_t bpf_runs = 0;
  double target_share_percent = 0;
  double tracer_cpu_s = 0;
  std::uint64_t tracer_rss_bytes = 0;
  double first_data_s = 0;  // from the start of the program to the first figures
  bool operator==(const Cost&) const = default;
};

struct Capture {
  std::string started;  // ISO 8601, UTC
  double duration_s = 0;
  std::vector<std::uint32_t> targets;
  std::uint64_t sample_bytes = 0;
  std::map<std::string, LayerStatus> layers;  // pages, mappings, swap, python, native, arrays, cuda
  Lost lost;
  Cost cost;
  std::vector<std::string> blind_spots;  // what was refused, lost or not understood, one sentence each
  bool operator==(const Capture&) const = default;
};

// The facts about the machine that change how memory behaves.
struct Machine {
  std::string kernel;
  std::string architecture;
  std::uint32_t cpus = 0;
  std::uint64_t memory_bytes = 0;
  std::uint64_t swap_bytes = 0;
  std::uint64_t page_bytes = 0;
  std::string thp;  // "always", "madvise" or "never"
  bool operator==(const Machine&) const = default;
};

enum class Role : std::uint8_t {
  kMain,
  kDataLoaderWorker,
  kPinMemoryThread,
  kPoolWorker,
  kSubprocess,
  kHelper
};

struct Worker {
  std::uint32_t slot = 0;
  std::uint32_t generation = 0;
  std::string group;  // the Python line that made the loader; empty where not known
  bool operator==(const Worker&) const = default;
};

struct Exit {
  std::int32_t code = 0;
  std::int32_t signal = 0;
  bool oom_killed = false;
  bool operator==(const Exit&) const = default;
};

struct MemoryCounts {
  std::uint64_t rss = 0;
  std::uint64_t anon = 0;
  std::uint64_t file = 0;
  std::uint64_t shmem = 0;
  std::uint64_t swap = 0;
  std::uint64_t pss = 0;  // 0 where the process was gone before it could be read
  std::uint64_t uss = 0;
  bool operator==(const MemoryCounts&) const = default;
};

struct SourceRow {
  Source source = Source::kAnonOther;
  std::int64_t start = 0;
  std::int64_t end = 0;
  std::int64_t growth = 0;  // end - start
  std::int64_t cow = 0;     // copied on write: private memory grew while RSS stayed
  bool operator==(const SourceRow&) const = default;
};

struct Faults {
  std::uint64_t first_touch = 0;
  std::uint64_t cow = 0;
  std::uint64_t file = 0;
  std::uint64_t shmem = 0;
  std::uint64_t swap_in = 0;   // exact where the swap layer is on
  std::uint64_t swap_out = 0;  // pages, exact where the swap layer is on
  std::uint64_t huge = 0;
  std::uint64_t collapsed = 0;  // huge pages that khugepaged made of small ones; exact
  std::uint64_t major = 0;      // exact
  std::uint64_t minor = 0;      // exact
  std::uint64_t kernel = 0;     // of all classes, those taken in kernel mode
  bool operator==(const Faults&) const = default;
};

struct HeapCensus {
  std::uint64_t in_use = 0;
  std::uint64_t free_retained = 0;
  std::uint32_t arenas = 0;
  bool operator==(const HeapCensus&) const = default;
};

// start + attributed - freed + unexplained == measured, always. All of it RSS + swap.
struct Reconciliation {
  std::int64_t start = 0;
  std::int64_t attributed = 0;
  std::int64_t freed = 0;
  std::int64_t measured = 0;
  std::int64_t unexplained = 0;
  bool operator==(const Reconciliation&) const = default;
};

struct TimelinePoint {
  double t_s = 0;
  std::uint64_t rss = 0;
  std::uint64_t anon = 0;
  std::uint64_t file = 0;
  std::uint64_t shmem = 0;
  std::uint64_t swap = 0;
  bool operator==(const TimelinePoint&) const = default;
};

struct ProcessReport {
  std::uint32_t pid = 0;
  std::uint32_t ppid = 0;
  std::uint64_t start_time_ns = 0;
  std::string comm;
  std::vector<std::string> cmdline;
  Role role = Role::kMain;
  std::optional<Worker> worker;
  double started_s = 0;  // 0 where it ran before the capture
  std::optional<double> ended_s;
  std::optional<Exit> exit;
  MemoryCounts start;
  MemoryCounts end;
  std::uint64_t peak_rss = 0;
  std::vector<SourceRow> sources;
  Faults faults;
  std::optional<HeapCensus> heap;
  Reconciliation reconciliation;
  std::vector<TimelinePoint> timeline;
  bool operator==(const ProcessReport&) const = default;

  // The memory that is this process's doing: anonymous, shared and swapped memory and mapped files at the end
  // less at the start, plus pages copied on write. Pages of libraries are left out: all processes share them,
  // and a forked worker maps again what its parent had.
  std::int64_t growth_bytes() const;
};

struct Growth {
  std::int64_t bytes = 0;
  std::int64_t explained_bytes = 0;
  std::int64_t unexplained_bytes = 0;
  bool operator==(const Growth&) const = default;
};

struct Report {
  std::string tool_version;
  Capture capture;
  Machine machine;
  std::vector<ProcessReport> processes;
  Growth growth;
  bool operator==(const Report&) const = default;
};

std::string_view role_name(Role role);
std::optional<Role> role_from_name(std::string_view name);
std::string_view layer_state_name(LayerState state);
std::optional<LayerState> layer_state_from_name(std::string_view name);

}  // namespace torchleak
