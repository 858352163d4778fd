// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <ostream>
#include <string>
#include <vector>

#include "layout.hpp"

namespace torchleak {

enum class Align : std::uint8_t { kLeft, kRight };

struct Column {
  std::string title;
  Align align = Align::kRight;
  int keep = 0;           // where the width is short, the column with the lowest goes first
  std::size_t least = 0;  // columns it may be shortened to; 0 where it may not
};

struct Cell {
  std::string text;
  Ink ink = Ink::kPlain;
};

// Rows under titles. A column in which every cell is empty is left out; what does not fit is shortened, then
// left out.
class Table {
 public:
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}
  void add(std::vector<Cell> row);
  void write(std::ostream& out, std::size_t indent, std::size_t width, bool color) const;

 private:
  // The width of each column, 0 where it is left out.
  std::vector<std::size_t> fit(std::size_t width) const;

  std::vector<Column> columns_;
  std::vector<std::vector<Cell>> rows_;
};

}  // namespace torchleak
