// SPDX-License-Identifier: Apache-2.0
#include "torchleak/base/text.hpp"

#include <fmt/format.h>

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>

namespace torchleak {
namespace {

constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};

// Length of the well-formed UTF-8 sequence at the start of `text`, 0 where it is broken.
std::size_t utf8_length(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const std::size_t length = lead < 0x80                   ? 1
                             : lead >= 0xC2 && lead < 0xE0 ? 2
                             : lead >= 0xE0 && lead < 0xF0 ? 3
                             : lead >= 0xF0 && lead < 0xF5 ? 4
                                                           : 0;
  if (length == 0 || length > text.size()) {
    return 0;
  }
  for (std::size_t i = 1; i < length; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) {
      return 0;
    }
  }
  const auto second = length > 1 ? static_cast<unsigned char>(text[1]) : 0;
  const bool overlong = (lead == 0xE0 && second < 0xA0) || (lead == 0xF0 && second < 0x90);
  const bool outside = (lead == 0xED && second >= 0xA0) || (lead == 0xF4 && second >= 0x90);
  return overlong || outside ? 0 : length;
}

}  // namespace

std::string format_bytes(std::int64_t bytes) {
  double value = std::abs(static_cast<double>(bytes));
  std::size_t unit = 0;
  // From 1023.5 on a figure without decimals would read "1024".
  while (value >= 1023.5 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  const char* sign = bytes < 0 ? "-" : "";
  const bool whole = unit == 0 || value == std::floor(value) || value >= 99.95;
  return whole ? fmt::format("{}{:.0f} {}", sign, value, kUnits[unit])
               : fmt::format("{}{:.1f} {}", sign, value, kUnits[unit]);
}

std::string format_growth(std::int64_t bytes) {
  return (bytes > 0 ? "+" : "") + format_bytes(bytes);
}

Result<std::uint64_t> parse_bytes(std::string_view text) {
  std::uint64_t number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  std::string_view unit(rest, static_cast<std::size_t>(text.data() + text.size() - rest));
  if (error == std::errc{}) {
    if (unit.size() == 3 && unit.ends_with("iB")) {
      unit.remove_suffix(2);
    } else if (unit.ends_with('B') || unit.ends_with('b')) {
      unit.remove_suffix(1);
    }
    constexpr std::string_view kPrefixes = "KMGT";
    const char prefix =
        unit.empty() ? '\0' : static_cast<char>(std::toupper(static_cast<unsigned char>(unit[0])));
    const std::size_t power = unit.empty() ? 0 : kPrefixes.find(prefix) + 1;
    const unsigned shift = static_cast<unsigned>(10 * power);
    if (unit.size() <= 1 && power <= kPrefixes.size() && (unit.empty() || power > 0) &&
        number <= (std::numeric_limits<std::uint64_t>::max() >> shift)) {
      return number << shift;
    }
  }
  return fail(fmt::format("'{}' is not a size; write for example 4096, 64K or 1M", printable(text)));
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const std::size_t length = utf8_length(text);
    const auto byte = static_cast<unsigned char>(text[0]);
    // C0 and DEL, and C1 (U+0080 to U+009F), which some terminals obey too.
    const bool control = byte < 0x20 || byte == 0x7F ||
                         (length == 2 && byte == 0xC2 && static_cast<unsigned char>(text[1]) < 0xA0);
    if (length == 0 || control) {
      const std::size_t escaped = length == 0 ? 1 : length;
      for (std::size_t i = 0; i < escaped; ++i) {
        out += fmt::format("\\x{:02x}", static_cast<unsigned char>(text[i]));
      }
      text.remove_prefix(escaped);
    } else {
      out.append(text.substr(0, length));
      text.remove_prefix(length);
    }
  }
  return out;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t at = text.find(separator);
    parts.push_back(text.substr(0, at));
    if (at == std::string_view::npos) {
      return parts;
    }
    text.remove_prefix(at + 1);
  }
}

}  // namespace torchleak
