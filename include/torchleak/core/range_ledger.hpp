// SPDX-License-Identifier: Apache-2.0
// The mappings of one address space as disjoint ranges.
//
//   begin                      insert 0x1000..0x9000 (heap, 32 KiB resident at the start of the capture)
//   |==========|               0x1000..0x9000
//   erase 0x4000..0x6000
//   |===|    |===|             0x1000..0x4000 (12 KiB resident), 0x6000..0x9000 (12 KiB resident)
//
// Bytes that were resident before the capture are known a mapping at a time, not a page at a time; a split
// shares them out by length, and no byte is ever lost or made by it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "torchleak/core/source.hpp"

namespace torchleak {

// The share of `bytes` that falls to `part` of `whole`, rounded down. The other part gets the rest.
std::uint64_t share(std::uint64_t bytes, std::uint64_t part, std::uint64_t whole);

struct Mapping {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t created_ns = 0;  // when the call that put it here returned; 0 where it predates the capture
  std::uint64_t baseline_bytes = 0;  // resident when the capture (or the process) began, not freed since
  Source source = Source::kAnonOther;
  bool shared = false;     // MAP_SHARED: writes are seen by others and never copied
  bool inherited = false;  // came over a fork
  std::string name;
  float anonymous_part =
      1;  // of the baseline: private copies, which fork copies; the rest is page cache or shared
  std::uint64_t length() const { return end - begin; }
  bool operator==(const Mapping&) const = default;
};

class RangeLedger {
 public:
  // Four times the kernel's default limit on the mappings of a process. At this size discard() no longer
  // splits.
  static constexpr std::size_t kMaxPieces = 262144;

  // Adds a mapping in place of whatever lay there (MAP_FIXED, or an unmap that has not been heard of yet).
  // Returns what was displaced. An empty range, or one whose end lies before its begin, is ignored.
  std::vector<Mapping> insert(Mapping mapping);

  // Removes [begin, end), splitting at its edges, and returns the pieces removed. A mapping created at or
  // after `entered_ns` stays: the kernel had already freed the range when another thread was given it again,
  // and the record of the unmapping call, written at its return, came second.
  std::vector<Mapping> erase(std::uint64_t begin, std::uint64_t end, std::uint64_t entered_ns);

  // mremap: the mapping moves or is resized and keeps its source, name, baseline and inheritance. Its
  // created_ns becomes `now_ns`, so that a late record of an unmap of what lay at the destination before does
  // not hit it. What grows is not resident: behind a mapping with baseline bytes it is a mapping of its own,
  // so that cutting it off again takes nothing from them. What is cut off is returned, with whatever lay at
  // the destination. An old length of 0 duplicates a shared mapping. Where nothing is known at the old place
  // the destination is entered as kAnonOther; so it is when another thread was given the old place before the
  // record of the move came, and the displaced mapping's history is lost.
  std::vector<Mapping> move(std::uint64_t old_begin, std::uint64_t old_length, std::uint64_t new_begin,
                            std::uint64_t new_length, std::uint64_t entered_ns, std::uint64_t now_ns);

  // madvise: the pages of [begin, end) go, the mapping stays. Returns the pieces that had baseline bytes,
  // with them. Splits only what has baseline bytes, and joins neighbours once they have none, so that purging
  // page after page does not leave a piece for each. Mappings created at or after `entered_ns` stay as they
  // are.
  std::vector<Mapping> discard(std::uint64_t begin, std::uint64_t end, std::uint64_t entered_ns);

  // Calls change(Mapping&) for each part of a mapping inside [begin, end), split so that it covers just that
  // part. `change` must not touch begin and end.
  template <typename Change>
  void update(std::uint64_t begin, std::uint64_t end, Change change) {
    if (begin >= end) {
      return;
    }
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
  using Iterator = std::map<std::uint64_t, Mapping>::iterator;

  Iterator first_reaching(std::uint64_t address);
  Iterator split(Iterator piece, std::uint64_t address);
  void split_at(std::uint64_t address);
  Iterator narrow(Iterator piece, std::uint64_t begin, std::uint64_t end);
  void take(std::uint64_t begin, std::uint64_t end, std::optional<std::uint64_t> entered_ns,
            std::vector<Mapping>& into);
  void put(Mapping mapping);
  Iterator join(Iterator piece);

  std::map<std::uint64_t, Mapping> ranges_;
};

}  // namespace torchleak
