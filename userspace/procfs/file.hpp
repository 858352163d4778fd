// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "torchleak/base/result.hpp"

namespace torchleak::procfs {

// The whole of a file whose size is not known beforehand, as all of /proc and /sys.
Result<std::string> read_file(const std::string& path);

}  // namespace torchleak::procfs
