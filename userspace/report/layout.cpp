// SPDX-License-Identifier: Apache-2.0
#include "layout.hpp"

#include <algorithm>
#include <array>

#include "torchleak/base/text.hpp"

namespace torchleak {
namespace {

bool begins_code_point(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
}

std::string_view escape_of(Ink ink) {
  switch (ink) {
    case Ink::kBold:
      return "\x1b[1m";
    case Ink::kDim:
      return "\x1b[2m";
    case Ink::kRed:
      return "\x1b[1;31m";
    case Ink::kYellow:
      return "\x1b[33m";
    case Ink::kGreen:
      return "\x1b[32m";
    case Ink::kPlain:
      break;
  }
  return "";
}

// Byte offset of the code point number `count`.
std::size_t offset_of(std::string_view text, std::size_t count) {
  std::size_t at = 0;
  while (at < text.size() && (count > 0 || !begins_code_point(text[at]))) {
    count -= begins_code_point(text[at]) ? 1 : 0;
    ++at;
  }
  return at;
}

bool is_unit(std::string_view word) {
  static constexpr std::array<std::string_view, 9> kUnits = {"B", "KiB", "MiB", "GiB", "TiB",
                                                             "s", "ms",  "min", "%"};
  const std::string_view bare = word.substr(0, word.find_first_of(",.;:)/"));
  return std::find(kUnits.begin(), kUnits.end(), bare) != kUnits.end();
}

}  // namespace

std::string paint(std::string_view text, Ink ink, bool color) {
  const std::string_view escape = escape_of(ink);
  if (!color || escape.empty() || text.empty()) {
    return std::string(text);
  }
  return std::string(escape).append(text).append("\x1b[0m");
}

std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins_code_point));
}

std::string shorten(std::string_view text, std::size_t width) {
  const std::size_t length = display_width(text);
  if (length <= width) {
    return std::string(text);
  }
  if (width == 0) {
    return "";
  }
  const std::size_t head = width / 2;
  const std::size_t tail = width - head - 1;
  return std::string(text.substr(0, offset_of(text, head))) + "…" +
         std::string(text.substr(offset_of(text, length - tail)));
}

std::vector<std::string> wrap(std::string_view text, std::size_t width) {
  std::vector<std::string> words;
  for (const std::string_view word : split(text, ' ')) {
    const bool glued = !words.empty() && !words.back().empty() && words.back().back() >= '0' &&
                       words.back().back() <= '9' && is_unit(word);
    if (glued) {
      words.back().append(" ").append(word);
    } else if (!word.empty()) {
      words.emplace_back(word);
    }
  }
  std::vector<std::string> lines;
  std::size_t used = 0;
  for (const std::string& word : words) {
    const std::string shown = shorten(word, width);
    const std::size_t length = display_width(shown);
    if (lines.empty() || used + 1 + length > width) {
      lines.push_back(shown);
      used = length;
    } else {
      lines.back().append(" ").append(shown);
      used += 1 + length;
    }
  }
  return lines;
}

void write_paragraph(std::ostream& out, std::string_view lead, std::string_view text, std::size_t width,
                     Ink ink, bool color) {
  const std::size_t indent = display_width(lead);
  std::string margin(lead);
  for (const std::string& line : wrap(text, width > indent ? width - indent : 1)) {
    out << margin << paint(line, ink, color) << '\n';
    margin.assign(indent, ' ');
  }
}

}  // namespace torchleak
