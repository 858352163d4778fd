// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "torchleak/core/report.hpp"

namespace torchleak {

struct Placed {
  const ProcessReport* process = nullptr;
  std::size_t depth = 0;
};

// Which processes get a line of their own. Subprocesses that came and went well are many and alike: they are
// folded.
struct Lines {
  std::vector<Placed> shown;                  // parents before their children
  std::vector<const ProcessReport*> folded;   // subprocesses that ended well, where there are more than a few
  std::vector<const ProcessReport*> omitted;  // beyond `limit`, those that changed least
};

Lines choose_lines(const Report& report, std::size_t limit);
// The processes to explain one by one, most changed first.
std::vector<const ProcessReport*> those_that_matter(const Report& report, std::size_t limit);

}  // namespace torchleak
