// SPDX-License-Identifier: Apache-2.0
// Finding what to trace: a running process with all below it, or a command that waits to be let go.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "torchleak/base/result.hpp"
#include "torchleak/base/unique_fd.hpp"
#include "torchleak/core/ledger.hpp"

namespace torchleak::app {

// Refuses what cannot be traced (no such process, a kernel thread, a zombie, ourselves) with the reason.
Result<void> check_target(std::uint32_t pid);

// The process and, if asked, all its descendants, parents first. One that ends meanwhile is left out.
std::vector<FoundProcess> find_tree(std::uint32_t pid, bool children);

// A command that has been forked and waits before its exec.
class Launch {
 public:
  static Result<Launch> prepare(const std::vector<std::string>& command);
  Launch(Launch&&) = default;
  Launch& operator=(Launch&&) = default;
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;
  // A command never let go ends with us; one that runs is left alone.
  ~Launch() = default;

  std::uint32_t pid() const { return static_cast<std::uint32_t>(pid_); }
  // Lets it run; the error says why the command could not be started.
  Result<void> release();

 private:
  Launch(pid_t pid, UniqueFd go, UniqueFd failure)
      : pid_(pid), go_(std::move(go)), failure_(std::move(failure)) {}

  pid_t pid_;
  UniqueFd go_;       // a byte lets it run, its closing ends it
  UniqueFd failure_;  // closed by a successful exec; else the errno
  std::string program_;
};

}  // namespace torchleak::app
