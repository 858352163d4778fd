// SPDX-License-Identifier: Apache-2.0
// Processes that make processes.
#include <fcntl.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "stage.hpp"

namespace torchleak::workload {
namespace {

class Pipe {
 public:
  Pipe() { require(::pipe2(ends_.data(), O_CLOEXEC) == 0, "pipe2"); }
  int out() const { return ends_[0]; }
  int in() const { return ends_[1]; }
  void tell(std::uint64_t value = 0) const {
    require(::write(in(), &value, sizeof(value)) == sizeof(value), "write");
  }
  std::uint64_t await() const {
    std::uint64_t value = 0;
    require(::read(out(), &value, sizeof(value)) == sizeof(value), "read");
    return value;
  }

 private:
  std::array<int, 2> ends_{};
};

// A child that does `body`, then waits for its parent's end.
template <typename Body>
pid_t fork_child(const Body& body) {
  const pid_t child = ::fork();
  require(child >= 0, "fork");
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    body();
    for (;;) {
      ::pause();
    }
  }
  return child;
}

std::uint64_t id_of(pid_t pid) {
  return static_cast<std::uint64_t>(pid);
}

// The child writes to some of the memory it inherited. `before`: it is forked before the tracer attaches.
int run_fork_cow(const Stage& stage) {
  const std::size_t bytes = stage.number("bytes");
  const std::size_t written = stage.number("written");
  const bool before = stage.number("before") != 0;
  std::byte* memory = map_private(bytes);
  touch(memory, bytes);
  const Pipe go;
  const Pipe wrote;
  const auto body = [&] {
    go.await();
    touch(memory, written);
    wrote.tell();
  };
  if (!before) {
    stage.ready();
  }
  const pid_t child = fork_child(body);
  if (before) {
    stage.ready();
  }
  go.tell();
  wrote.await();
  stage.done({{"child", id_of(child)}, {"bytes", written}});
  return 0;
}

// The child takes memory and ends with the code.
int run_fork_exit(const Stage& stage) {
  const std::size_t bytes = stage.number("bytes");
  const int code = static_cast<int>(stage.number("code"));
  stage.ready();
  const pid_t child = fork_child([&] {
    touch(map_private(bytes), bytes);
    ::_exit(code);
  });
  int status = 0;
  require(::waitpid(child, &status, 0) == child, "waitpid");
  stage.done({{"child", id_of(child)}, {"bytes", bytes}});
  return 0;
}

void await_line(int fd) {
  char byte = 0;
  do {
    require(::read(fd, &byte, 1) == 1, "the executed child is gone");
  } while (byte != '\n');
}

pid_t start_by_fork(char* const* words, int in, int out) {
  return fork_child([&] {
    ::dup2(in, STDIN_FILENO);
    ::dup2(out, STDOUT_FILENO);
    ::execv("/proc/self/exe", words);
    ::_exit(127);
  });
}

// What posix_spawn does by hand: the child runs in our memory until it executes, and takes some of it.
pid_t start_by_vfork(char* const* words, int in, int out, std::byte* memory, std::size_t bytes) {
  const pid_t child = ::vfork();
  if (child == 0) {
    touch(memory, bytes);
    ::dup2(in, STDIN_FILENO);
    ::dup2(out, STDOUT_FILENO);
    ::execv("/proc/self/exe", words);
    ::_exit(127);
  }
  return child;
}

pid_t start_by_spawn(char* const* words, int in, int out) {
  pid_t child = 0;
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, in, STDIN_FILENO);
  ::posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
  const int error = ::posix_spawn(&child, "/proc/self/exe", &actions, nullptr, words, environ);
  ::posix_spawn_file_actions_destroy(&actions);
  errno = error;
  require(error == 0, "posix_spawn");
  return child;
}

