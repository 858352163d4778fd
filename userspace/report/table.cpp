// SPDX-License-Identifier: Apache-2.0
#include "table.hpp"

#include <algorithm>
#include <cassert>

namespace torchleak {
namespace {

constexpr std::size_t kGap = 2;

}  // namespace

void Table::add(std::vector<Cell> row) {
  assert(row.size() == columns_.size());
  rows_.push_back(std::move(row));
}

std::vector<std::size_t> Table::fit(std::size_t width) const {
  std::vector<std::size_t> widths(columns_.size(), 0);
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], display_width(row[i].text));
    }
  }
  for (std::size_t i = 0; i < widths.size(); ++i) {
    widths[i] = widths[i] == 0 ? 0 : std::max(widths[i], display_width(columns_[i].title));
  }
  while (true) {
    std::size_t total = 0;
    std::size_t slack = 0;  // what shortening can give
    std::size_t weakest = widths.size();
    std::size_t shown = 0;
    for (std::size_t i = 0; i < widths.size(); ++i) {
      if (widths[i] == 0) {
        continue;
      }
      total += widths[i] + (++shown > 1 ? kGap : 0);
      const std::size_t least = columns_[i].least;
      slack += least > 0 && widths[i] > least ? widths[i] - least : 0;
      weakest = weakest == widths.size() || columns_[i].keep < columns_[weakest].keep ? i : weakest;
    }
    std::size_t excess = total > width ? total - width : 0;
    if (excess > slack && shown > 1) {
      widths[weakest] = 0;
      continue;
    }
    for (std::size_t i = 0; i < widths.size() && excess > 0; ++i) {
      if (columns_[i].least > 0 && widths[i] > columns_[i].least) {
        const std::size_t cut = std::min(excess, widths[i] - columns_[i].least);
        widths[i] -= cut;
        excess -= cut;
      }
    }
    return widths;
  }
}

void Table::write(std::ostream& out, std::size_t indent, std::size_t width, bool color) const {
  const std::vector<std::size_t> widths = fit(width > indent ? width - indent : 1);
  const auto write_row = [&](const auto& cell_of) {
    std::size_t pending = indent;  // spaces are written before a cell, never at a line's end
    for (std::size_t i = 0; i < widths.size(); ++i) {
      if (widths[i] == 0) {
        continue;
      }
      const Cell cell = cell_of(i);
      const std::string text = shorten(cell.text, widths[i]);
      const std::size_t space = widths[i] - display_width(text);
      const bool right = columns_[i].align == Align::kRight;
      if (!text.empty()) {
        out << std::string(pending + (right ? space : 0), ' ') << paint(text, cell.ink, color);
        pending = 0;
      } else {
        pending += right ? space : 0;
      }
      pending += (right ? 0 : space) + kGap;
    }
    out << '\n';
  };
  write_row([&](std::size_t i) { return Cell{columns_[i].title, Ink::kDim}; });
  for (const auto& row : rows_) {
    write_row([&](std::size_t i) { return row[i]; });
  }
}

}  // namespace torchleak
