// SPDX-License-Identifier: Apache-2.0
#include "torchleak/procfs/chunk_walk.hpp"

#include <gtest/gtest.h>

#include <map>

namespace torchleak::procfs {
namespace {

constexpr std::uint64_t kKiB = 1024;
constexpr std::uint64_t kMiB = 1024 * kKiB;
constexpr std::uint64_t kPage = 4 * kKiB;
constexpr std::uint64_t kBegin = 0x7f41cd509000;  // on a page, not on a pool
constexpr ProcessTraits kPython311{.python_arena_bytes = kMiB, .other_allocator = false};

// Anonymous memory laid out unit by unit; what has no words is not resident.
class Memory {
 public:
  Memory& block(std::uint64_t bytes) {
    words_[end_] = {0, bytes | 2, 0, 0, 0, 0};
    return add(bytes, ChunkHeader::kMallocMmap);
  }
  Memory& arena() {
    const std::uint64_t pool = (end_ + 16383) / 16384 * 16384;
    words_.try_emplace(end_, PoolWords{});
    words_[pool] = {10, pool + 48, 0, 0, 3ULL << 32, (16384ULL - 64) << 32 | 752};
    return add(kMiB, ChunkHeader::kPythonArena);
  }
  Memory& unknown(std::uint64_t bytes) {
    for (std::uint64_t at = end_; at < end_ + bytes; at += kPage) {
      words_[at] = {0x7f0000000010, 0x41, 7, 7, 7, 7};
    }
    return add(bytes, ChunkHeader::kOther);
  }
  Memory& untouched(std::uint64_t bytes) { return add(bytes, ChunkHeader::kUnread); }
  Memory& edge() {
    edges_.push_back(end_);
    return *this;
  }

  std::vector<ChunkSpan> walk() {
    edge();
    return walk_chunks(kBegin, edges_, kPython311, kPage,
                       [this](std::uint64_t at) -> std::optional<PoolWords> {
                         ++reads_;
                         const auto found = words_.find(at);
                         return found == words_.end() ? std::nullopt : std::optional(found->second);
                       });
  }
  const std::vector<ChunkSpan>& laid_out() const { return spans_; }
  int reads() const { return reads_; }
  PoolWords& at(std::uint64_t address) { return words_[address]; }

 private:
  Memory& add(std::uint64_t bytes, ChunkHeader chunk) {
    spans_.push_back({end_, end_ + bytes, chunk});
    end_ += bytes;
    return *this;
  }

  std::uint64_t end_ = kBegin;
  std::map<std::uint64_t, PoolWords> words_;
  std::vector<std::uint64_t> edges_;
  std::vector<ChunkSpan> spans_;
  int reads_ = 0;
};

TEST(WalkChunks, SplitsWhatTheKernelMerged) {
  Memory memory;
  memory.block(548 * kKiB).block(544 * kKiB).arena().arena().block(784 * kKiB).arena();
  EXPECT_EQ(memory.walk(), memory.laid_out());
}

TEST(WalkChunks, FollowsABlockThatAnMadviseCutInTwo) {
  Memory memory;
  memory.block(8 * kMiB).arena();
  std::vector<std::uint64_t> edges{kBegin + kPage, kBegin + 9 * kMiB};
  const auto spans =
      walk_chunks(kBegin, edges, kPython311, kPage, [&](std::uint64_t at) { return memory.at(at); });
  EXPECT_EQ(spans, memory.laid_out());
}

TEST(WalkChunks, FindsUnitsBehindALibrarysBss) {
  Memory memory;
  memory.unknown(20 * kKiB).block(256 * kKiB).block(132 * kKiB);
  EXPECT_EQ(memory.walk(), memory.laid_out());
}

TEST(WalkChunks, FindsUnitsAboveAStackThatIsMostlyUntouched) {
  Memory memory;
  memory.untouched(8 * kMiB).block(256 * kKiB);
  EXPECT_EQ(memory.walk(), memory.laid_out());
}

TEST(WalkChunks, DoesNotBelieveALoneHeaderInTheMiddleOfTheUnknown) {
  Memory memory;
  memory.unknown(kMiB);
  memory.at(kBegin + 64 * kKiB) = {0, 128 * kKiB | 2, 0, 0, 0, 0};
  EXPECT_EQ(memory.walk(), memory.laid_out());
}

TEST(WalkChunks, StartsAfreshAtTheEdgeOfAMapping) {
  Memory memory;
  memory.unknown(64 * kKiB).edge().block(256 * kKiB).unknown(8 * kKiB);
  EXPECT_EQ(memory.walk(), memory.laid_out());
}

TEST(WalkChunks, BoundsItsReadsInTheUnknown) {
  Memory memory;
  memory.unknown(64 * kMiB);
  EXPECT_EQ(memory.walk(), memory.laid_out());
  EXPECT_LT(memory.reads(), 1024);
}

TEST(WalkChunks, NeverLeavesTheRunWhateverTheHeadersClaim) {
  for (const std::uint64_t claim : {~0UL, ~0UL - 4093, 2UL, (1UL << 63) | 2, kMiB | 2, 4098UL}) {
    Memory memory;
    memory.unknown(64 * kKiB);
    memory.at(kBegin) = {0, claim, claim, claim, claim, claim};
    const auto spans = memory.walk();
    std::uint64_t at = kBegin;
    for (const ChunkSpan& span : spans) {
      EXPECT_EQ(span.begin, at);
      EXPECT_GT(span.end, span.begin);
      at = span.end;
    }
    EXPECT_EQ(at, kBegin + 64 * kKiB);
  }
  EXPECT_TRUE(walk_chunks(kBegin, {}, kPython311, kPage, [](std::uint64_t) { return std::nullopt; }).empty());
}

}  // namespace
}  // namespace torchleak::procfs
