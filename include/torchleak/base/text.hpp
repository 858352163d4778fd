// SPDX-License-Identifier: Apache-2.0
// Text for people: sizes and durations, and the parsing of what people type.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "torchleak/base/result.hpp"

namespace torchleak {

// "0 B", "512 KiB", "1.5 MiB", "12.3 GiB"; a minus sign where negative.
std::string format_bytes(std::int64_t bytes);
// As format_bytes, with a plus sign where positive: "+1.5 MiB".
std::string format_growth(std::int64_t bytes);
// "64K", "1M", "2GiB", "4096" in bytes.
Result<std::uint64_t> parse_bytes(std::string_view text);
// Bytes that came from a target and go to a terminal or a log: control characters and broken UTF-8 are
// escaped.
std::string printable(std::string_view text);
std::vector<std::string_view> split(std::string_view text, char separator);

}  // namespace torchleak
