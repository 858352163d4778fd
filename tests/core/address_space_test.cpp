// SPDX-License-Identifier: Apache-2.0
#include "torchleak/core/address_space.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>
#include <random>

namespace torchleak {
namespace {

constexpr std::uint64_t kPage = 4096;
constexpr std::uint64_t kHuge = 2 << 20;
constexpr std::uint64_t kMiB = 1 << 20;
constexpr std::uint64_t kArena = 64 * kMiB;
constexpr std::uint64_t kBase = 0x7f0000000000;
constexpr std::uint64_t kMax = std::numeric_limits<std::uint64_t>::max();
constexpr std::uint32_t kTmpfs = 0x01021994;
constexpr std::uint32_t kExt4 = 0xEF53;

MmapFacts anonymous(std::uint64_t address, std::uint64_t length,
                    std::uint32_t protection = PROT_READ | PROT_WRITE) {
  MmapFacts facts;
  facts.address = address;
  facts.length = length;
  facts.protection = protection;
  facts.flags = MAP_PRIVATE | MAP_ANONYMOUS;
  return facts;
}

MmapFacts file(std::uint64_t address, std::uint64_t length, const char* name, std::uint32_t flags,
               std::uint32_t filesystem = kExt4) {
  MmapFacts facts;
  facts.address = address;
  facts.length = length;
  facts.protection = PROT_READ | PROT_WRITE;
  facts.flags = flags;
  facts.file_backed = true;
  facts.filesystem = filesystem;
  facts.name = name;
  return facts;
}

Mapping resident_mapping(std::uint64_t begin, std::uint64_t end, std::uint64_t baseline_bytes,
                         Source source) {
  Mapping mapping;
  mapping.begin = begin;
  mapping.end = end;
  mapping.baseline_bytes = baseline_bytes;
  mapping.source = source;
  return mapping;
}

void touch_pages(AddressSpace& space, std::uint64_t begin, std::uint64_t count, std::uint64_t now_ns) {
  for (std::uint64_t page = 0; page < count; ++page) {
    space.touch(begin + page * kPage, 1, kPage, false, now_ns);
  }
}

// resident() reckoned anew from mappings and samples.
SourceBytes recount(const AddressSpace& space) {
  SourceBytes sum;
  const auto add = [&sum](Source source, std::uint64_t bytes) {
    sum[source] = static_cast<std::int64_t>(static_cast<std::uint64_t>(sum[source]) + bytes);
  };
  for (const auto& [begin, mapping] : space.mappings().ranges()) {
    add(mapping.source, mapping.baseline_bytes);
  }
  for (const auto& [page, sample] : space.samples()) {
    add(sample.source, sample.bytes);
  }
  return sum;
}

void expect_laws(const AddressSpace& space) {
  std::uint64_t live = 0;
  for (const auto& [page, sample] : space.samples()) {
    live += sample.bytes;
  }
  std::uint64_t baseline = 0;
  std::uint64_t reached = 0;
  for (const auto& [begin, mapping] : space.mappings().ranges()) {
    ASSERT_EQ(begin, mapping.begin);
    ASSERT_LT(mapping.begin, mapping.end);
    ASSERT_GE(mapping.begin, reached);
    reached = mapping.end;
    baseline += mapping.baseline_bytes;
  }
  ASSERT_EQ(space.attributed_bytes() - space.freed_bytes(), live + baseline - space.start_bytes());
  ASSERT_EQ(static_cast<std::uint64_t>(space.resident().total()),
            space.start_bytes() + space.attributed_bytes() - space.freed_bytes());
  ASSERT_EQ(space.resident(), recount(space));
}

// What two orders of the same events must agree on.
struct Books {
  std::uint64_t net = 0;
  SourceBytes resident;
  std::map<std::uint64_t, PageSample> samples;
  std::map<std::uint64_t, Mapping> mappings;
  bool operator==(const Books&) const = default;
};

Books books(const AddressSpace& space) {
  return {space.attributed_bytes() - space.freed_bytes(), space.resident(), space.samples(),
          space.mappings().ranges()};
}

TEST(AddressSpace, MemoryIsCountedWhenTouchedNotWhenMapped) {
  AddressSpace space(kPage);
  space.map(anonymous(kBase, 1024 * kMiB), 1, 2);
  EXPECT_EQ(space.resident().total(), 0);
  EXPECT_EQ(space.touch(kBase + 5, 16, kPage, false, 3), FaultClass::kFirstTouch);
  EXPECT_EQ(space.resident().total(), 16 * 4096);
  EXPECT_EQ(space.samples().begin()->first, kBase);
  expect_laws(space);
}

TEST(AddressSpace, LengthsAreRoundedUpToPages) {
  AddressSpace space(kPage);
  space.map(anonymous(kBase, kPage + 1), 1, 2);
  EXPECT_EQ(space.mappings().ranges().begin()->second.end, kBase + 2 * kPage);
  space.unmap(kBase + kPage, 1, 3);
  EXPECT_EQ(space.mappings().ranges().begin()->second.end, kBase + kPage);
}

TEST(AddressSpace, APartialUnmapFreesJustThePagesInside) {
  AddressSpace space(kPage);
  space.map(anonymous(kBase, 8 * kPage), 1, 2);
  touch_pages(space, kBase, 8, 3);
  space.unmap(kBase + 2 * kPage, 4 * kPage, 4);
  EXPECT_EQ(space.freed_bytes(), 4 * kPage);
  EXPECT_EQ(space.resident().total(), 4 * 4096);
  EXPECT_EQ(space.mappings().size(), 2U);
  expect_laws(space);
}

TEST(AddressSpace, UnmappingTheBaselineFreesItByShare) {
  AddressSpace space(kPage);
  space.add_baseline(resident_mapping(kBase, kBase + 8 * kPage, 4 * kPage, Source::kTensor));
  space.unmap(kBase, 2 * kPage, 1);
  EXPECT_EQ(space.freed_bytes(), kPage);
  EXPECT_EQ(space.resident()[Source::kTensor], 3 * 4096);
  expect_laws(space);
}

TEST(AddressSpace, ABaselineGivenAgainReplacesTheFormer) {
  AddressSpace space(kPage);
  space.add_baseline(resident_mapping(kBase, kBase + 8 * kPage, 4 * kPage, Source::kTensor));
  space.add_baseline(resident_mapping(kBase, kBase + 8 * kPage, 6 * kPage, Source::kNumpy));
  space.add_baseline(resident_mapping(kBase, kBase, 6 * kPage, Source::kNumpy));
  EXPECT_EQ(space.start_bytes(), 6 * kPage);
  EXPECT_EQ(space.freed_bytes(), 0U);
  expect_laws(space);
}

TEST(AddressSpace, ChurnNetsToNothing) {
  AddressSpace space(kPage);
  for (std::uint64_t round = 0; round < 1000; ++round) {
    space.map(anonymous(kBase, 16 * kPage), round * 10 + 1, round * 10 + 2);
    touch_pages(space, kBase, 16, round * 10 + 3);
    space.unmap(kBase, 16 * kPage, round * 10 + 4);
  }
  EXPECT_EQ(space.attributed_bytes(), space.freed_bytes());
  EXPECT_EQ(space.resident(), SourceBytes());
  EXPECT_EQ(space.mappings().size(), 0U);
}

TEST(AddressSpace, APageTouchedTwiceCountsOnce) {
  AddressSpace space(kPage);
  space.map(anonymous(kBase, kPage), 1, 2);
  space.touch(kBase, 10, kPage, false, 3);
  space.touch(kBase + 100, 7, kPage, false, 4);
  EXPECT_EQ(space.resident().total(), 7 * 4096);
  EXPECT_EQ(space.attributed_bytes(), 17 * kPage);
  EXPECT_EQ(space.freed_bytes(), 10 * kPage);
}

TEST(AddressSpace, TheClassOfAFaultFollowsTheMapping) {
  AddressSpace space(kPage);
  space.map(file(kBase, kPage, "torch_1_2_3", MAP_SHARED, kTmpfs), 1, 2);
  space.map(file(kBase + kMiB, kPage, "dataset.bin", MAP_SHARED), 1, 2);
  Mapping text = resident_mapping(kBase + 2 * kMiB, kBase + 3 * kMiB, 0, Source::kLibrary);
  text.name = "/usr/lib/libtorch_cpu.so";
  space.add_baseline(text);
  space.add_baseline(resident_mapping(kBase + 3 * kMiB, kBase + 4 * kMiB, 0, Source::kLibrary));  // .bss
  EXPECT_EQ(space.touch(kBase, 1, kPage, false, 3), FaultClass::kShmem);
  EXPECT_EQ(space.touch(kBase + kMiB, 1, kPage, false, 3), FaultClass::kFile);
  EXPECT_EQ(space.touch(kBase + 2 * kMiB, 1, kPage, false, 3), FaultClass::kFile);
  EXPECT_EQ(space.touch(kBase + 3 * kMiB, 1, kPage, false, 3), FaultClass::kFirstTouch);
  EXPECT_EQ(space.resident()[Source::kSharedMemory], 4096);
  EXPECT_EQ(space.resident()[Source::kFileMapping], 4096);
  EXPECT_EQ(space.resident()[Source::kLibrary], 2 * 4096);
}

TEST(AddressSpace, AnAddressInNoMappingIsAnonymousAndOther) {
  AddressSpace space(kPage);
  EXPECT_EQ(space.touch(kBase, 1, kPage, false, 3), FaultClass::kFirstTouch);
  EXPECT_EQ(space.resident()[Source::kAnonOther], 4096);
}

TEST(AddressSpace, CopiesOnWriteGrowNoRss) {
  AddressSpace space(kPage);
  space.add_baseline(resident_mapping(kBase, kBase + kMiB, kMiB, Source::kPythonArena));
  EXPECT_EQ(space.touch(kBase, 8, kPage, true, 3), FaultClass::kCopyOnWrite);
  EXPECT_EQ(space.copied_on_write()[Source::kPythonArena], 8 * 4096);
  EXPECT_EQ(space.attributed_bytes(), 0U);
  EXPECT_TRUE(space.samples().empty());
}

TEST(AddressSpace, AWriteToAPresentSharedPageCopiesNothing) {
  AddressSpace space(kPage);
  space.map(file(kBase, kPage, "torch_1_2_3", MAP_SHARED, kTmpfs), 1, 2);
  space.map(file(kBase + kMiB, kPage, "dataset.bin", MAP_SHARED), 1, 2);
  EXPECT_EQ(space.touch(kBase, 1, kPage, true, 3), FaultClass::kShmem);
  EXPECT_EQ(space.touch(kBase + kMiB, 1, kPage, true, 3), FaultClass::kFile);
  EXPECT_EQ(space.copied_on_write(), SourceBytes());
  EXPECT_EQ(space.resident(), SourceBytes());
}

TEST(AddressSpace, AHugePageIsKnownByItsOwnAddress) {
  AddressSpace space(kPage);
  space.map(anonymous(kBase, 4 * kHuge), 1, 2);
  space.touch(kBase + kHuge + 5 * kPage, 1, kHuge, false, 3);
  ASSERT_EQ(space.samples().size(), 1U);
  EXPECT_EQ(space.samples().begin()->first, kBase + kHuge);
  space.unmap(kBase + kHuge + kPage, kPage, 4);
  EXPECT_EQ(space.resident().total(), 2 << 20);
  space.unmap(kBase + kHuge, kPage, 5);
  EXPECT_EQ(space.resident().total(), 0);
  expect_laws(space);
}

TEST(AddressSpace, AHugePageThatDoesNotFitItsMappingIsKnownByTheSmallOne) {
  AddressSpace space(kPage);
  space.map(anonymous(kBase + 4 * kPage, 4 * kPage), 1, 2);
  space.touch(kBase + 5 * kPage, 1, kHuge, false, 3);
  EXPECT_EQ(space.samples().begin()->first, kBase + 5 * kPage);
}

TEST(AddressSpace, ReclaimedPagesCanBeDropped) {
  AddressSpace space(kPage);
  space.touch(kBase, 1, kPage, false, 3);
  space.drop_sample(kBase + kPage);
  EXPECT_EQ(space.resident().total(), 4096);
  space.drop_sample(kBase + 17);
  EXPECT_EQ(space.resident().total(), 0);
  expect_laws(space);
}

TEST(AddressSpace, DontneedDropsPagesAndKeepsTheMapping) {
  for (const std::uint32_t advice : {4U, 9U, 24U, 102U}) {
    AddressSpace space(kPage);
    space.add_baseline(resident_mapping(kBase, kBase + 8 * kPage, 8 * kPage, Source::kMallocArena));
    touch_pages(space, kBase, 8, 3);
    space.advise(kBase + 6 * kPage, 2 * kPage, advice, 4);
    space.advise(kBase + 6 * kPage, 2 * kPage, advice, 5);  // finds nothing more to drop
    EXPECT_EQ(space.freed_bytes(), 4 * kPage) << advice;
    EXPECT_NE(space.mappings().find(kBase + 7 * kPage), nullptr);
    expect_laws(space);
  }
}

TEST(AddressSpace, AdviceThatLeavesRssDropsNothing) {
  AddressSpace space(kPage);
  space.add_baseline(resident_mapping(kBase, kBase + 8 * kPage, 8 * kPage, Source::kMallocArena));
  touch_pages(space, kBase, 8, 3);
  for (const std::uint32_t advice : {0U, 3U, 8U /* FREE */, 14U, 20U, 21U /* PAGEOUT */, 25U, 4000000000U}) {
    space.advise(kBase, 8 * kPage, advice, 4);
  }
  EXPECT_EQ(space.freed_bytes(), 0U);
}

TEST(AddressSpace, AdviceHeardOfLateSparesWhatIsYounger) {
  AddressSpace space(kPage);
  space.map(anonymous(kBase, 2 * kPage), 1, 2);
  space.map(anonymous(kBase + kPage, kPage), 8, 9);
  space.touch(kBase, 1, kPage, false, 6);  // came back while the call was under way
  space.touch(kBase + kPage, 1, kPage, false, 10);
  space.advise(kBase, 2 * kPage, MADV_DONTNEED, 5);
  EXPECT_EQ(space.samples().size(), 2U);
  space.advise(kBase, 2 * kPage, MADV_DONTNEED, 11);
  EXPECT_TRUE(space.samples().empty());
}

TEST(AddressSpace, ThePagesOfAGrownHeapAreHeap) {
  AddressSpace space(kPage);
  space.set_break(kBase + 1, kBase + 3 * kPage + 1, 1, 2);
  const auto& heap = space.mappings().ranges().begin()->second;
  EXPECT_EQ(heap.begin, kBase + kPage);
  EXPECT_EQ(heap.end, kBase + 4 * kPage);
  EXPECT_EQ(space.touch(kBase + kPage, 1, kPage, false, 3), FaultClass::kFirstTouch);
  EXPECT_EQ(space.resident()[Source::kMallocHeap], 4096);
}

TEST(AddressSpace, TrimmingWhatTheHeapGrewTakesNoBaseline) {
  AddressSpace space(kPage);
  space.add_baseline(resident_mapping(kBase, kBase + 16 * kPage, 10 * kPage, Source::kMallocHeap));
  for (std::uint64_t round = 0; round < 500; ++round) {
    const std::uint64_t now = 10 * round;
    space.set_break(kBase, kBase + 24 * kPage, now + 1, now + 2);
    touch_pages(space, kBase + 16 * kPage, 8, now + 3);
    space.set_break(kBase, kBase + 32 * kPage, now + 4, now + 5);
    space.set_break(kBase, kBase + 16 * kPage, now + 6, now + 7);
  }
  EXPECT_EQ(space.resident()[Source::kMallocHeap], 10 * 4096);
  EXPECT_EQ(space.mappings().size(), 1U);
  space.set_break(kBase, kBase + 8 * kPage, 9001, 9002);
  EXPECT_EQ(space.resident()[Source::kMallocHeap], 5 * 4096);
  expect_laws(space);
}

TEST(AddressSpace, AHeapThatGrowsInManyStepsIsOneMapping) {
  AddressSpace space(kPage);
  space.add_baseline(resident_mapping(kBase, kBase + kPage, kPage, Source::kMallocHeap));
  for (std::uint64_t pages = 2; pages < 2000; ++pages) {
    space.set_break(kBase, kBase + pages * kPage, pages * 2, pages * 2 + 1);
    space.touch(kBase + (pages - 1) * kPage, 1, kPage, false, pages * 2 + 1);
  }
  EXPECT_EQ(space.mappings().size(), 2U);
  EXPECT_EQ(space.resident()[Source::kMallocHeap], 1999 * 4096);
}

TEST(AddressSpace, AnInheritedHeapGrowsByMemoryOfTheWorkersOwn) {
  AddressSpace parent(kPage);
  parent.set_break(kBase, kBase + 4 * kPage, 1, 2);
  AddressSpace child = parent.forked();
  child.set_break(kBase, kBase + 8 * kPage, 5, 6);
  EXPECT_TRUE(child.mappings().find(kBase)->inherited);
  EXPECT_FALSE(child.mappings().find(kBase + 4 * kPage)->inherited);
}

TEST(AddressSpace, AHeapWithAHoleKeepsItsBaselineWhenItGrows) {
  AddressSpace space(kPage);
  space.add_baseline(resident_mapping(kBase + kPage, kBase + 4 * kPage, 3 * kPage, Source::kMallocHeap));
  space.set_break(kBase, kBase + 8 * kPage, 1, 2);
  EXPECT_EQ(space.freed_bytes(), 0U);
}

TEST(AddressSpace, PagesMoveWithTheirMapping) {
  AddressSpace space(kPage);
  space.add_baseline(resident_mapping(kBase, kBase + 4 * kPage, 4 * kPage, Source::kMallocMmap));
  touch_pages(space, kBase, 4, 3);
  const std::uint64_t to = kBase + kMiB;
  space.remap(kBase, 4 * kPage, to, 8 * kPage, 4, 5);
  EXPECT_EQ(space.resident()[Source::kMallocMmap], 8 * 4096);
  EXPECT_EQ(space.samples().begin()->first, to);
  EXPECT_EQ(space.freed_bytes(), 0U);
  space.remap(to, 8 * kPage, to, 2 * kPage, 6, 7);
  EXPECT_EQ(space.resident()[Source::kMallocMmap], 4 * 4096);
  expect_laws(space);
}

TEST(AddressSpace, AMoveFreesWhatLayAtItsDestination) {
  AddressSpace space(kPage);
  space.map(anonymous(kBase, 2 * kPage), 1, 2);
  space.map(anonymous(kBase + kMiB, 2 * kPage), 1, 2);
  touch_pages(space, kBase, 1, 3);
  touch_pages(space, kBase + kMiB, 2, 3);
  space.remap(kBase, 2 * kPage, kBase + kMiB, 2 * kPage, 4, 5);
  EXPECT_EQ(space.freed_bytes(), 2 * kPage);
  EXPECT_EQ(space.samples().size(), 1U);
  expect_laws(space);
}

TEST(AddressSpace, MakingAPrefixOfAReservationWritableNamesTheWholeArena) {
  const std::uint64_t arena = kBase / kArena * kArena + kArena;
  AddressSpace space(kPage);
  space.map(anonymous(arena - kArena / 2, 2 * kArena, PROT_NONE), 1, 2);
  space.unmap(arena - kArena / 2, kArena / 2, 3);
  space.unmap(arena + kArena, kArena / 2, 4);
  ASSERT_EQ(space.mappings().size(), 1U);
  const auto expected = classify_protect(space.mappings().find(arena)->source, arena, PROT_READ | PROT_WRITE);
  ASSERT_TRUE(expected);
  space.touch(arena, 1, kPage, false, 5);
  space.protect(arena, 132 * 1024, PROT_READ | PROT_WRITE);
  EXPECT_EQ(space.mappings().size(), 1U);
  EXPECT_EQ(space.mappings().find(arena + kArena - 1)->source, *expected);
  EXPECT_EQ(space.resident()[*expected], 4096);
  expect_laws(space);
}

TEST(AddressSpace, AForkedWorkerInheritsWhatWasResident) {
  AddressSpace parent(kPage);
  parent.set_traits({.python_arena_bytes = kMiB, .other_allocator = true});
  parent.add_baseline(resident_mapping(kBase, kBase + 4 * kPage, 3 * kPage, Source::kPythonArena));
  parent.touch(kBase, 2, kPage, false, 3);
  parent.touch(kBase + kMiB, 1, kPage, false, 3);  // in no known mapping
  parent.touch(kBase, 1, kPage, true, 3);
  const AddressSpace child = parent.forked();
  EXPECT_EQ(child.resident(), parent.resident());
  EXPECT_EQ(child.start_bytes(), 6 * kPage);
  EXPECT_EQ(child.attributed_bytes(), 0U);
  EXPECT_EQ(child.freed_bytes(), 0U);
  EXPECT_EQ(child.copied_on_write(), SourceBytes());
  EXPECT_TRUE(child.samples().empty());
  EXPECT_EQ(child.traits(), parent.traits());
  EXPECT_TRUE(child.mappings().find(kBase)->inherited);
  EXPECT_FALSE(parent.mappings().find(kBase)->inherited);
  expect_laws(child);
}

// Live allocations keyed by address alone would mix these up.
TEST(AddressSpace, WorkersThatShareAddressesDoNotMix) {
  AddressSpace parent(kPage);
  parent.map(anonymous(kBase, 4 * kPage), 1, 2);
  touch_pages(parent, kBase, 4, 3);
  AddressSpace first = parent.forked();
  AddressSpace second = parent.forked();
  const Books before = books(parent);
  first.unmap(kBase, 4 * kPage, 10);
  second.touch(kBase, 1, kPage, true, 11);
  EXPECT_EQ(books(parent), before);
  EXPECT_EQ(first.resident().total(), 0);
  EXPECT_EQ(second.resident().total(), 4 * 4096);
  EXPECT_EQ(second.copied_on_write().total(), 4096);
  EXPECT_EQ(first.copied_on_write().total(), 0);
}

// Thread A: munmap entered at 10, returned at 40. Thread B: the same range from mmap at 30, touched at 35.
TEST(AddressSpace, AnUnmapHeardOfAtAnyMomentGivesTheSameBooks) {
  const std::function<void(AddressSpace&)> unmap = [](AddressSpace& s) { s.unmap(kBase, 4 * kPage, 10); };
  const std::function<void(AddressSpace&)> map = [](AddressSpace& s) {
    s.map(anonymous(kBase, 4 * kPage), 20, 30);
  };
  const std::function<void(AddressSpace&)> touch = [](AddressSpace& s) {
    s.touch(kBase, 1, kPage, false, 35);
  };
  std::vector<Books> outcomes;
  for (const auto& order : {std::vector{unmap, map, touch}, {map, unmap, touch}, {map, touch, unmap}}) {
    AddressSpace space(kPage);
    space.add_baseline(resident_mapping(kBase, kBase + 4 * kPage, 3 * kPage, Source::kMallocMmap));
    touch_pages(space, kBase, 4, 5);
    for (const auto& event : order) {
      event(space);
      expect_laws(space);
    }
    outcomes.push_back(books(space));
  }
  EXPECT_EQ(outcomes[0], outcomes[1]);
  EXPECT_EQ(outcomes[0], outcomes[2]);
  EXPECT_EQ(outcomes[0].resident.total(), 4096);
}

// The same where B gets its memory from the break, from mremap, and where the unmap covers more than B was
// given.
TEST(AddressSpace, AnUnmapHeardOfLateSparesMovedMappingsAndTheHeap) {
  const std::function<void(AddressSpace&)> unmap = [](AddressSpace& s) { s.unmap(kBase, 8 * kPage, 10); };
  const std::function<void(AddressSpace&)> move = [](AddressSpace& s) {
    s.remap(kBase + kMiB, kPage, kBase + kPage, 2 * kPage, 20, 30);
  };
  const std::function<void(AddressSpace&)> grow = [](AddressSpace& s) {
    s.set_break(kBase + 4 * kPage, kBase + 6 * kPage, 20, 31);
  };
  std::vector<std::function<void(AddressSpace&)>> events = {unmap, move, grow};
  std::vector<int> order = {0, 1, 2};
  std::optional<Books> expected;
  do {
    AddressSpace space(kPage);
    space.map(anonymous(kBase, 8 * kPage), 1, 2);
    space.map(anonymous(kBase + kMiB, kPage), 1, 2);
    touch_pages(space, kBase, 8, 5);
    touch_pages(space, kBase + kMiB, 1, 5);
    for (const int event : order) {
      events[static_cast<std::size_t>(event)](space);
      expect_laws(space);
    }
    EXPECT_EQ(space.resident().total(), 4096);
    if (!expected) {
      expected = books(space);
    }
    EXPECT_EQ(books(space), *expected);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(AddressSpace, IndependentCallsCommute) {
  const std::vector<std::function<void(AddressSpace&)>> events = {
      [](AddressSpace& s) { s.unmap(kBase + kPage, kPage, 10); },
      [](AddressSpace& s) { s.advise(kBase + 3 * kPage, kPage, MADV_DONTNEED, 10); },
      [](AddressSpace& s) { s.map(anonymous(kBase + kMiB, kPage), 10, 11); },
      [](AddressSpace& s) { s.set_break(kBase + 2 * kMiB, kBase + 2 * kMiB + kPage, 10, 11); },
      [](AddressSpace& s) { s.touch(kBase, 3, kPage, false, 12); },
  };
  std::vector<std::size_t> order = {0, 1, 2, 3, 4};
  std::optional<Books> expected;
  do {
    AddressSpace space(kPage);
    space.map(anonymous(kBase, 8 * kPage), 1, 2);
    touch_pages(space, kBase, 8, 5);
    for (const std::size_t event : order) {
      events[event](space);
    }
    expect_laws(space);
    if (!expected) {
      expected = books(space);
    }
    ASSERT_EQ(books(space), *expected);
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(AddressSpace, TooManySamplesAreMergedAndTheTotalsStay) {
  AddressSpace space(kPage, 100);
  space.map(anonymous(kBase, 1024 * kMiB), 1, 2);
  space.set_break(kBase - kMiB, kBase, 1, 2);
  for (std::uint64_t page = 0; page < 5000; ++page) {
    space.touch(kBase + page * kPage, 1, kPage, false, 3);
    if (page < 256) {
      space.touch(kBase - kMiB + page * kPage, 1, kPage, false, 3);
    }
    ASSERT_LE(space.samples().size(), 100U);
  }
  EXPECT_EQ(space.attributed_bytes(), 5256 * kPage);
  EXPECT_EQ(space.freed_bytes(), 0U);
  EXPECT_EQ(space.resident()[Source::kMallocHeap], 256 * 4096);
  EXPECT_EQ(space.thinned_samples() + space.samples().size(), 5256U);
  expect_laws(space);
}

TEST(AddressSpace, TheSmallestLimitOnSamplesStillHolds) {
  AddressSpace space(kPage, 0);
  for (std::uint64_t page = 0; page < 1000; ++page) {
    space.touch(kBase + page * kPage, 1, kPage, false, 3);
  }
  EXPECT_LE(space.samples().size(), 2 * kSourceCount);
  EXPECT_EQ(space.resident().total(), 1000 * 4096);
}

TEST(AddressSpace, HostileFiguresBreakNothing) {
  const std::uint64_t figures[] = {
      0, 1, kPage - 1, kPage, kBase, kBase + 1, kMax / 2 + 1, kMax - kPage, kMax - kPage + 1, kMax};
  AddressSpace space(kPage);
  space.add_baseline(resident_mapping(kBase, kBase + 8 * kPage, kMax, Source::kTensor));
  for (const std::uint64_t a : figures) {
    for (const std::uint64_t b : figures) {
      space.touch(a, b, b, false, a);
      space.touch(a, b, a, true, a);
      space.touch(a, kMax, kHuge, false, b);
      space.map(anonymous(a, b), b, a);
      space.protect(a, b, PROT_READ | PROT_WRITE);
      space.advise(a, b, MADV_DONTNEED, a);
      space.set_break(a, b, a, b);
      space.set_break(b, a, kMax, kMax);
      for (const std::uint64_t c : figures) {
        space.remap(a, b, c, b, a, c);
        space.remap(a, b, b, c, kMax, kMax);
      }
      space.drop_sample(a);
      expect_laws(space);
      expect_laws(space.forked());
      space.unmap(a, b, b);
    }
  }
  space.unmap(0, kMax, kMax);
  expect_laws(space);
}

void random_step(AddressSpace& space, std::mt19937_64& random, std::uint64_t now) {
  const auto address = [&random] { return kBase + random() % (64 * kPage); };
  const auto length = [&random] { return random() % 50 == 0 ? random() : random() % (12 * kPage); };
  const std::uint64_t entered = now - std::min<std::uint64_t>(now, random() % 5);
  switch (random() % 12) {
    case 0:
    case 1:
      return space.map(anonymous(address(), length()), entered, now);
    case 2:
      return space.map(file(address(), length(), "dataset.bin", MAP_SHARED), entered, now);
    case 3:
      return space.unmap(address(), length(), entered);
    case 4:
      return space.remap(address(), length(), address(), length(), entered, now);
    case 5:
      return space.protect(address(), length(), static_cast<std::uint32_t>(random() % 8));
    case 6:
      return space.set_break(kBase + random() % 2 * kPage, address(), entered, now);
    case 7:
      return space.advise(address(), length(), static_cast<std::uint32_t>(random() % 26), entered);
    case 8:
      return space.drop_sample(address());
    default:
      space.touch(address(), random() % 16, random() % 8 == 0 ? kHuge : kPage, random() % 8 == 0, now);
  }
}

TEST(AddressSpace, TheLawsHoldAfterEveryRandomEvent) {
  for (std::uint32_t seed = 1; seed <= 40; ++seed) {
    std::mt19937_64 random(seed);
    AddressSpace space(kPage, seed % 2 == 0 ? 40 : 65536);
    space.add_baseline(resident_mapping(kBase, kBase + 9 * kPage, 10007, Source::kMallocHeap));
    space.add_baseline(resident_mapping(kBase + 16 * kPage, kBase + 40 * kPage, 77777, Source::kTensor));
    for (std::uint64_t now = 1; now <= 1500; ++now) {
      random_step(space, random, now);
      expect_laws(space);
      ASSERT_FALSE(testing::Test::HasFailure()) << "seed " << seed << " step " << now;
      if (now % 500 == 0) {
        const AddressSpace child = space.forked();
        expect_laws(child);
        ASSERT_EQ(child.resident().total(), space.resident().total());
        space = child;
      }
    }
    space.unmap(0, kMax, kMax);
    expect_laws(space);
    ASSERT_EQ(space.resident(), SourceBytes());
  }
}

TEST(AddressSpace, AHundredThousandMappingsAreNoBurden) {
  const auto started = std::chrono::steady_clock::now();
  AddressSpace space(kPage);
  for (std::uint64_t i = 0; i < 100000; ++i) {
    space.map(anonymous(kBase + i * 4 * kPage, 3 * kPage), 1, 2);
    space.touch(kBase + i * 4 * kPage, 1, kPage, false, 3);
    space.set_break(kPage, (i + 2) * kPage, 1, 2);
  }
  const AddressSpace child = space.forked();
  EXPECT_EQ(child.resident().total(), space.resident().total());
  for (std::uint64_t i = 0; i < 100000; ++i) {
    space.unmap(kBase + (i * 7919 % 100000) * 4 * kPage, 3 * kPage, 4);
  }
  EXPECT_EQ(space.resident().total(), 0);
  EXPECT_EQ(space.mappings().size(), 1U);
  // A scan at each call would take minutes.
  EXPECT_LT(std::chrono::steady_clock::now() - started, std::chrono::seconds(20));
}

TEST(AddressSpace, MappingsBeyondTheLimitAreRefusedAndCounted) {
  AddressSpace space(kPage);
  for (std::uint64_t i = 0; i < RangeLedger::kMaxPieces + 10; ++i) {
    space.map(anonymous(kBase + i * 2 * kPage, kPage), 1, 2);
  }
  EXPECT_EQ(space.mappings().size(), RangeLedger::kMaxPieces);
  EXPECT_EQ(space.refused_mappings(), 10U);
}

}  // namespace
}  // namespace torchleak
