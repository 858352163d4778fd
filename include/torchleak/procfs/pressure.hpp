// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

namespace torchleak::procfs {

// Asked of a machine that has swap: swapping has begun, memory is short, or a control group limits the
// process.
bool swapping_is_likely(pid_t pid);

// The tightest memory limit of the control groups that hold a process, version 1 or 2; nullopt where there is
// none.
std::optional<std::uint64_t> memory_limit(pid_t pid);

}  // namespace torchleak::procfs
