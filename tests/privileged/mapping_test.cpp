// SPDX-License-Identifier: Apache-2.0
// Known bytes by each way to get and to give back memory of one's own.
#include <sys/mman.h>
#include <unistd.h>

#include "rig/books.hpp"
#include "rig/machine.hpp"
#include "rig/scene.hpp"

namespace torchleak::rig {
namespace {

class Mapping : public PrivilegedTest {};

constexpr std::uint64_t kBytes = 64 * kMiB;

TEST_F(Mapping, TouchedMmapIsOtherAnonymousMemory) {
  const Outcome seen = trace({"mmap", known("bytes", kBytes)});
  expect_exact(growth_of(seen.process, Source::kAnonOther), kBytes);
  expect_sampled(seen.process.reconciliation.attributed, kBytes);
  expect_true_books(seen);
}

TEST_F(Mapping, AnMmapThatLiesWhereAnArenaMightIsNone) {
  const Outcome seen = trace({"mmap-aligned", known("bytes", kBytes)});
  expect_exact(growth_of(seen.process, Source::kAnonOther), kBytes);
  EXPECT_EQ(growth_of(seen.process, Source::kMallocArena), 0);
  expect_true_books(seen);
}

TEST_F(Mapping, UntouchedMmapIsNoMemory) {
  const Outcome seen = trace({"mmap", known("bytes", 1024 * kMiB), known("touched", kMiB)});
  expect_exact(growth_of(seen.process, Source::kAnonOther), kMiB);
  expect_true_books(seen);
}

TEST_F(Mapping, GrowthOfTheBreakIsHeap) {
  const Outcome seen = trace({"brk", known("bytes", kBytes)});
  expect_exact(growth_of(seen.process, Source::kMallocHeap), kBytes);
  expect_sampled(seen.process.reconciliation.attributed, kBytes);
  expect_true_books(seen);
}

TEST_F(Mapping, SmallBlocksOfTheMainThreadAreHeap) {
  const Outcome seen = trace({"malloc-small", known("bytes", kBytes)});
  expect_exact(growth_of(seen.process, Source::kMallocHeap), seen.done.at("bytes"));
  expect_true_books(seen);
}

TEST_F(Mapping, SmallBlocksOfAThreadAreItsArena) {
  const Outcome seen = trace({"malloc-arena", known("bytes", 48 * kMiB)});
  expect_exact(growth_of(seen.process, Source::kMallocArena), seen.done.at("bytes"));
  expect_true_books(seen);
}

TEST_F(Mapping, ALargeBlockIsAMappingOfMalloc) {
  const Outcome seen = trace({"malloc-large", known("bytes", kBytes)});
  expect_exact(growth_of(seen.process, Source::kMallocMmap), kBytes);
  EXPECT_EQ(growth_of(seen.process, Source::kAnonOther), 0);
  expect_true_books(seen);
}

TEST_F(Mapping, AMoveByMremapNeitherTakesNorFrees) {
  const Outcome seen = trace({"mremap", known("bytes", kBytes / 2)});
  EXPECT_EQ(seen.done.at("moved"), 1U);
  expect_exact(growth_of(seen.process, Source::kAnonOther), kBytes);
  expect_sampled(seen.process.reconciliation.attributed, kBytes);
  EXPECT_LE(seen.process.reconciliation.freed, ::getpagesize());
  expect_true_books(seen);
}

class TakenBefore : public PrivilegedTest, public testing::WithParamInterface<bool> {
 protected:
  Words workload(const std::string& name) const {
    return {name, known("bytes", kBytes), known("before", GetParam() ? 1 : 0)};
  }
  std::int64_t taken() const { return GetParam() ? 0 : static_cast<std::int64_t>(kBytes); }
};

INSTANTIATE_TEST_SUITE_P(Mapping, TakenBefore, testing::Bool(), [](const auto& before) {
  return before.param ? std::string("TheCapture") : std::string("TheGivingBack");
});

TEST_P(TakenBefore, UnmappingAPartFreesThatPart) {
  const Outcome seen = trace(workload("munmap-part"));
  expect_exact(taken() - growth_of(seen.process, Source::kAnonOther), seen.done.at("freed"), 2);
  expect_sampled(seen.process.reconciliation.freed, seen.done.at("freed"));
  expect_true_books(seen);
}

TEST_P(TakenBefore, MemoryNotNeededIsFreed) {
  Words words = workload("madvise");
  words.push_back(known("advice", MADV_DONTNEED));
  const Outcome seen = trace(words);
  expect_exact(taken() - growth_of(seen.process, Source::kAnonOther), seen.done.at("advised"));
  expect_sampled(seen.process.reconciliation.freed, seen.done.at("advised"));
  expect_true_books(seen);
}

TEST_P(TakenBefore, MemoryFreedLazilyStaysUntilItIsWanted) {
  Words words = workload("madvise");
  words.push_back(known("advice", MADV_FREE));
  const Outcome seen = trace(words);
  expect_exact(growth_of(seen.process, Source::kAnonOther), static_cast<std::uint64_t>(taken()));
  EXPECT_LE(seen.process.reconciliation.freed, ::getpagesize());
  expect_true_books(seen);
}

TEST_F(Mapping, StacksOfThreadsAreTheirOwnSource) {
  constexpr std::uint64_t kThreads = 8;
  const Outcome seen = trace({"stacks", known("count", kThreads), known("bytes", 4 * kMiB)});
  expect_exact(growth_of(seen.process, Source::kThreadStack), seen.done.at("bytes"), kThreads);
  expect_true_books(seen);
}

}  // namespace
}  // namespace torchleak::rig
