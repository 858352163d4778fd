// SPDX-License-Identifier: Apache-2.0
#include "torchleak/app/tree.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <unordered_set>

#include "torchleak/base/text.hpp"
#include "torchleak/procfs/snapshot.hpp"

namespace torchleak::app {
namespace {

std::optional<FoundProcess> look_at(std::uint32_t pid) {
  const auto id = static_cast<pid_t>(pid);
  const auto stat = procfs::read_stat(id);
  auto observation = procfs::observe(id);
  if (!stat || !observation) {
    return std::nullopt;
  }
  FoundProcess found;
  found.pid = pid;
  found.ppid = stat->ppid;
  found.start_ns = procfs::ticks_to_ns(stat->start_ticks);
  found.comm = stat->comm;
  found.cmdline = procfs::read_cmdline(id);
  found.observation = *observation;
  if (const auto parent = procfs::read_stat(static_cast<pid_t>(stat->ppid))) {
    found.execed = procfs::has_execed(*stat, *parent);
  }
  return found;
}

}  // namespace

Result<void> check_target(std::uint32_t pid) {
  if (pid == static_cast<std::uint32_t>(::getpid())) {
    return fail(fmt::format("{} is this tracer itself; give the pid of the job", pid));
  }
  const auto stat = procfs::read_stat(static_cast<pid_t>(pid));
  if (!stat) {
    return fail(fmt::format("no process {}; 'ps -e' or 'pgrep -f train.py' lists those that run", pid));
  }
  if (stat->kernel_thread) {
    return fail(
        fmt::format("{} ({}) is a kernel thread and has no memory of its own; give the pid of the job", pid,
                    printable(stat->comm)));
  }
  if (stat->state == 'Z' || stat->state == 'X') {
    return fail(fmt::format("{} ({}) has ended already and only waits for its parent {} (a zombie)", pid,
                            printable(stat->comm), stat->ppid));
  }
  return {};
}

std::vector<FoundProcess> find_tree(std::uint32_t pid, bool children) {
  std::vector<FoundProcess> found;
  std::unordered_set<std::uint32_t> seen;
  std::vector<std::uint32_t> waiting{pid};
  for (std::size_t next = 0; next < waiting.size(); ++next) {
    const std::uint32_t current = waiting[next];
    if (!seen.insert(current).second || current == static_cast<std::uint32_t>(::getpid())) {
      continue;
    }
    if (auto process = look_at(current)) {
      process->target = current == pid;
      found.push_back(std::move(*process));
    }
    if (children) {
      for (const pid_t child : procfs::read_children(static_cast<pid_t>(current))) {
        waiting.push_back(static_cast<std::uint32_t>(child));
      }
    }
  }
  return found;
}

Result<Launch> Launch::prepare(const std::vector<std::string>& command) {
  std::array<int, 2> go{};
  std::array<int, 2> failure{};
  if (::pipe2(go.data(), O_CLOEXEC) != 0) {
    return fail(fmt::format("no pipe for the command: {}", std::strerror(errno)));
  }
  UniqueFd go_read(go[0]);
  UniqueFd go_write(go[1]);
  if (::pipe2(failure.data(), O_CLOEXEC) != 0) {
    return fail(fmt::format("no pipe for the command: {}", std::strerror(errno)));
  }
  UniqueFd failure_read(failure[0]);
  UniqueFd failure_write(failure[1]);

  std::vector<char*> arguments;
  arguments.reserve(command.size() + 1);
  for (const std::string& word : command) {
    arguments.push_back(const_cast<char*>(word.c_str()));
  }
  arguments.push_back(nullptr);

  const pid_t pid = ::fork();
  if (pid < 0) {
    return fail(fmt::format("the command cannot be started: {}", std::strerror(errno)));
  }
  if (pid == 0) {
    ::close(go[1]);
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    char byte = 0;
    if (::read(go[0], &byte, 1) != 1) {
      ::_exit(0);  // the tracer gave up
    }
    ::execvp(arguments[0], arguments.data());
    const int error = errno;
    (void)!::write(failure[1], &error, sizeof(error));
    ::_exit(127);
  }
  Launch launch(pid, std::move(go_write), std::move(failure_read));
  launch.program_ = command[0];
  return launch;
}

Result<void> Launch::release() {
  const char byte = 1;
  if (::write(go_.get(), &byte, 1) != 1) {
    return fail(fmt::format("the command ended before it began: {}", std::strerror(errno)));
  }
  int error = 0;
  if (::read(failure_.get(), &error, sizeof(error)) == sizeof(error)) {
    return fail(fmt::format("'{}' cannot be run: {}; check its name, or give its whole path",
                            printable(program_), std::strerror(error)));
  }
  return {};
}

}  // namespace torchleak::app
