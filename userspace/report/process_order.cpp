// SPDX-License-Identifier: Apache-2.0
#include "process_order.hpp"

#include <algorithm>
#include <limits>
#include <ranges>
#include <unordered_map>
#include <unordered_set>

#include "words.hpp"

namespace torchleak {
namespace {

constexpr std::size_t kFewSubprocesses = 3;

// How much a process has to say for itself: killed ones first, then by change.
std::uint64_t weight(const ProcessReport& process) {
  return oom_killed(process) ? std::numeric_limits<std::uint64_t>::max() : magnitude(process.growth_bytes());
}

bool ended_well(const ProcessReport& process) {
  return process.ended_s && (!process.exit || *process.exit == Exit{});
}

std::unordered_set<const ProcessReport*> folded_of(const Report& report) {
  std::unordered_set<const ProcessReport*> folded;
  for (const ProcessReport& process : report.processes) {
    if (process.role == Role::kSubprocess && ended_well(process)) {
      folded.insert(&process);
    }
  }
  return folded.size() > kFewSubprocesses ? folded : std::unordered_set<const ProcessReport*>{};
}

// Parents before children, siblings as the report has them. A saved report may claim any parents, circles
// included, so each process is placed once and what no root leads to becomes a root. A pid may be used twice:
// the last that holds it is taken as the parent.
std::vector<Placed> tree_order(const Report& report) {
  std::unordered_map<std::uint32_t, const ProcessReport*> by_pid;
  std::unordered_map<const ProcessReport*, std::vector<const ProcessReport*>> children;
  std::vector<const ProcessReport*> roots;
  for (const ProcessReport& process : report.processes) {
    by_pid[process.pid] = &process;
  }
  for (const ProcessReport& process : report.processes) {
    const auto parent = by_pid.find(process.ppid);
    if (parent == by_pid.end() || parent->second == &process) {
      roots.push_back(&process);
    } else {
      children[parent->second].push_back(&process);
    }
  }
  std::vector<Placed> order;
  std::unordered_set<const ProcessReport*> placed;
  const auto place = [&](const ProcessReport* root) {
    std::vector<Placed> todo = {{root, 0}};
    while (!todo.empty()) {
      const Placed next = todo.back();
      todo.pop_back();
      if (!placed.insert(next.process).second) {
        continue;
      }
      order.push_back(next);
      for (const ProcessReport* child : children[next.process] | std::views::reverse) {
        todo.push_back({child, next.depth + 1});
      }
    }
  };
  std::for_each(roots.begin(), roots.end(), place);
  for (const ProcessReport& process : report.processes) {
    place(&process);
  }
  return order;
}

void heaviest_first(std::vector<const ProcessReport*>& processes) {
  std::stable_sort(processes.begin(), processes.end(),
                   [](const auto* a, const auto* b) { return weight(*a) > weight(*b); });
}

}  // namespace

Lines choose_lines(const Report& report, std::size_t limit) {
  const auto folded = folded_of(report);
  std::vector<const ProcessReport*> ranked;
  for (const ProcessReport& process : report.processes) {
    if (!folded.contains(&process)) {
      ranked.push_back(&process);
    }
  }
  heaviest_first(ranked);
  // A job's main process stays in sight, however little it changed.
  std::stable_partition(ranked.begin(), ranked.end(), [](const auto* p) { return p->role == Role::kMain; });
  const std::size_t kept = std::min(limit, ranked.size());
  const std::unordered_set<const ProcessReport*> keep(ranked.begin(),
                                                      ranked.begin() + static_cast<std::ptrdiff_t>(kept));
  Lines lines;
  for (const Placed& placed : tree_order(report)) {
    if (folded.contains(placed.process)) {
      lines.folded.push_back(placed.process);
    } else if (keep.contains(placed.process)) {
      lines.shown.push_back(placed);
    } else {
      lines.omitted.push_back(placed.process);
    }
  }
  return lines;
}

std::vector<const ProcessReport*> those_that_matter(const Report& report, std::size_t limit) {
  const auto folded = folded_of(report);
  std::vector<const ProcessReport*> found;
  for (const ProcessReport& process : report.processes) {
    if (!folded.contains(&process) && weight(process) >= static_cast<std::uint64_t>(kNoiseBytes)) {
      found.push_back(&process);
    }
  }
  heaviest_first(found);
  found.resize(std::min(limit, found.size()));
  return found;
}

}  // namespace torchleak
