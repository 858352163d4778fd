// SPDX-License-Identifier: Apache-2.0
// What each kind of event does to the books.
#include <algorithm>
#include <cmath>
#include <utility>

#include "torchleak/core/ledger.hpp"

namespace torchleak {
namespace {

constexpr std::uint32_t kMapShared = 0x01;
constexpr std::uint32_t kMapAnonymous = 0x20;
constexpr std::uint64_t kTickNs = 10'000'000;  // what /proc/PID/stat counts start times in

MemoryCounts counts_of(const tl_rss& rss, std::uint64_t page_bytes) {
  MemoryCounts counts;
  counts.file = rss.file_pages * page_bytes;
  counts.anon = rss.anon_pages * page_bytes;
  counts.shmem = rss.shmem_pages * page_bytes;
  counts.swap = rss.swap_pages * page_bytes;
  counts.rss = counts.file + counts.anon + counts.shmem;
  return counts;
}

void take_counters(Faults& faults, const tl_process& counters) {
  faults.swap_in = counters.swap_in_pages;
  faults.swap_out = counters.swap_out_pages;
  faults.collapsed = counters.collapsed_huge_pages;
}

}  // namespace

// One handler for each kind of event.
struct Ledger::Applier {
  Ledger& ledger;
  const EventFacts& facts;
  Process& process;  // the one the event happened in

  // The address space to change, or nullptr where its baseline has the change in it already.
  AddressSpace* space_at(const tl_header& header) const {
    Process& owner = ledger.memory_owner(process);
    return header.time_ns < owner.space_from_ns ? nullptr : &owner.space;
  }

  void operator()(const tl_fork& event) const {
    if (Process* stale = ledger.live_process(event.child_tgid)) {
      if (stale->start_ns / kTickNs == event.child_start_ns / kTickNs) {
        return;  // found in /proc before its record was read
      }
      if (stale == &process) {
        return;  // nobody is born with the pid of its parent
      }
      ledger.end(*stale, event.header.time_ns);  // its exit was lost, and the pid is used again
    }
    if (ledger.processes_.size() >= ledger.options_.max_processes) {
      ++ledger.untracked_processes_;
      return;
    }
    Process child(ledger.options_.page_bytes);
    child.pid = event.child_tgid;
    child.ppid = process.pid;
    child.start_ns = event.child_start_ns;
    child.parent = ledger.live_.at(process.pid);
    child.comm = event.comm;
    child.cmdline = process.cmdline;
    child.born_ns = event.header.time_ns;
    child.space_from_ns = event.header.time_ns;
    if (event.shares_memory != 0) {
      child.borrows_memory_of = child.parent;
    } else {
      const Process& owner = ledger.memory_owner(process);
      child.start = counts_of(event.rss, ledger.options_.page_bytes);
      child.space = owner.space.forked();
      child.space.fit_baseline(child.start.anon + child.start.swap, child.start.file, child.start.shmem);
      child.start_sources = child.space.resident();
    }
    child.latest = child.start;
    child.peak_rss = child.start.rss;
    ledger.live_[child.pid] = ledger.processes_.size();
    ledger.processes_.push_back(std::move(child));
  }

  void operator()(const tl_exec& event) const {
    process.execed = true;
    process.borrows_memory_of.reset();
    process.comm = event.comm;
    process.cmdline = {process.comm};
    process.space = AddressSpace(ledger.options_.page_bytes);
    process.space_from_ns = event.header.time_ns;
    process.start = {};
    process.latest = {};
    process.start_sources = {};
    process.caught_signals = 0;
  }

  void operator()(const tl_exit& event) const {
    const MemoryCounts at_end = counts_of(event.rss, ledger.options_.page_bytes);
    if (at_end.rss != 0 && !process.borrows_memory_of) {
      process.latest = at_end;
    }
    if (!process.borrows_memory_of) {
      process.peak_rss = std::max(process.peak_rss, process.latest.rss);
      // The kernel's mark is over the whole life: it belongs to the capture only where the life does.
      if (process.born_ns > ledger.capture_start_ns_ && !process.execed) {
        process.peak_rss = std::max(process.peak_rss, event.peak_rss_pages * ledger.options_.page_bytes);
      }
    }
    process.faults.minor = event.minor_faults - std::min(event.minor_faults, process.minor_faults_before);
    process.faults.major = event.major_faults - std::min(event.major_faults, process.major_faults_before);
    take_counters(process.faults, event.counters);
    process.caught_signals |= event.caught_signals;
    process.exit = Exit{.code = (event.wait_status >> 8) & 0xff,
                        .signal = event.wait_status & 0x7f,
                        .oom_killed = process.oom_killed};
    ledger.end(process, event.header.time_ns);
  }

