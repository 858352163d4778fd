// SPDX-License-Identifier: Apache-2.0
#include "torchleak/core/range_ledger.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <limits>
#include <numeric>
#include <random>

namespace torchleak {
namespace {

constexpr std::uint64_t kEnd = std::numeric_limits<std::uint64_t>::max();

Mapping heap(std::uint64_t begin, std::uint64_t end, std::uint64_t baseline_bytes = 0,
             std::uint64_t created_ns = 0) {
  Mapping mapping;
  mapping.begin = begin;
  mapping.end = end;
  mapping.created_ns = created_ns;
  mapping.baseline_bytes = baseline_bytes;
  mapping.source = Source::kMallocHeap;
  mapping.name = "[heap]";
  return mapping;
}

std::vector<Mapping> all(const RangeLedger& ledger) {
  std::vector<Mapping> out;
  for (const auto& [begin, mapping] : ledger.ranges()) {
    EXPECT_EQ(begin, mapping.begin);
    out.push_back(mapping);
  }
  return out;
}

std::uint64_t baseline(const std::vector<Mapping>& mappings) {
  return std::accumulate(
      mappings.begin(), mappings.end(), std::uint64_t{0},
      [](std::uint64_t sum, const Mapping& mapping) { return sum + mapping.baseline_bytes; });
}

void expect_disjoint(const RangeLedger& ledger) {
  std::uint64_t reached = 0;
  for (const auto& [begin, mapping] : ledger.ranges()) {
    ASSERT_EQ(begin, mapping.begin);
    ASSERT_LT(mapping.begin, mapping.end);
    ASSERT_GE(mapping.begin, reached);
    reached = mapping.end;
  }
}

using Mappings = std::vector<Mapping>;

TEST(RangeLedger, UnmappingTheMiddleSplitsTheRange) {
  RangeLedger ledger;
  ledger.insert(heap(0x1000, 0x9000, 0x8000));
  EXPECT_EQ(ledger.erase(0x4000, 0x6000, 1), (Mappings{heap(0x4000, 0x6000, 0x2000)}));
  EXPECT_EQ(all(ledger), (Mappings{heap(0x1000, 0x4000, 0x3000), heap(0x6000, 0x9000, 0x3000)}));
}

TEST(RangeLedger, UnmappingAnEdgeShortensTheRange) {
  RangeLedger ledger;
  ledger.insert(heap(0x1000, 0x9000));
  ledger.erase(0x0, 0x3000, 1);
  ledger.erase(0x8000, 0xF000, 1);
  EXPECT_EQ(all(ledger), (Mappings{heap(0x3000, 0x8000)}));
}

TEST(RangeLedger, OneUnmapMayRemoveSeveralMappings) {
  RangeLedger ledger;
  ledger.insert(heap(0x1000, 0x3000));
  ledger.insert(heap(0x4000, 0x5000));
  ledger.insert(heap(0x6000, 0x8000));
  EXPECT_EQ(ledger.erase(0x2000, 0x7000, 1),
            (Mappings{heap(0x2000, 0x3000), heap(0x4000, 0x5000), heap(0x6000, 0x7000)}));
  EXPECT_EQ(all(ledger), (Mappings{heap(0x1000, 0x2000), heap(0x7000, 0x8000)}));
}

TEST(RangeLedger, SplittingNeitherLosesNorMakesAByte) {
  RangeLedger ledger;
  ledger.insert(heap(0, 7 * 0x1000, 10007));
  std::uint64_t removed = baseline(ledger.erase(0x3000, 0x4000, 1));
  removed += baseline(ledger.erase(0x1000, 0x2000, 1));
  EXPECT_EQ(removed + baseline(all(ledger)), 10007U);
}

TEST(RangeLedger, SharesOfHugeFiguresDoNotOverflow) {
  RangeLedger ledger;
  ledger.insert(heap(0, kEnd, kEnd));
  EXPECT_EQ(baseline(ledger.erase(kEnd / 2, kEnd, 1)) + baseline(all(ledger)), kEnd);
}

TEST(RangeLedger, AMappingInAnothersPlaceDisplacesJustThatPart) {
  RangeLedger ledger;
  ledger.insert(heap(0x1000, 0x5000, 0x4000));
  EXPECT_EQ(ledger.insert(heap(0x2000, 0x3000, 0, 9)), (Mappings{heap(0x2000, 0x3000, 0x1000)}));
  EXPECT_EQ(all(ledger), (Mappings{heap(0x1000, 0x2000, 0x1000), heap(0x2000, 0x3000, 0, 9),
                                   heap(0x3000, 0x5000, 0x2000)}));
}

TEST(RangeLedger, EmptyAndInvertedRangesAreIgnored) {
  RangeLedger ledger;
  ledger.insert(heap(0x1000, 0x5000, 64));
  const Mappings before = all(ledger);
  EXPECT_TRUE(ledger.insert(heap(0x2000, 0x2000)).empty());
  EXPECT_TRUE(ledger.insert(heap(0x3000, 0x2000)).empty());
  EXPECT_TRUE(ledger.erase(0x2000, 0x2000, 1).empty());
  EXPECT_TRUE(ledger.erase(0x3000, 0x2000, 1).empty());
  EXPECT_TRUE(ledger.discard(0x3000, 0x2000, 1).empty());
  EXPECT_TRUE(ledger.move(0x1000, 0x1000, 0x8000, 0, 1, 2).empty());
  ledger.update(0x3000, 0x2000, [](Mapping&) { FAIL(); });
  EXPECT_EQ(all(ledger), before);
}

TEST(RangeLedger, AnUnmapHeardOfLateSparesTheNextOwner) {
  const auto next = heap(0x1000, 0x3000, 0, 30);
  RangeLedger in_order;
  in_order.insert(heap(0x1000, 0x3000, 0, 5));
  in_order.erase(0x1000, 0x3000, 10);
  in_order.insert(next);
  RangeLedger reversed;
  reversed.insert(heap(0x1000, 0x3000, 0, 5));
  reversed.insert(next);
  EXPECT_TRUE(reversed.erase(0x1000, 0x3000, 10).empty());
  EXPECT_EQ(all(in_order), all(reversed));
}

TEST(RangeLedger, AMappingMadeAtTheMomentTheUnmapWasEnteredStays) {
  RangeLedger ledger;
  ledger.insert(heap(0x1000, 0x3000, 0, 10));
  EXPECT_TRUE(ledger.erase(0x1000, 0x3000, 10).empty());
  EXPECT_EQ(ledger.erase(0x1000, 0x3000, 11).size(), 1U);
}

TEST(RangeLedger, MovingKeepsWhatTheMappingIs) {
  RangeLedger ledger;
  Mapping inherited = heap(0x1000, 0x3000, 0x2000);
  inherited.inherited = true;
  ledger.insert(inherited);
  EXPECT_TRUE(ledger.move(0x1000, 0x2000, 0x8000, 0x2000, 10, 20).empty());
  inherited.begin = 0x8000;
  inherited.end = 0xA000;
  inherited.created_ns = 20;
  EXPECT_EQ(all(ledger), (Mappings{inherited}));
}

TEST(RangeLedger, ShrinkingInPlaceReturnsTheTail) {
  RangeLedger ledger;
  ledger.insert(heap(0x1000, 0x5000, 0x4000));
  EXPECT_EQ(ledger.move(0x1000, 0x4000, 0x1000, 0x1000, 10, 20), (Mappings{heap(0x2000, 0x5000, 0x3000)}));
  EXPECT_EQ(all(ledger), (Mappings{heap(0x1000, 0x2000, 0x1000, 20)}));
}

TEST(RangeLedger, GrowthIsNotResidentAndCuttingItOffTakesNoBaseline) {
  RangeLedger ledger;
  ledger.insert(heap(0x1000, 0x3000, 0x2000));
  EXPECT_TRUE(ledger.move(0x1000, 0x2000, 0x1000, 0x4000, 10, 20).empty());
  EXPECT_EQ(all(ledger), (Mappings{heap(0x1000, 0x3000, 0x2000, 20), heap(0x3000, 0x5000, 0, 20)}));
  EXPECT_EQ(baseline(ledger.move(0x1000, 0x4000, 0x1000, 0x2000, 30, 40)), 0U);
  EXPECT_EQ(all(ledger), (Mappings{heap(0x1000, 0x3000, 0x2000, 40)}));
}

TEST(RangeLedger, GrowingAgainAndAgainLeavesOneMapping) {
  RangeLedger ledger;
  ledger.insert(heap(0x1000, 0x2000, 0, 1));
  for (std::uint64_t pages = 1; pages < 1000; ++pages) {
    ledger.move(0x1000, pages * 0x1000, 0x1000, (pages + 1) * 0x1000, pages * 2, pages * 2 + 1);
  }
  EXPECT_EQ(all(ledger), (Mappings{heap(0x1000, 0x1000 + 1000 * 0x1000, 0, 999 * 2 + 1)}));
}

TEST(RangeLedger, AMoveDisplacesWhatLayAtItsDestination) {
  RangeLedger ledger;
  ledger.insert(heap(0x1000, 0x3000, 2));
  ledger.insert(heap(0x8000, 0xC000, 4));
  EXPECT_EQ(ledger.move(0x1000, 0x2000, 0x9000, 0x2000, 10, 20), (Mappings{heap(0x9000, 0xB000, 2)}));
  EXPECT_EQ(all(ledger),
            (Mappings{heap(0x8000, 0x9000, 1), heap(0x9000, 0xB000, 2, 20), heap(0xB000, 0xC000, 1)}));
}

TEST(RangeLedger, AnOldLengthOfZeroDuplicatesTheMapping) {
  RangeLedger ledger;
  Mapping shared = heap(0x1000, 0x3000, 0x2000);
  shared.source = Source::kSharedMemory;
  shared.shared = true;
  ledger.insert(shared);
  EXPECT_TRUE(ledger.move(0x1000, 0, 0x8000, 0x2000, 10, 20).empty());
  Mapping copy = shared;
  copy.begin = 0x8000;
  copy.end = 0xA000;
  copy.baseline_bytes = 0;
  copy.created_ns = 20;
  EXPECT_EQ(all(ledger), (Mappings{shared, copy}));
}

TEST(RangeLedger, AMoveOfTheUnknownLeavesAnUnknownMapping) {
  RangeLedger ledger;
  ledger.move(0x1000, 0x1000, 0x8000, 0x2000, 10, 20);
  ASSERT_EQ(ledger.size(), 1U);
  EXPECT_EQ(ledger.find(0x9FFF)->source, Source::kAnonOther);
}

TEST(RangeLedger, DiscardingKeepsTheMappingAndTakesItsShare) {
  RangeLedger ledger;
  ledger.insert(heap(0x1000, 0x5000, 0x4000));
  EXPECT_EQ(ledger.discard(0x2000, 0x3000, 1), (Mappings{heap(0x2000, 0x3000, 0x1000)}));
  EXPECT_TRUE(ledger.discard(0x2000, 0x3000, 1).empty());
  EXPECT_EQ(baseline(all(ledger)), 0x3000U);
  EXPECT_NE(ledger.find(0x2000), nullptr);
}

TEST(RangeLedger, DiscardingPageAfterPageLeavesOneMapping) {
  RangeLedger ledger;
  ledger.insert(heap(0, 100 * 0x1000, 100 * 0x1000));
  for (std::uint64_t page = 0; page < 100; page += 2) {
    ledger.discard(page * 0x1000, (page + 1) * 0x1000, 1);
  }
  for (std::uint64_t page = 1; page < 100; page += 2) {
    ledger.discard(page * 0x1000, (page + 1) * 0x1000, 1);
  }
  EXPECT_EQ(all(ledger), (Mappings{heap(0, 100 * 0x1000)}));
}

TEST(RangeLedger, AnAddressIsFoundInItsMappingOnly) {
  RangeLedger ledger;
  ledger.insert(heap(0x1000, 0x3000));
  EXPECT_EQ(ledger.find(0xFFF), nullptr);
  ASSERT_NE(ledger.find(0x1000), nullptr);
  EXPECT_NE(ledger.find(0x2FFF), nullptr);
  EXPECT_EQ(ledger.find(0x3000), nullptr);
}

TEST(RangeLedger, UpdatingTouchesJustTheRange) {
  RangeLedger ledger;
  ledger.insert(heap(0x1000, 0x5000));
  ledger.update(0x2000, 0x3000, [](Mapping& mapping) { mapping.source = Source::kTensor; });
  ASSERT_EQ(ledger.size(), 3U);
  EXPECT_EQ(ledger.find(0x1FFF)->source, Source::kMallocHeap);
  EXPECT_EQ(ledger.find(0x2000)->source, Source::kTensor);
  EXPECT_EQ(ledger.find(0x3000)->source, Source::kMallocHeap);
}

// Addresses at both ends of the address space and lengths that reach over it.
TEST(RangeLedger, RandomCallsKeepRangesDisjointAndEveryByteAccountedFor) {
  for (std::uint32_t seed = 1; seed <= 20; ++seed) {
    std::mt19937_64 random(seed);
    const auto address = [&] { return (random() % 8 == 0 ? kEnd - 0x20000 : 0) + random() % 0x20000; };
    RangeLedger ledger;
    std::uint64_t given = 0;
    std::uint64_t returned = 0;
    for (std::uint64_t now = 1; now <= 2000; ++now) {
      const std::uint64_t begin = address();
      const std::uint64_t length = random() % 64 == 0 ? kEnd - random() % 4 : random() % 0x6000;
      const std::uint64_t end = begin + std::min(length, kEnd - begin);
      const std::uint64_t entered = now - std::min<std::uint64_t>(now, random() % 4);
      switch (random() % 4) {
        case 0: {
          const std::uint64_t bytes = begin < end ? random() % 100000 : 0;
          given += bytes;
          returned += baseline(ledger.insert(heap(begin, end, bytes, now)));
          break;
        }
        case 1:
          returned += baseline(ledger.erase(begin, end, entered));
          break;
        case 2:
          returned += baseline(ledger.discard(begin, end, entered));
          break;
        default:
          returned += baseline(ledger.move(begin, length, address(), random() % 0x6000, entered, now));
      }
      expect_disjoint(ledger);
      ASSERT_EQ(given, returned + baseline(all(ledger))) << "seed " << seed << " step " << now;
    }
  }
}

TEST(RangeLedger, AHundredThousandMappingsAreNoBurden) {
  const auto started = std::chrono::steady_clock::now();
  RangeLedger ledger;
  for (std::uint64_t i = 0; i < 100000; ++i) {
    ledger.insert(heap(i * 0x4000, i * 0x4000 + 0x3000, 0x3000, 1));
  }
  for (std::uint64_t i = 0; i < 100000; ++i) {
    const std::uint64_t at = (i * 7919 % 100000) * 0x4000;
    EXPECT_NE(ledger.find(at), nullptr);
    ledger.erase(at + 0x1000, at + 0x2000, 2);
  }
  EXPECT_EQ(ledger.size(), 200000U);
  // A scan of the ledger at each call would take minutes.
  EXPECT_LT(std::chrono::steady_clock::now() - started, std::chrono::seconds(10));
}

}  // namespace
}  // namespace torchleak
