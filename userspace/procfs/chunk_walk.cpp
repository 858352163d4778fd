// SPDX-License-Identifier: Apache-2.0
#include "torchleak/procfs/chunk_walk.hpp"

#include <algorithm>
#include <utility>

namespace torchleak::procfs {
namespace {

// How far to look for the next unit behind something unknown. A thread's stack of 8 MiB, which kernels
// before 6.7 merge with what lies above it, is 2,048 pages, few of them resident.
constexpr int kMaxGapPages = 4096;
constexpr int kMaxGapReads = 256;

class Walk {
 public:
  Walk(std::uint64_t begin, std::span<const std::uint64_t> edges, const ProcessTraits& traits,
       std::uint64_t page_bytes, const ReadWords& read)
      : begin_(begin),
        end_(edges.empty() ? begin : edges.back()),
        edges_(edges),
        traits_(traits),
        page_bytes_(page_bytes),
        read_(read) {}

  std::vector<ChunkSpan> run() {
    for (std::uint64_t at = begin_; at < end_;) {
      if (const auto unit = prove(at)) {
        spans_.push_back(*unit);
        at = unit->end;
      } else {
        at = skip_unknown(at);
      }
    }
    return std::move(spans_);
  }

 private:
  std::optional<ChunkSpan> prove(std::uint64_t at) {
    const auto words = read_(at);
    last_was_read_ = words.has_value();
    // The word before the size is 0 in a block of its own, also where memalign moved the block on.
    if (words && (*words)[0] == 0 &&
        read_chunk_header((*words)[1], end_ - at, page_bytes_) == ChunkHeader::kMallocMmap) {
      return ChunkSpan{at, at + (*words)[1] / page_bytes_ * page_bytes_, ChunkHeader::kMallocMmap};
    }
    if (const std::uint64_t heap = words ? glibc_heap_bytes(*words, at, page_bytes_) : 0; heap != 0) {
      return ChunkSpan{at, std::min(at + heap, end_), ChunkHeader::kGlibcHeap};
    }
    const std::uint64_t pool_bytes = traits_.python_pool_bytes();
    if (pool_bytes == 0 || end_ - at < traits_.python_arena_bytes) {
      return std::nullopt;
    }
    const std::uint64_t pool = (at + pool_bytes - 1) / pool_bytes * pool_bytes;
    const auto pool_words = pool == at ? words : read_(pool);
    if (pool_words && is_python_pool(*pool_words, pool, pool_bytes)) {
      return ChunkSpan{at, at + traits_.python_arena_bytes, ChunkHeader::kPythonArena};
    }
    return std::nullopt;
  }

  // Records what lies between `from` and the next unit as unknown, and returns where that unit begins.
  std::uint64_t skip_unknown(std::uint64_t from) {
    const auto chunk = last_was_read_ ? ChunkHeader::kOther : ChunkHeader::kUnread;
    const std::uint64_t edge = *std::ranges::upper_bound(edges_, from);
    std::uint64_t at = from + page_bytes_;
    int reads = 0;
    for (int pages = 0; at < edge && pages < kMaxGapPages && reads < kMaxGapReads;
         ++pages, at += page_bytes_) {
      const auto unit = prove(at);
      reads += last_was_read_ ? 1 : 0;
      if (unit && (unit->end == end_ || prove(unit->end))) {
        spans_.push_back({from, at, chunk});
        return at;
      }
    }
    spans_.push_back({from, edge, chunk});
    return edge;
  }

  std::uint64_t begin_;
  std::uint64_t end_;
  std::span<const std::uint64_t> edges_;
  const ProcessTraits& traits_;
  std::uint64_t page_bytes_;
  const ReadWords& read_;
  std::vector<ChunkSpan> spans_;
  bool last_was_read_ = false;
};

}  // namespace

std::vector<ChunkSpan> walk_chunks(std::uint64_t begin, std::span<const std::uint64_t> edges,
                                   const ProcessTraits& traits, std::uint64_t page_bytes,
                                   const ReadWords& read) {
  return Walk(begin, edges, traits, page_bytes, read).run();
}

}  // namespace torchleak::procfs