  void operator()(const tl_oom_kill&) const { process.oom_killed = true; }
  void operator()(const tl_rename& event) const {
    if (event.tid == event.header.tgid) {  // a thread's name is not its process's
      process.comm = event.comm;
    }
  }

  void operator()(const tl_map& event) const {
    AddressSpace* space = space_at(event.header);
    if (space == nullptr) {
      return;
    }
    MmapFacts map{.address = event.address,
                  .length = event.length,
                  .protection = event.protection,
                  .flags = event.flags,
                  .file_backed = event.fd >= 0,
                  .filesystem = event.filesystem,
                  .name = event.name,
                  .chunk = facts.chunk};
    space->map(map, event.header.time_ns, event.header.time_ns);
  }

  void operator()(const UnmapEvent& event) const {
    if (AddressSpace* space = space_at(event.header)) {
      space->unmap(event.address, event.length, event.entry_ns);
    }
  }

  void operator()(const tl_remap& event) const {
    if (AddressSpace* space = space_at(event.header)) {
      space->remap(event.old_address, event.old_length, event.new_address, event.new_length, event.entry_ns,
                   event.header.time_ns);
    }
  }

  void operator()(const ProtectEvent& event) const {
    if (AddressSpace* space = space_at(event.header)) {
      space->protect(event.address, event.length, event.argument);
    }
  }

  void operator()(const tl_brk& event) const {
    if (AddressSpace* space = space_at(event.header)) {
      space->set_break(event.start, event.end, event.entry_ns, event.header.time_ns);
    }
  }

  void operator()(const AdviseEvent& event) const {
    if (AddressSpace* space = space_at(event.header)) {
      space->advise(event.address, event.length, event.argument, event.entry_ns);
    }
  }

  void operator()(const AttachShmEvent& event) const {
    if (AddressSpace* space = space_at(event.header)) {
      MmapFacts segment;
      segment.address = event.address;
      segment.length = facts.attached_bytes;
      segment.flags = kMapShared | kMapAnonymous;
      space->map(segment, event.entry_ns, event.header.time_ns);
    }
  }

  void operator()(const DetachShmEvent& event) const {
    AddressSpace* space = space_at(event.header);
    const Mapping* attached = space == nullptr ? nullptr : space->mappings().find(event.address);
    if (attached != nullptr && attached->begin == event.address) {
      space->unmap(event.address, attached->length(), event.entry_ns);
    }
  }

  void operator()(const tl_fault& event) const {
    Faults& faults = process.faults;
    const double scaled = static_cast<double>(event.weight) / std::clamp(facts.sampled_share, 0.001, 1.0);
    const auto weight = static_cast<std::uint64_t>(std::llround(scaled));
    const bool huge = facts.touched_page_bytes > ledger.options_.page_bytes;
    const std::uint64_t page = huge ? facts.touched_page_bytes : ledger.options_.page_bytes;
    AddressSpace* space = space_at(event.header);
    if (space == nullptr) {
      return;
    }
    // Fault-around maps neighbours in the page cache along with the page that was asked for.
    const std::uint64_t pages = weight * std::max<std::uint64_t>(facts.pages_mapped_around, 1);
    switch (space->touch(event.address, pages, page, (event.flags & TL_FAULT_PRESENT) != 0,
                         event.header.time_ns)) {
      case FaultClass::kFirstTouch:
        faults.first_touch += weight;
        break;
      case FaultClass::kCopyOnWrite:
        faults.cow += weight;
        break;
      case FaultClass::kFile:
        faults.file += weight;
        break;
      case FaultClass::kShmem:
        faults.shmem += weight;
        break;
    }
    faults.huge += huge ? weight : 0;
    faults.kernel += (event.flags & TL_FAULT_KERNEL) != 0 ? weight : 0;
  }
};

void Ledger::apply(const Event& event, const EventFacts& facts) {
  if (std::holds_alternative<tl_fork>(event) && processes_.size() >= options_.max_processes) {
    make_room();
  }
  Process* process = live_process(header_of(event).tgid);
  if (process == nullptr) {
    ++orphan_events_;
    return;
  }
  std::visit(Applier{*this, facts, *process}, event);
}

void Ledger::set_counters(std::uint32_t pid, const tl_process& counters) {
  if (Process* process = live_process(pid)) {
    take_counters(process->faults, counters);
  }
}

}  // namespace torchleak
