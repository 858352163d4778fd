// SPDX-License-Identifier: Apache-2.0
#include "torchleak/core/source.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <set>

namespace torchleak {
namespace {

TEST(Source, EveryNameIsItsOwnAndLeadsBack) {
  std::set<std::string_view> names;
  for (std::size_t i = 0; i < kSourceCount; ++i) {
    const auto source = static_cast<Source>(i);
    EXPECT_FALSE(source_name(source).empty());
    EXPECT_EQ(source_from_name(source_name(source)), source);
    names.insert(source_name(source));
  }
  EXPECT_EQ(names.size(), kSourceCount);
}

TEST(Source, TheNamesAreThoseOfTheContract) {
  EXPECT_EQ(source_name(Source::kPythonArena), "python_arena");
  EXPECT_EQ(source_name(Source::kMallocHeap), "malloc_heap");
  EXPECT_EQ(source_name(Source::kMallocMmap), "malloc_mmap");
  EXPECT_EQ(source_name(Source::kSharedMemory), "shared_memory");
  EXPECT_EQ(source_name(Source::kOtherAllocator), "other_allocator");
  EXPECT_EQ(source_name(Source::kAnonOther), "anon_other");
  EXPECT_EQ(source_name(Source::kSwap), "swap");
}

TEST(Source, AnUnknownNameIsNoSource) {
  for (const char* name : {"", "Malloc_heap", "malloc_heap ", "malloc", "swapped"}) {
    EXPECT_EQ(source_from_name(name), std::nullopt) << name;
  }
}

TEST(SourceBytes, TheTotalIsTheSumOverAllSources) {
  SourceBytes bytes;
  EXPECT_EQ(bytes.total(), 0);
  for (std::size_t i = 0; i < kSourceCount; ++i) {
    bytes[static_cast<Source>(i)] = std::int64_t{1} << i;
  }
  EXPECT_EQ(bytes.total(), (std::int64_t{1} << kSourceCount) - 1);
  bytes[Source::kSwap] -= 1000;
  EXPECT_EQ(bytes.total(), (std::int64_t{1} << kSourceCount) - 1001);
}

TEST(SourceBytes, AbsurdFiguresWrapAndDoNotTrap) {
  SourceBytes bytes;
  bytes[Source::kTensor] = std::numeric_limits<std::int64_t>::max();
  bytes[Source::kNumpy] = 1;
  EXPECT_EQ(bytes.total(), std::numeric_limits<std::int64_t>::min());
}

}  // namespace
}  // namespace torchleak