// A child that executes this program again, as the workload "mmap" with `bytes`. `how`: fork, vfork or spawn;
// with vfork the child takes `borrowed` bytes in our memory first.
int run_execute(const Stage& stage) {
  const std::string how = stage.text("how");
  const std::size_t borrowed = stage.number("borrowed");
  std::string bytes = "bytes=" + stage.text("bytes");
  std::array<char, 9> program{"workload"};
  std::array<char, 5> name{"mmap"};
  const std::array<char*, 4> words = {program.data(), name.data(), bytes.data(), nullptr};
  const Pipe to;
  const Pipe from;
  stage.ready();
  pid_t child = 0;
  if (how == "fork") {
    child = start_by_fork(words.data(), to.out(), from.in());
  } else if (how == "vfork") {
    child = start_by_vfork(words.data(), to.out(), from.in(), map_private(borrowed), borrowed);
  } else {
    child = start_by_spawn(words.data(), to.out(), from.in());
  }
  require(child > 0, how.c_str());
  await_line(from.out());
  require(::write(to.in(), "go\n", 3) == 3, "write");
  await_line(from.out());
  stage.done({{"child", id_of(child)}, {"bytes", stage.number("bytes")}, {"borrowed", borrowed}});
  return 0;
}

// Each generation takes `bytes` more than the one before and makes the next.
void take_and_descend(std::size_t depth, std::size_t bytes, std::size_t level, const Pipe& born) {
  touch(map_private(level * bytes), level * bytes);
  born.tell(id_of(::getpid()));
  if (level < depth) {
    fork_child([&] { take_and_descend(depth, bytes, level + 1, born); });
  }
}

int run_nested(const Stage& stage) {
  const std::size_t bytes = stage.number("bytes");
  const Pipe born;
  stage.ready();
  fork_child([&] { take_and_descend(3, bytes, 1, born); });
  const std::uint64_t first = born.await();
  const std::uint64_t second = born.await();
  const std::uint64_t third = born.await();
  stage.done({{"first", first}, {"second", second}, {"third", third}});
  return 0;
}

int run_crowd(const Stage& stage) {
  const std::size_t count = stage.number("count");
  const bool before = stage.number("before") != 0;
  if (!before) {
    stage.ready();
  }
  const Pipe born;
  for (std::size_t i = 0; i < count; ++i) {
    fork_child([&] { born.tell(); });
  }
  for (std::size_t i = 0; i < count; ++i) {
    born.await();
  }
  if (before) {
    stage.ready();
  }
  stage.done({{"count", count}});
  return 0;
}

bool ask_for_pid(pid_t pid) {
  const int fd = ::open("/proc/sys/kernel/ns_last_pid", O_WRONLY | O_CLOEXEC);
  std::array<char, 16> text{};
  const int length = std::snprintf(text.data(), text.size(), "%d", pid - 1);
  const bool asked = fd >= 0 && ::write(fd, text.data(), static_cast<std::size_t>(length)) == length;
  ::close(fd);
  return asked;
}

// A child takes `first` bytes and ends; another then gets its pid and takes `second`. reused=0 where the pid
// went elsewhere in spite of all tries.
int run_pid_reuse(const Stage& stage) {
  const std::size_t first_bytes = stage.number("first");
  const std::size_t second_bytes = stage.number("second");
  const Pipe took;
  stage.ready();
  const pid_t first = fork_child([&] {
    touch(map_private(first_bytes), first_bytes);
    ::_exit(0);
  });
  require(::waitpid(first, nullptr, 0) == first, "waitpid");
  pid_t second = 0;
  for (int tries = 0; tries < 100 && second != first && ask_for_pid(first); ++tries) {
    second = fork_child([&] {
      if (::getpid() != first) {
        ::_exit(0);
      }
      touch(map_private(second_bytes), second_bytes);
      took.tell();
    });
    if (second != first) {
      require(::waitpid(second, nullptr, 0) == second, "waitpid");
    }
  }
  if (second == first) {
    took.await();
  }
  stage.done({{"child", id_of(first)}, {"reused", second == first ? 1U : 0U}});
  return 0;
}

}  // namespace

std::span<const Entry> family_workloads() {
  static constexpr std::array kEntries = {
      Entry{"fork-cow", run_fork_cow}, Entry{"fork-exit", run_fork_exit}, Entry{"execute", run_execute},
      Entry{"nested", run_nested},     Entry{"crowd", run_crowd},         Entry{"pid-reuse", run_pid_reuse},
  };
  return kEntries;
}

}  // namespace torchleak::workload
