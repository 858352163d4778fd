// SPDX-License-Identifier: Apache-2.0
#include "torchleak/procfs/snapshot.hpp"

#include <fmt/format.h>

#include <ctime>

namespace torchleak::procfs {

std::uint64_t monotonic_ns() {
  timespec now{};
  ::clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

Result<Observation> observe(pid_t pid) {
  const auto stat = read_stat(pid);
  if (!stat) {
    return std::unexpected(stat.error());
  }
  const auto status = read_status(pid);
  if (!status) {
    return std::unexpected(status.error());
  }
  if (!status->has_memory) {
    return fail(fmt::format("process {} has no memory of its own any more", pid));
  }
  return Observation{.time_ns = monotonic_ns(),
                     .memory = status->memory,
                     .minor_faults = stat->minor_faults,
                     .major_faults = stat->major_faults,
                     .cpu_ns = ticks_to_ns(stat->cpu_ticks),
                     .caught_signals = status->caught_signals};
}

Result<Snapshot> take_snapshot(pid_t pid) {
  auto smaps = read_smaps(pid);
  if (!smaps) {
    return std::unexpected(smaps.error());
  }
  if (!smaps->complete || smaps->entries.empty()) {
    return fail(
        fmt::format("the memory map of process {} could not be read whole; it may just have ended", pid));
  }
  Snapshot snapshot;
  snapshot.time_ns = monotonic_ns();
  probe_chunk_headers(pid, smaps->entries);
  // Of 100,000 mappings each form takes its 10 MB, so none is kept longer than it is needed.
  std::vector<VmaFacts> vmas;
  std::vector<std::uint64_t> resident;
  std::vector<float> anonymous_part;
  vmas.reserve(smaps->entries.size());
  resident.reserve(smaps->entries.size());
  anonymous_part.reserve(smaps->entries.size());
  for (SmapsEntry& entry : smaps->entries) {
    vmas.push_back(std::move(entry.vma));
    resident.push_back(entry.rss);
    anonymous_part.push_back(
        entry.rss == 0 ? 1 : static_cast<float>(entry.anonymous) / static_cast<float>(entry.rss));
    snapshot.swap_bytes += entry.swap;
    snapshot.pss += entry.pss;
    snapshot.uss += entry.private_clean + entry.private_dirty;
  }
  smaps->entries = {};
  snapshot.traits = traits_of(vmas);
  const std::vector<Source> sources = classify_address_space(vmas, snapshot.traits);
  snapshot.mappings.reserve(vmas.size());
  for (std::size_t i = 0; i < vmas.size(); ++i) {
    Mapping mapping;
    mapping.begin = vmas[i].begin;
    mapping.end = vmas[i].end;
    mapping.baseline_bytes = resident[i];
    mapping.anonymous_part = anonymous_part[i];
    mapping.source = sources[i];
    mapping.shared = vmas[i].shared;
    mapping.name = std::move(vmas[i].name);
    snapshot.mappings.push_back(std::move(mapping));
  }
  return snapshot;
}

}  // namespace torchleak::procfs
