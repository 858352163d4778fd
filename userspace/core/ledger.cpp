// SPDX-License-Identifier: Apache-2.0
#include "torchleak/core/ledger.hpp"

#include <algorithm>
#include <ranges>
#include <utility>

namespace torchleak {
namespace {

// Without file pages, of which only a snapshot tells whether they are of a library.
std::int64_t own_memory(const MemoryCounts& counts) {
  return static_cast<std::int64_t>(counts.anon + counts.shmem + counts.swap);
}

// Keeps the first and the last point and every second one between.
void halve(std::vector<TimelinePoint>& timeline) {
  const TimelinePoint last = timeline.back();
  std::size_t kept = 0;
  for (std::size_t i = 0; i + 1 < timeline.size(); i += 2) {
    timeline[kept++] = timeline[i];
  }
  timeline.resize(kept);
  timeline.push_back(last);
}

}  // namespace

SourceBytes Snapshot::by_source() const {
  SourceBytes bytes;
  for (const Mapping& mapping : mappings) {
    bytes[mapping.source] += static_cast<std::int64_t>(mapping.baseline_bytes);
  }
  bytes[Source::kSwap] += static_cast<std::int64_t>(swap_bytes);
  return bytes;
}

Ledger::Ledger(const LedgerOptions& options, std::uint64_t capture_start_ns)
    : options_(options), capture_start_ns_(capture_start_ns) {}

double Ledger::seconds(std::uint64_t time_ns) const {
  return time_ns <= capture_start_ns_ ? 0 : static_cast<double>(time_ns - capture_start_ns_) * 1e-9;
}

Process* Ledger::live_process(std::uint32_t pid) {
  const auto it = live_.find(pid);
  return it == live_.end() ? nullptr : &processes_[it->second];
}

const Process* Ledger::find(std::uint32_t pid) const {
  const auto it = live_.find(pid);
  return it == live_.end() ? nullptr : &processes_[it->second];
}

bool Ledger::is_private_file(std::uint32_t pid, std::uint64_t address) const {
  const Process* process = find(pid);
  const Mapping* mapping = process == nullptr ? nullptr : process->space.mappings().find(address);
  return mapping != nullptr && !mapping->name.empty() && !mapping->shared &&
         (mapping->source == Source::kLibrary || mapping->source == Source::kFileMapping);
}

Process& Ledger::memory_owner(Process& process) {
  Process* owner = &process;
  while (owner->borrows_memory_of) {
    owner = &processes_[*owner->borrows_memory_of];
  }
  return *owner;
}

void Ledger::end(Process& process, std::uint64_t now_ns) {
  process.ended_ns = now_ns;
  process.space.close();
  live_.erase(process.pid);
}

void Ledger::add(const FoundProcess& found) {
  if (live_.contains(found.pid)) {
    return;
  }
  Process process(options_.page_bytes);
  process.pid = found.pid;
  process.ppid = found.ppid;
  process.start_ns = found.start_ns;
  process.target = found.target;
  process.execed = found.execed;
  process.comm = found.comm;
  process.cmdline = found.cmdline;
  if (const auto parent = live_.find(found.ppid); parent != live_.end()) {
    process.parent = parent->second;
  }
  process.born_ns = capture_start_ns_;
  process.start = found.observation.memory;
  process.peak_rss = found.observation.memory.rss;
  process.minor_faults_before = found.observation.minor_faults;
  process.major_faults_before = found.observation.major_faults;
  live_[found.pid] = processes_.size();
  processes_.push_back(std::move(process));
  observe(found.pid, found.observation);
}

void Ledger::set_baseline(std::uint32_t pid, const Snapshot& snapshot) {
  Process* process = live_process(pid);
  if (process == nullptr) {
    return;
  }
  process->space = AddressSpace(options_.page_bytes);
  process->space.set_traits(snapshot.traits);
  for (const Mapping& mapping : snapshot.mappings) {
    process->space.add_baseline(mapping);
  }
  process->space_from_ns = snapshot.time_ns;
  process->start_sources = snapshot.by_source();
  process->start.pss = snapshot.pss;
  process->start.uss = snapshot.uss;
}

void Ledger::observe(std::uint32_t pid, const Observation& observation) {
  Process* process = live_process(pid);
  if (process == nullptr || process->borrows_memory_of || observation.time_ns < process->space_from_ns) {
    return;
  }
  process->latest = observation.memory;
  process->peak_rss = std::max(process->peak_rss, observation.memory.rss);
  process->caught_signals = observation.caught_signals;
  process->faults.minor =
      observation.minor_faults - std::min(observation.minor_faults, process->minor_faults_before);
  process->faults.major =
      observation.major_faults - std::min(observation.major_faults, process->major_faults_before);
  const MemoryCounts& memory = observation.memory;
  process->timeline.push_back({.t_s = seconds(observation.time_ns),
                               .rss = memory.rss,
                               .anon = memory.anon,
                               .file = memory.file,
                               .shmem = memory.shmem,
                               .swap = memory.swap});
  if (process->timeline.size() > options_.max_timeline) {
    halve(process->timeline);
  }
}

void Ledger::set_cmdline(std::uint32_t pid, std::vector<std::string> cmdline) {
  if (Process* process = live_process(pid)) {
    process->cmdline = std::move(cmdline);
  }
}

void Ledger::set_end(std::uint32_t pid, const Snapshot& snapshot) {
  if (Process* process = live_process(pid)) {
    process->end_sources = snapshot.by_source();
    process->latest.pss = snapshot.pss;
    process->latest.uss = snapshot.uss;
  }
}

std::vector<std::uint32_t> Ledger::live() const {
  std::vector<std::uint32_t> pids;
  pids.reserve(live_.size());
  for (const auto& [pid, index] : live_) {
    pids.push_back(pid);
  }
  std::ranges::sort(pids);
  return pids;
}

std::int64_t Ledger::growth_bytes() const {
  std::int64_t growth = 0;
  for (const auto& [pid, index] : live_) {
    const Process& process = processes_[index];
    growth +=
        own_memory(process.latest) - own_memory(process.start) + process.space.copied_on_write().total();
  }
  return growth;
}

}  // namespace torchleak
