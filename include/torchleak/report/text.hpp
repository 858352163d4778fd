// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ostream>

#include "torchleak/core/report.hpp"

namespace torchleak {

struct TextOptions {
  bool color = false;
  std::size_t width = 100;
  std::size_t top = 10;  // processes shown in full; the rest are summed up in a line
};

// The report for a person: the answer first, then who grew, in what kind of memory, the reconciliation, the
// cost.
void write_text(std::ostream& out, const Report& report, const TextOptions& options);

}  // namespace torchleak
