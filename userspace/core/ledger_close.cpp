// SPDX-License-Identifier: Apache-2.0
// Closing the books: from what was kept of each process to its part of the report.
#include <algorithm>

#include "torchleak/core/ledger.hpp"
#include "torchleak/core/roles.hpp"

namespace torchleak {
namespace {

ProcessFacts facts_of(const Process& process, std::int64_t boottime_offset_ns) {
  ProcessFacts facts;
  facts.pid = process.pid;
  facts.start_ns = process.start_ns;
  facts.parent = process.parent;
  if (process.ended_ns) {
    facts.ended_ns = *process.ended_ns + static_cast<std::uint64_t>(boottime_offset_ns);
  }
  facts.target = process.target;
  facts.execed = process.execed;
  facts.comm = process.comm;
  facts.cmdline = process.cmdline;
  facts.caught_signals = process.caught_signals;
  return facts;
}

// At the end: what the kernel said of each mapping, or for a process that is gone the ledger's estimate.
std::vector<SourceRow> source_rows(const Process& process) {
  const SourceBytes end = process.end_sources ? *process.end_sources : process.space.resident();
  const SourceBytes copied = process.space.copied_on_write();
  std::vector<SourceRow> rows;
  for (std::size_t i = 0; i < kSourceCount; ++i) {
    const auto source = static_cast<Source>(i);
    const SourceRow row{.source = source,
                        .start = process.start_sources[source],
                        .end = end[source],
                        .growth = end[source] - process.start_sources[source],
                        .cow = copied[source]};
    if (row.start != 0 || row.end != 0 || row.cow != 0) {
      rows.push_back(row);
    }
  }
  return rows;
}

// A page swapped in faults as fresh memory does, but was memory before; their number is known exactly. Those
// whose first touch was sampled too are known by that to have come back, and are neither taken nor freed; the
// others look fresh.
Reconciliation reconcile(const Process& process, std::uint64_t page_bytes) {
  Reconciliation sum;
  sum.start = static_cast<std::int64_t>(process.start.rss + process.start.swap);
  const std::uint64_t returned = process.space.returned_bytes();
  const std::uint64_t swapped_in = process.faults.swap_in * page_bytes;
  const std::uint64_t seen_as_fresh = swapped_in - std::min(swapped_in, returned);
  const std::uint64_t touched = process.space.attributed_bytes() - returned;
  sum.attributed = static_cast<std::int64_t>(touched - std::min(touched, seen_as_fresh));
  sum.freed = static_cast<std::int64_t>(process.space.freed_bytes() - returned);
  sum.measured = static_cast<std::int64_t>(process.latest.rss + process.latest.swap);
  sum.unexplained = sum.measured - (sum.start + sum.attributed - sum.freed);
  return sum;
}

}  // namespace

std::vector<ProcessReport> Ledger::close(std::uint64_t now_ns) const {
  std::vector<ProcessFacts> facts;
  facts.reserve(processes_.size());
  for (const Process& process : processes_) {
    facts.push_back(facts_of(process, options_.boottime_offset_ns));
  }
  const std::vector<RoleOf> roles = assign_roles(facts);

  std::vector<ProcessReport> reports;
  reports.reserve(processes_.size());
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    const Process& process = processes_[i];
    ProcessReport report;
    report.pid = process.pid;
    report.ppid = process.ppid;
    report.start_time_ns = process.start_ns;
    report.comm = process.comm;
    report.cmdline = process.cmdline;
    report.role = roles[i].role;
    report.worker = roles[i].worker;
    report.started_s = seconds(process.born_ns);
    if (process.ended_ns) {
      report.ended_s = seconds(std::min(*process.ended_ns, now_ns));
    }
    report.exit = process.exit;
    report.start = process.start;
    report.end = process.latest;
    report.peak_rss = std::max({process.peak_rss, process.start.rss, process.latest.rss});
    if (!process.borrows_memory_of) {
      report.sources = source_rows(process);
      report.reconciliation = reconcile(process, options_.page_bytes);
    }
    report.faults = process.faults;
    report.faults.first_touch -= std::min(report.faults.first_touch, report.faults.swap_in);
    report.timeline = process.timeline;
    reports.push_back(std::move(report));
  }
  return reports;
}

}  // namespace torchleak
