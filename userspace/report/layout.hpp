// SPDX-License-Identifier: Apache-2.0
// Text measured in terminal columns. One code point counts as one column, which holds for all that the report
// prints itself.
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

namespace torchleak {

enum class Ink : std::uint8_t { kPlain, kBold, kDim, kRed, kYellow, kGreen };

std::string paint(std::string_view text, Ink ink, bool color);
std::size_t display_width(std::string_view text);
// At most `width` columns: the middle gives way to an ellipsis, as both ends of a name tell more.
std::string shorten(std::string_view text, std::size_t width);
// Lines of at most `width` columns, broken at spaces but not between a figure and its unit.
std::vector<std::string> wrap(std::string_view text, std::size_t width);
// A paragraph whose first line begins with `lead` and whose others are indented as far.
void write_paragraph(std::ostream& out, std::string_view lead, std::string_view text, std::size_t width,
                     Ink ink = Ink::kPlain, bool color = false);

}  // namespace torchleak
