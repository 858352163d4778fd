// SPDX-License-Identifier: Apache-2.0
// The part of the text report about processes: one table of all, then those that matter one by one.
#pragma once

#include <ostream>

#include "torchleak/report/text.hpp"

namespace torchleak {

void write_process_table(std::ostream& out, const Report& report, const TextOptions& options);
void write_process_details(std::ostream& out, const Report& report, const TextOptions& options);

}  // namespace torchleak
