// SPDX-License-Identifier: Apache-2.0
// A job that starts a subprocess for each item would fill the books with processes long gone.
#include <limits>
#include <utility>

#include "torchleak/core/ledger.hpp"

namespace torchleak {
namespace {

constexpr std::size_t kForgotten = std::numeric_limits<std::size_t>::max();

void follow(std::optional<std::size_t>& index, const std::vector<std::size_t>& moved_to) {
  if (index) {
    index = moved_to[*index] == kForgotten ? std::nullopt : std::optional(moved_to[*index]);
  }
}

}  // namespace

// Subprocesses go first, oldest first: they have no slot that a later one continues. A quarter at a time, so
// that the work is spread thin.
void Ledger::make_room() {
  const std::size_t wanted = options_.max_processes * 3 / 4;
  std::size_t left = processes_.size();
  std::vector<bool> forget(processes_.size());
  for (const bool subprocesses_only : {true, false}) {
    for (std::size_t i = 0; i < processes_.size() && left > wanted; ++i) {
      const Process& process = processes_[i];
      if (!forget[i] && process.ended_ns && !process.target && (process.execed || !subprocesses_only)) {
        forget[i] = true;
        --left;
      }
    }
  }
  forgotten_processes_ += processes_.size() - left;

  std::vector<std::size_t> moved_to(processes_.size(), kForgotten);
  std::deque<Process> kept;
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    if (!forget[i]) {
      moved_to[i] = kept.size();
      kept.push_back(std::move(processes_[i]));
    }
  }
  processes_ = std::move(kept);
  for (Process& process : processes_) {
    follow(process.parent, moved_to);
    follow(process.borrows_memory_of, moved_to);
  }
  for (auto& [pid, index] : live_) {
    index = moved_to[index];
  }
}

}  // namespace torchleak
