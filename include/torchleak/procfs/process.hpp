// SPDX-License-Identifier: Apache-2.0
// Reads what /proc says of a process. Parsing is apart from reading, so that real captured files test it.
// Every number is checked: a process may write its name with spaces, parentheses and newlines in it.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "torchleak/base/result.hpp"
#include "torchleak/core/classify.hpp"
#include "torchleak/core/report.hpp"

namespace torchleak::procfs {

// /proc/PID/stat
struct Stat {
  std::string comm;
  char state = '?';
  std::uint32_t ppid = 0;
  std::uint64_t minor_faults = 0;
  std::uint64_t major_faults = 0;
  std::uint64_t cpu_ticks = 0;
  std::uint32_t threads = 0;
  std::uint64_t start_ticks = 0;
  std::uint64_t stack_start = 0;  // where exec put the stack; 0 of a zombie and where we may not look
  bool kernel_thread = false;     // PF_KTHREAD in the flags field
  bool operator==(const Stat&) const = default;
};
std::optional<Stat> parse_stat(std::string_view text);

// Whether a child that already ran at attach has run another program since it was forked. Fork keeps the
// place of the stack, exec draws it anew. False also where that cannot be seen: of a zombie, without the
// right to look, or without address randomisation.
bool has_execed(const Stat& child, const Stat& parent);

// /proc/PID/status
struct Status {
  MemoryCounts memory;         // rss, anon, file, shmem, swap; pss and uss stay 0
  std::uint64_t peak_rss = 0;  // VmHWM
  std::uint64_t caught_signals = 0;
  bool has_memory = false;  // kernel threads and zombies have none
  bool operator==(const Status&) const = default;
};
std::optional<Status> parse_status(std::string_view text);

// One mapping of /proc/PID/smaps.
struct SmapsEntry {
  VmaFacts vma;
  std::uint64_t rss = 0;
  std::uint64_t pss = 0;
  std::uint64_t private_clean = 0;
  std::uint64_t private_dirty = 0;
  std::uint64_t shared_clean = 0;
  std::uint64_t shared_dirty = 0;
  std::uint64_t anonymous = 0;
  std::uint64_t anon_huge_pages = 0;
  std::uint64_t swap = 0;
  bool operator==(const SmapsEntry&) const = default;
};
// Entries up to the first that is not understood or is cut off before its VmFlags line; `complete` says
// whether that was the end of the text.
struct Smaps {
  std::vector<SmapsEntry> entries;
  bool complete = true;
};
Smaps parse_smaps(std::string_view text);
std::optional<VmaFacts> parse_maps_line(std::string_view line);

Result<Stat> read_stat(pid_t pid);
Result<Status> read_status(pid_t pid);
Result<Smaps> read_smaps(pid_t pid);
std::vector<std::string> read_cmdline(pid_t pid);
// Children of all threads of a process, by /proc/PID/task/*/children, or by a scan of /proc where the kernel
// lacks it.
std::vector<pid_t> read_children(pid_t pid);
// Fills in VmaFacts::chunk of anonymous private writable mappings by process_vm_readv of what may be headers.
// Blocks and Python arenas that the kernel merged into one mapping are split into one entry each where their
// headers prove it, and the counts are shared out by the pages resident in each; no byte is lost or made by
// it. Only pages that /proc/PID/pagemap says are resident are read, so nothing is faulted in; the work is
// bounded.
void probe_chunk_headers(pid_t pid, std::vector<SmapsEntry>& entries);

std::uint64_t ticks_to_ns(std::uint64_t ticks);

}  // namespace torchleak::procfs
