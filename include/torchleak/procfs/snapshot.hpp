// SPDX-License-Identifier: Apache-2.0
// From /proc to what the ledger takes: one process observed (cheap, each interval) or photographed (smaps, at
// the start and at the end).
#pragma once

#include <sys/types.h>

#include <cstdint>

#include "torchleak/base/result.hpp"
#include "torchleak/core/process.hpp"
#include "torchleak/procfs/process.hpp"

namespace torchleak::procfs {

std::uint64_t monotonic_ns();

Result<Observation> observe(pid_t pid);
// Fails too where smaps ended early: half an address space is no baseline.
Result<Snapshot> take_snapshot(pid_t pid);

}  // namespace torchleak::procfs
