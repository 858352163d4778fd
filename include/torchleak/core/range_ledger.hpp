// SPDX-License-Identifier: Apache-2.0
// The mappings of one address space as disjoint ranges.
//
//   begin                      insert 0x1000..0x9000 (heap, 32 KiB resident at the start of the capture)
//   |==========|               0x1000..0x9000
//   erase 0x4000..0x6000
//   |===|    |===|             0x1000..0x4000 (12 KiB resident), 0x6000..0x9000 (12 KiB resident)
//
// Bytes that were resident before the capture are known a mapping at a time, not a page at a time; a split shares them
// out by length, and no byte is ever lost or made by it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "torchleak/core/source.hpp"

namespace torchleak {

struct Mapping {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t created_ns = 0;      // when the call that made it returned; 0 where it predates the capture
  std::uint64_t baseline_bytes = 0;  // resident or swapped when the capture (or the process) began, not freed since
  Source source = Source::kAnonOther;
  bool shared = false;     // MAP_SHARED: writes are seen by others and never copied
  bool inherited = false;  // came over a fork
  std::string name;
  std::uint64_t length() const { return end - begin; }
  bool operator==(const Mapping&) const = default;
};

class RangeLedger {
 public:
  // Adds a mapping in place of whatever lay there (MAP_FIXED, or an unmap that has not been heard of yet). Returns what
  // was displaced. An empty range, or one whose end lies before its begin, is ignored.
  std::vector<Mapping> insert(Mapping mapping);

  // Removes [begin, end), splitting at its edges, and returns the pieces removed. A mapping created at or after
  // `entered_ns` stays: the kernel had already freed the range when another thread was given it again, and the record
  // of the unmapping call, written at its return, came second.
  std::vector<Mapping> erase(std::uint64_t begin, std::uint64_t end, std::uint64_t entered_ns);

  // mremap: the mapping moves or is resized and keeps its source, name and age. What grows is not resident; what is cut
  // off is returned, with whatever lay at the destination.
  std::vector<Mapping> move(std::uint64_t old_begin, std::uint64_t old_length, std::uint64_t new_begin,
                            std::uint64_t new_length, std::uint64_t entered_ns, std::uint64_t now_ns);

  // Calls change(Mapping&) for each part of a mapping inside [begin, end), split so that it covers just that part.
  // `change` must not touch begin and end.
  template <typename Change>
  void update(std::uint64_t begin, std::uint64_t end, Change change) {
    split_at(begin);
    split_at(end);
    for (auto it = ranges_.lower_bound(begin); it != ranges_.end() && it->first < end; ++it) {
      change(it->second);
    }
  }

  const Mapping* find(std::uint64_t address) const;
  void clear() { ranges_.clear(); }
  std::size_t size() const { return ranges_.size(); }
  // begin -> mapping, ascending and disjoint.
  const std::map<std::uint64_t, Mapping>& ranges() const { return ranges_; }

 private:
  void split_at(std::uint64_t address);

  std::map<std::uint64_t, Mapping> ranges_;
};

}  // namespace torchleak
