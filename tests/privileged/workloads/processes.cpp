// SPDX-License-Identifier: Apache-2.0
// How a process ends.
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>

#include "stage.hpp"

namespace torchleak::workload {
namespace {

// Ends by itself, without waiting for the test, as a job does.
int run_exit(const Stage& stage) {
  const std::size_t bytes = stage.number("bytes");
  stage.ready();
  touch(map_private(bytes), bytes);
  return static_cast<int>(stage.number("code"));
}

int run_die(const Stage& stage) {
  const std::size_t bytes = stage.number("bytes");
  stage.ready();
  touch(map_private(bytes), bytes);
  std::raise(static_cast<int>(stage.number("signal")));
  return 0;
}

// Returns at once; for a command that is traced from its first instruction and has nobody to speak to.
int run_take_and_leave(const Stage& stage) {
  const std::size_t bytes = stage.number("bytes");
  touch(map_private(bytes), bytes);
  return static_cast<int>(stage.number("code"));
}

int run_zombie(const Stage& stage) {
  stage.ready();
  const pid_t child = ::fork();
  if (child == 0) {
    ::_exit(0);
  }
  siginfo_t ended{};
  require(::waitid(P_PID, static_cast<id_t>(child), &ended, WEXITED | WNOWAIT) == 0, "waitid");
  stage.done({{"child", static_cast<std::uint64_t>(child)}});
  return 0;
}

// Takes memory until there is no more.
int run_glutton(const Stage& stage) {
  constexpr std::size_t kBite = std::size_t{1} << 20;
  stage.ready();
  for (;;) {
    touch(map_private(kBite), kBite);
  }
}

}  // namespace

std::span<const Entry> process_workloads() {
  static constexpr std::array kEntries = {
      Entry{"exit", run_exit},     Entry{"die", run_die},         Entry{"take-and-leave", run_take_and_leave},
      Entry{"zombie", run_zombie}, Entry{"glutton", run_glutton},
  };
  return kEntries;
}

}  // namespace torchleak::workload
