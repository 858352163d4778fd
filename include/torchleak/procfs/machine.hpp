// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "torchleak/core/report.hpp"

namespace torchleak::procfs {

// The machine's facts; what cannot be read stays empty or 0.
Machine read_machine();

// CPU time of all processes and of the kernel since boot; 0 where it cannot be read.
std::uint64_t busy_cpu_ns();

// Page faults of all processes since boot; 0 where they cannot be read.
std::uint64_t machine_faults();

}  // namespace torchleak::procfs
