// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "torchleak/base/unique_fd.hpp"

namespace torchleak::app {

// Ctrl-C and SIGTERM as something to wait for. They are blocked from its construction on; a second one, while
// the report is written, does what it always did.
class StopSignal {
 public:
  StopSignal();
  ~StopSignal();
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  // Waits up to so many milliseconds; true if it was told to stop.
  bool wait(int milliseconds);

 private:
  UniqueFd fd_;
};

}  // namespace torchleak::app
