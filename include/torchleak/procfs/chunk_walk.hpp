// SPDX-License-Identifier: Apache-2.0
// Finds malloc's large blocks and CPython's arenas in a run of anonymous memory. The kernel merges neighbours
// into one mapping and madvise cuts one block into several, so mappings say little; but each unit begins
// where the last one ends:
//
//   mapping   |-------------------------------------------|------------|
//   units     | block 548 KiB | arena 1 MiB | unknown 8 KiB | block 4 MiB |
//   headers   ^ size|2        ^ pool        ^ neither       ^ size|2
//
// Pure: memory is read through a function.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "torchleak/core/classify.hpp"

namespace torchleak::procfs {

struct ChunkSpan {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  ChunkHeader chunk = ChunkHeader::kUnread;
  bool operator==(const ChunkSpan&) const = default;
};

// The 48 bytes at an address, or nullopt where they are not resident or not to be read.
using ReadWords = std::function<std::optional<PoolWords>(std::uint64_t address)>;

// Covers a run with spans, ascending and without gaps. `edges` are the ends of the mappings that make up the
// run, ascending; the run goes from `begin` to the last of them. After something unknown, a header found
// inside a mapping counts only where another unit, or the end of the run, follows it.
std::vector<ChunkSpan> walk_chunks(std::uint64_t begin, std::span<const std::uint64_t> edges,
                                   const ProcessTraits& traits, std::uint64_t page_bytes,
                                   const ReadWords& read);

}  // namespace torchleak::procfs
