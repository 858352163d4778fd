// SPDX-License-Identifier: Apache-2.0
// Can this machine trace, and may this user? Asked before anything is touched.
#pragma once

#include <string>
#include <vector>

#include "torchleak/base/result.hpp"

namespace torchleak::app {

struct Preflight {
  int status = 0;                  // 0: go on; 1 or 77: leave with it
  std::string message;             // what is wrong and what to do
  std::vector<std::string> notes;  // what was mended or will be missing, for the report
};

Preflight check_machine();

}  // namespace torchleak::app
