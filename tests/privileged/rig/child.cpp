// SPDX-License-Identifier: Apache-2.0
#include "child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <stdexcept>

namespace torchleak::rig {
namespace {

UniqueFd memory_file(const char* name) {
  return UniqueFd(::memfd_create(name, MFD_CLOEXEC));
}

std::string read_whole(int fd) {
  std::string text;
  std::array<char, 4096> buffer{};
  for (off_t at = 0;;) {
    const ssize_t got = ::pread(fd, buffer.data(), buffer.size(), at);
    if (got <= 0) {
      return text;
    }
    text.append(buffer.data(), static_cast<std::size_t>(got));
    at += got;
  }
}

struct Ends {
  UniqueFd read;
  UniqueFd write;
};

Ends make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw std::runtime_error("no pipe");
  }
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

}  // namespace

void await_readable(int fd, const std::string& what) {
  pollfd wait{fd, POLLIN, 0};
  const auto limit = std::chrono::duration_cast<std::chrono::milliseconds>(kDeadline);
  if (::poll(&wait, 1, static_cast<int>(limit.count())) != 1) {
    throw std::runtime_error("waited too long for " + what);
  }
}

Child::Child(const std::vector<std::string>& words, const ChildSetup& setup)
    : name_(words.at(0)), out_file_(memory_file("out")), err_file_(memory_file("err")) {
  Ends in = make_pipe();
  Ends out = make_pipe();
  pid_ = ::fork();
  if (pid_ < 0) {
    throw std::runtime_error(std::string("fork: ") + std::strerror(errno));
  }
  if (pid_ == 0) {
    become(words, setup, in.read.get(), setup.speaks ? out.write.get() : out_file_.get());
  }
  pidfd_ = UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0)));
  to_ = std::move(in.write);
  from_ = std::move(out.read);
}

void Child::become(const std::vector<std::string>& words, const ChildSetup& setup, int in, int out) const {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::dup2(in, STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(err_file_.get(), STDERR_FILENO);
  if (setup.inherited_fd >= 0) {
    ::fcntl(setup.inherited_fd, F_SETFD, 0);
  }
  std::vector<char*> arguments;
  for (const std::string& word : words) {
    arguments.push_back(const_cast<char*>(word.c_str()));
  }
  arguments.push_back(nullptr);
  if (setup.uid == 0 || ::setresuid(setup.uid, setup.uid, setup.uid) == 0) {
    ::execv(arguments[0], arguments.data());
  }
  ::_exit(126);
}

Child::~Child() {
  if (!ended_) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
}

void Child::say(std::string_view line) {
  const std::string text = std::string(line) + "\n";
  if (::write(to_.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    throw std::runtime_error(name_ + " does not listen any more");
  }
}

std::string Child::hear() {
  for (;;) {
    if (const auto end = heard_.find('\n'); end != std::string::npos) {
      std::string line = heard_.substr(0, end);
      heard_.erase(0, end + 1);
      return line;
    }
    await_readable(from_.get(), "a line of " + name_);
    std::array<char, 512> buffer{};
    const ssize_t got = ::read(from_.get(), buffer.data(), buffer.size());
    if (got <= 0) {
      throw std::runtime_error(name_ + " says nothing more; stderr: " + err());
    }
    heard_.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

void Child::kill(int signal) const {
  ::kill(pid_, signal);
}

int Child::wait() {
  if (!ended_) {
    await_readable(pidfd_.get(), "the end of " + name_);
    ::waitpid(pid_, &status_, 0);
    ended_ = true;
  }
  return status_;
}

int Child::exit_status() {
  const int status = wait();
  if (!WIFEXITED(status)) {
    throw std::runtime_error(name_ + " was ended by signal " + std::to_string(WTERMSIG(status)) +
                             "; stderr: " + err());
  }
  return WEXITSTATUS(status);
}

std::string Child::out() const {
  return read_whole(out_file_.get());
}

std::string Child::err() const {
  return read_whole(err_file_.get());
}

}  // namespace torchleak::rig
