// SPDX-License-Identifier: Apache-2.0
// Events as a test tells them: forked(), mapped(), touched(), ended().
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "torchleak/core/ledger.hpp"

namespace torchleak {

inline constexpr std::uint64_t kPage = 4096;
inline constexpr std::uint64_t kMiB = 1 << 20;
inline constexpr std::uint64_t kBase = 0x7f0000000000;
inline constexpr std::uint64_t kTick = 10'000'000;
inline constexpr std::uint64_t kSecond = 1'000'000'000;

template <typename Record>
Record record_of(std::uint32_t pid, std::uint64_t time_ns) {
  Record record{};
  record.header.tgid = pid;
  record.header.time_ns = time_ns;
  return record;
}

template <std::size_t N>
void set_name(char (&to)[N], std::string_view name) {
  std::copy_n(name.begin(), std::min(name.size(), N - 1), to);
}

inline tl_rss pages(std::uint64_t anon, std::uint64_t file = 0, std::uint64_t shmem = 0,
                    std::uint64_t swap = 0) {
  return {.file_pages = file, .anon_pages = anon, .swap_pages = swap, .shmem_pages = shmem};
}

inline tl_fork forked(std::uint32_t parent, std::uint32_t child, std::uint64_t time_ns,
                      std::uint64_t start_ns, const tl_rss& rss = {}) {
  auto event = record_of<tl_fork>(parent, time_ns);
  event.child_tgid = child;
  event.child_start_ns = start_ns;
  event.rss = rss;
  set_name(event.comm, "python3");
  return event;
}

inline tl_fork vforked(std::uint32_t parent, std::uint32_t child, std::uint64_t time_ns,
                       std::uint64_t start_ns) {
  auto event = forked(parent, child, time_ns, start_ns);
  event.shares_memory = 1;
  return event;
}

inline tl_exec executed(std::uint32_t pid, std::uint64_t time_ns, std::string_view comm) {
  auto event = record_of<tl_exec>(pid, time_ns);
  set_name(event.comm, comm);
  return event;
}

inline tl_exit ended(std::uint32_t pid, std::uint64_t time_ns, std::int32_t wait_status = 0,
                     const tl_rss& rss = {}) {
  auto event = record_of<tl_exit>(pid, time_ns);
  event.wait_status = wait_status;
  event.rss = rss;
  return event;
}

inline tl_map mapped(std::uint32_t pid, std::uint64_t time_ns, std::uint64_t address, std::uint64_t length) {
  auto event = record_of<tl_map>(pid, time_ns);
  event.address = address;
  event.length = length;
  event.protection = PROT_READ | PROT_WRITE;
  event.flags = MAP_PRIVATE | MAP_ANONYMOUS;
  event.fd = -1;
  return event;
}

inline UnmapEvent unmapped(std::uint32_t pid, std::uint64_t time_ns, std::uint64_t address,
                           std::uint64_t length) {
  auto event = record_of<UnmapEvent>(pid, time_ns);
  event.entry_ns = time_ns;
  event.address = address;
  event.length = length;
  return event;
}

inline tl_fault touched(std::uint32_t pid, std::uint64_t time_ns, std::uint64_t address,
                        std::uint64_t weight = 1, std::uint32_t flags = 0) {
  auto event = record_of<tl_fault>(pid, time_ns);
  event.address = address;
  event.weight = weight;
  event.flags = flags;
  event.tid = pid;
  return event;
}

inline Observation seen(std::uint64_t time_ns, std::uint64_t anon_bytes, std::uint64_t swap_bytes = 0) {
  Observation observation;
  observation.time_ns = time_ns;
  observation.memory.rss = anon_bytes;
  observation.memory.anon = anon_bytes;
  observation.memory.swap = swap_bytes;
  return observation;
}

inline FoundProcess found(std::uint32_t pid, std::uint32_t ppid, std::uint64_t start_ns,
                          const Observation& observation = {}) {
  FoundProcess process;
  process.pid = pid;
  process.ppid = ppid;
  process.start_ns = start_ns;
  process.comm = "python3";
  process.cmdline = {"python3", "train.py"};
  process.observation = observation;
  return process;
}

// A snapshot of one mapping at kBase.
inline Snapshot snapshot_of(std::uint64_t time_ns, std::uint64_t length, std::uint64_t resident,
                            Source source = Source::kAnonOther) {
  Snapshot snapshot;
  snapshot.time_ns = time_ns;
  Mapping mapping;
  mapping.begin = kBase;
  mapping.end = kBase + length;
  mapping.baseline_bytes = resident;
  mapping.source = source;
  snapshot.mappings.push_back(mapping);
  return snapshot;
}

}  // namespace torchleak
