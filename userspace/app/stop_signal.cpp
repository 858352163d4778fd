// SPDX-License-Identifier: Apache-2.0
#include "torchleak/app/stop_signal.hpp"

#include <poll.h>
#include <sys/signalfd.h>

#include <csignal>

namespace torchleak::app {
namespace {

sigset_t stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  sigaddset(&set, SIGHUP);
  return set;
}

}  // namespace

StopSignal::StopSignal() {
  const sigset_t set = stop_signals();
  ::sigprocmask(SIG_BLOCK, &set, nullptr);
  fd_ = UniqueFd(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
}

StopSignal::~StopSignal() {
  const sigset_t set = stop_signals();
  ::sigprocmask(SIG_UNBLOCK, &set, nullptr);
}

bool StopSignal::wait(int milliseconds) {
  pollfd waiting{fd_.get(), POLLIN, 0};
  if (::poll(&waiting, 1, milliseconds) <= 0) {
    return false;
  }
  signalfd_siginfo received{};
  return ::read(fd_.get(), &received, sizeof(received)) == sizeof(received);
}

}  // namespace torchleak::app
