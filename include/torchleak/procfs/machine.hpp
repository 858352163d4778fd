// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "torchleak/core/report.hpp"

namespace torchleak::procfs {

// The machine's facts; what cannot be read stays empty or 0.
Machine read_machine();

}  // namespace torchleak::procfs
