// SPDX-License-Identifier: Apache-2.0
#include "torchleak/core/ledger.hpp"

#include <gtest/gtest.h>

#include "ledger_events.hpp"

namespace torchleak {
namespace {

constexpr std::uint32_t kMain = 100;
constexpr std::uint32_t kChild = 101;
constexpr std::uint64_t kStart = 1000;  // of the capture
constexpr std::uint64_t kMainStart = 50 * kTick;
constexpr std::uint64_t kChildStart = 70 * kTick + 1234;

// A ledger that follows one process of 8 MiB, all of it in one mapping of 16 MiB at kBase.
class LedgerTest : public ::testing::Test {
 protected:
  LedgerTest() : LedgerTest(LedgerOptions{}) {}
  explicit LedgerTest(const LedgerOptions& options) : ledger(options, kStart) {
    auto main = found(kMain, 1, kMainStart, seen(kStart, 8 * kMiB));
    main.target = true;
    ledger.add(main);
    ledger.set_baseline(kMain, snapshot_of(kStart + 10, 16 * kMiB, 8 * kMiB));
  }

  const ProcessReport& report(std::uint32_t pid) {
    closed = ledger.close(100 * kSecond);
    const auto it = std::ranges::find(closed, pid, &ProcessReport::pid);
    if (it == closed.end()) {
      throw std::runtime_error("no such process in the report");
    }
    return *it;
  }

  Ledger ledger;
  std::vector<ProcessReport> closed;
};

TEST_F(LedgerTest, AProcessThatRunsAlreadyStartsWithWhatItHolds) {
  const Process* main = ledger.find(kMain);
  ASSERT_NE(main, nullptr);
  EXPECT_EQ(main->start.rss, 8 * kMiB);
  EXPECT_EQ(main->latest, main->start);
  EXPECT_EQ(main->start_sources[Source::kAnonOther], 8 << 20);
  EXPECT_EQ(main->space.resident().total(), 8 << 20);
  EXPECT_EQ(ledger.growth_bytes(), 0);
  EXPECT_EQ(ledger.live(), std::vector<std::uint32_t>{kMain});
}

TEST_F(LedgerTest, WhatHappenedBeforeTheBaselineWasReadIsInItAlready) {
  ledger.apply(mapped(kMain, kStart + 5, kBase + 32 * kMiB, kMiB));
  ledger.apply(touched(kMain, kStart + 6, kBase + 32 * kMiB));
  ledger.apply(unmapped(kMain, kStart + 7, kBase, kMiB));
  EXPECT_EQ(ledger.find(kMain)->space.attributed_bytes(), 0U);
  EXPECT_EQ(ledger.find(kMain)->space.freed_bytes(), 0U);
  EXPECT_EQ(ledger.find(kMain)->faults, Faults{});
  ledger.apply(touched(kMain, kStart + 10, kBase + 9 * kMiB, 3));
  EXPECT_EQ(ledger.find(kMain)->space.attributed_bytes(), 3 * kPage);
}

TEST_F(LedgerTest, AnObservationOlderThanTheBaselineIsIgnored) {
  ledger.observe(kMain, seen(kStart + 5, 99 * kMiB));
  EXPECT_EQ(ledger.find(kMain)->latest.rss, 8 * kMiB);
}

TEST_F(LedgerTest, AForkedChildStartsWithTheFiguresOfTheKernel) {
  ledger.apply(forked(kMain, kChild, kStart + 20, kChildStart, pages(1024)));
  const Process* child = ledger.find(kChild);
  ASSERT_NE(child, nullptr);
  EXPECT_EQ(child->start.anon, 4 * kMiB);
  EXPECT_EQ(child->space.resident().total(), 4 << 20);
  EXPECT_EQ(child->start_sources.total(), 4 << 20);
  EXPECT_EQ(child->ppid, kMain);
  EXPECT_EQ(child->parent, std::size_t{0});
  EXPECT_EQ(child->cmdline, ledger.find(kMain)->cmdline);
  EXPECT_EQ(ledger.growth_bytes(), 0);
}

TEST_F(LedgerTest, ParentAndChildKeepApartBooksAtTheSameAddresses) {
  ledger.apply(forked(kMain, kChild, kStart + 20, kChildStart, pages(2048)));
  ledger.apply(mapped(kMain, kStart + 30, kBase + 32 * kMiB, kMiB));
  ledger.apply(mapped(kChild, kStart + 31, kBase + 32 * kMiB, kMiB));
  ledger.apply(touched(kMain, kStart + 32, kBase + 32 * kMiB, 10));
  ledger.apply(touched(kChild, kStart + 33, kBase + 32 * kMiB, 4));
  ledger.apply(unmapped(kChild, kStart + 34, kBase + 32 * kMiB, kMiB));
  EXPECT_EQ(ledger.find(kMain)->space.attributed_bytes(), 10 * kPage);
  EXPECT_EQ(ledger.find(kMain)->space.freed_bytes(), 0U);
  EXPECT_EQ(ledger.find(kChild)->space.attributed_bytes(), 4 * kPage);
  EXPECT_EQ(ledger.find(kChild)->space.freed_bytes(), 4 * kPage);
}

TEST_F(LedgerTest, AWriteToAnInheritedPageIsTheChildsCopyAndItsGrowth) {
  ledger.apply(forked(kMain, kChild, kStart + 20, kChildStart, pages(2048)));
  ledger.apply(touched(kChild, kStart + 30, kBase, 5, TL_FAULT_PRESENT));
  EXPECT_EQ(ledger.find(kChild)->faults.cow, 5U);
  EXPECT_EQ(ledger.find(kChild)->space.attributed_bytes(), 0U);
  EXPECT_EQ(ledger.growth_bytes(), 5 * 4096);
  EXPECT_EQ(report(kChild).growth_bytes(), 5 * 4096);
  EXPECT_EQ(report(kMain).growth_bytes(), 0);
}

TEST_F(LedgerTest, WhatAVforkedChildDoesIsDoneInTheMemoryOfItsParent) {
  ledger.apply(vforked(kMain, kChild, kStart + 20, kChildStart));
  ledger.apply(touched(kChild, kStart + 30, kBase + 10 * kMiB, 7));
  ledger.observe(kChild, seen(kStart + 31, 8 * kMiB));
  EXPECT_EQ(ledger.find(kMain)->space.attributed_bytes(), 7 * kPage);
  EXPECT_EQ(ledger.find(kChild)->space.attributed_bytes(), 0U);
  EXPECT_EQ(ledger.find(kChild)->latest, MemoryCounts{});
  EXPECT_TRUE(report(kChild).sources.empty());
}

TEST_F(LedgerTest, AfterItsExecAVforkedChildHasMemoryOfItsOwn) {
  ledger.apply(vforked(kMain, kChild, kStart + 20, kChildStart));
  ledger.apply(executed(kChild, kStart + 30, "sh"));
  ledger.apply(touched(kChild, kStart + 40, kBase, 2));
  EXPECT_EQ(ledger.find(kMain)->space.attributed_bytes(), 0U);
  EXPECT_EQ(ledger.find(kChild)->space.attributed_bytes(), 2 * kPage);
}

TEST_F(LedgerTest, AVforkOfAVforkWorksInTheMemoryOfTheFirst) {
  ledger.apply(vforked(kMain, kChild, kStart + 20, kChildStart));
  ledger.apply(vforked(kChild, 102, kStart + 21, kChildStart + kTick));
  ledger.apply(touched(102, kStart + 30, kBase + 10 * kMiB));
  EXPECT_EQ(ledger.find(kMain)->space.attributed_bytes(), kPage);
}

TEST_F(LedgerTest, AForkOfAVforkedChildCopiesTheMemoryItBorrows) {
  ledger.apply(vforked(kMain, kChild, kStart + 20, kChildStart));
  ledger.apply(forked(kChild, 102, kStart + 21, kChildStart + kTick, pages(2048)));
  EXPECT_EQ(ledger.find(102)->space.resident().total(), 8 << 20);
}

TEST_F(LedgerTest, ExecClearsWhatTheForkCopied) {
  ledger.apply(forked(kMain, kChild, kStart + 20, kChildStart, pages(2048)));
  ledger.apply(touched(kChild, kStart + 25, kBase + 9 * kMiB));
  ledger.apply(executed(kChild, kStart + 30, "ls"));
  const Process* child = ledger.find(kChild);
  EXPECT_TRUE(child->execed);
  EXPECT_EQ(child->comm, "ls");
  EXPECT_EQ(child->cmdline, std::vector<std::string>{"ls"});
  EXPECT_EQ(child->start, MemoryCounts{});
  EXPECT_EQ(child->latest, MemoryCounts{});
  EXPECT_EQ(child->space.resident().total(), 0);
  EXPECT_EQ(child->space.mappings().size(), 0U);
  EXPECT_EQ(ledger.find(kMain)->space.resident().total(), 8 << 20);
}

TEST_F(LedgerTest, AnExitIsToldByCodeOrBySignal) {
  struct Case {
    std::int32_t wait_status;
    Exit exit;
  };
  const Case cases[] = {{0, {0, 0, false}},
                        {3 << 8, {3, 0, false}},
                        {255 << 8, {255, 0, false}},
                        {9, {0, 9, false}},
                        {11 | 0x80, {0, 11, false}}};  // with a core dump
  std::uint32_t pid = 200;
  for (const Case& expected : cases) {
    ledger.apply(forked(kMain, ++pid, kStart + 20, kChildStart));
    ledger.apply(ended(pid, kStart + 30, expected.wait_status));
    EXPECT_EQ(report(pid).exit, expected.exit) << expected.wait_status;
    EXPECT_EQ(ledger.find(pid), nullptr);
  }
}

TEST_F(LedgerTest, AVictimOfTheOomKillerIsNamedOne) {
  ledger.apply(forked(kMain, kChild, kStart + 20, kChildStart));
  ledger.apply(record_of<tl_oom_kill>(kChild, kStart + 25));
  ledger.apply(ended(kChild, kStart + 30, 9));
  EXPECT_EQ(report(kChild).exit, (Exit{0, 9, true}));
}

TEST_F(LedgerTest, TheLastFiguresOfAnEndedProcessAreThoseOfItsExit) {
  ledger.apply(forked(kMain, kChild, kStart + 20, kChildStart, pages(2048)));
  ledger.observe(kChild, seen(kStart + 25, 9 * kMiB));
  auto exit = ended(kChild, kStart + 30, 0, pages(4096));
  exit.peak_rss_pages = 5120;
  exit.minor_faults = 77;
  exit.major_faults = 3;
  exit.counters.swap_out_pages = 2;
  ledger.apply(exit);
  const ProcessReport& child = report(kChild);
  EXPECT_EQ(child.end.rss, 16 * kMiB);
  EXPECT_EQ(child.peak_rss, 20 * kMiB);
  EXPECT_EQ(child.faults.minor, 77U);
  EXPECT_EQ(child.faults.major, 3U);
  EXPECT_EQ(child.faults.swap_out, 2U);
}

TEST_F(LedgerTest, WhereTheKernelLetGoOfTheMemoryTheLastObservationStands) {
  ledger.apply(forked(kMain, kChild, kStart + 20, kChildStart, pages(2048)));
  ledger.observe(kChild, seen(kStart + 25, 9 * kMiB));
  ledger.apply(ended(kChild, kStart + 30));
  EXPECT_EQ(report(kChild).end.rss, 9 * kMiB);
}

TEST_F(LedgerTest, FaultsAreCountedFromTheAttachOn) {
  Observation before = seen(kStart, kMiB);
  before.minor_faults = 1000;
  before.major_faults = 10;
  ledger.add(found(300, kMain, kMainStart, before));
  Observation later = seen(kStart + 20, kMiB);
  later.minor_faults = 1007;
  later.major_faults = 12;
  ledger.observe(300, later);
  EXPECT_EQ(ledger.find(300)->faults.minor, 7U);
  EXPECT_EQ(ledger.find(300)->faults.major, 2U);
}

TEST_F(LedgerTest, APidUsedAgainIsANewProcessThoughTheExitWasLost) {
  ledger.apply(forked(kMain, kChild, kStart + 20, kChildStart, pages(2048)));
  ledger.apply(touched(kChild, kStart + 25, kBase + 9 * kMiB, 50));
  ledger.apply(forked(kMain, kChild, kStart + 30, kChildStart + 5 * kTick, pages(512)));
  EXPECT_EQ(ledger.find(kChild)->start_ns, kChildStart + 5 * kTick);
  EXPECT_EQ(ledger.find(kChild)->space.attributed_bytes(), 0U);
  const auto all = ledger.close(kSecond);
  ASSERT_EQ(all.size(), 3U);
  EXPECT_TRUE(all[1].ended_s);
  EXPECT_FALSE(all[1].exit);  // nobody saw how
  EXPECT_FALSE(all[2].ended_s);
}

TEST_F(LedgerTest, APidUsedAgainAfterItsExitIsANewProcess) {
  ledger.apply(forked(kMain, kChild, kStart + 20, kChildStart, pages(2048)));
  ledger.apply(ended(kChild, kStart + 25, 1 << 8));
  ledger.apply(forked(kMain, kChild, kStart + 30, kChildStart, pages(512)));
  const auto all = ledger.close(kSecond);
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[1].exit, (Exit{1, 0, false}));
  EXPECT_EQ(all[2].start.anon, 512 * kPage);
  EXPECT_FALSE(all[2].ended_s);
}

TEST_F(LedgerTest, AProcessFoundInProcBeforeItsForkIsReadIsOneProcess) {
  // /proc counts in ticks what the record has in nanoseconds.
  ledger.add(found(kChild, kMain, kChildStart / kTick * kTick, seen(kStart, kMiB)));
  ledger.apply(forked(kMain, kChild, kStart + 20, kChildStart, pages(2048)));
  EXPECT_EQ(ledger.close(kSecond).size(), 2U);
  EXPECT_EQ(ledger.find(kChild)->start.rss, kMiB);
}

TEST_F(LedgerTest, AProcessFoundInProcAfterItsForkIsOneProcess) {
  ledger.apply(forked(kMain, kChild, kStart + 20, kChildStart, pages(2048)));
  ledger.add(found(kChild, kMain, kChildStart / kTick * kTick, seen(kStart + 30, kMiB)));
  EXPECT_EQ(ledger.close(kSecond).size(), 2U);
  EXPECT_EQ(ledger.find(kChild)->start.anon, 8 * kMiB);
}

TEST_F(LedgerTest, EventsOfStrangersAreCountedAndChangeNothing) {
  ledger.apply(touched(999, kStart + 20, kBase));
  ledger.apply(ended(999, kStart + 30));
  ledger.observe(999, seen(kStart + 30, kMiB));
  ledger.set_baseline(999, {});
  ledger.set_end(999, {});
  ledger.set_counters(999, {1, 1, 0, 0});
  ledger.set_cmdline(999, {"x"});
  EXPECT_EQ(ledger.orphan_events(), 2U);
  EXPECT_EQ(ledger.close(kSecond).size(), 1U);
}

TEST_F(LedgerTest, TheNameOfAThreadIsNotTheNameOfItsProcess) {
  auto event = record_of<tl_rename>(kMain, kStart + 20);
  event.tid = kMain + 7;
  set_name(event.comm, "pt_pin_memory");
  ledger.apply(event);
  EXPECT_EQ(ledger.find(kMain)->comm, "python3");
  event.tid = kMain;
  set_name(event.comm, "pt_main_thread");
  ledger.apply(event);
  EXPECT_EQ(ledger.find(kMain)->comm, "pt_main_thread");
}

TEST_F(LedgerTest, ADetachedSegmentTakesItsPagesWithIt) {
  auto attach = record_of<AttachShmEvent>(kMain, kStart + 20);
  attach.entry_ns = kStart + 20;
  attach.address = kBase + 64 * kMiB;
  ledger.apply(attach, {.attached_bytes = kMiB});
  ledger.apply(touched(kMain, kStart + 21, kBase + 64 * kMiB, 9));
  EXPECT_EQ(ledger.find(kMain)->space.resident()[Source::kSharedMemory], 9 * 4096);
  EXPECT_EQ(ledger.find(kMain)->faults.shmem, 9U);
  auto detach = record_of<DetachShmEvent>(kMain, kStart + 30);
  detach.entry_ns = kStart + 30;
  detach.address = attach.address;
  ledger.apply(detach);
  EXPECT_EQ(ledger.find(kMain)->space.resident()[Source::kSharedMemory], 0);
}

TEST_F(LedgerTest, AFaultSeenForAShareOfTheTimeWeighsMore) {
  ledger.apply(touched(kMain, kStart + 20, kBase + 9 * kMiB, 10, TL_FAULT_KERNEL), {.sampled_share = 0.25});
  EXPECT_EQ(ledger.find(kMain)->space.attributed_bytes(), 40 * kPage);
  EXPECT_EQ(ledger.find(kMain)->faults.kernel, 40U);
  EXPECT_EQ(ledger.find(kMain)->faults.first_touch, 40U);
}

TEST_F(LedgerTest, AHugePageCountsByItsSize) {
  ledger.apply(mapped(kMain, kStart + 15, kBase + 64 * kMiB, 8 * kMiB));
  ledger.apply(touched(kMain, kStart + 20, kBase + 65 * kMiB), {.touched_page_bytes = 2 * kMiB});
  EXPECT_EQ(ledger.find(kMain)->faults.huge, 1U);
  EXPECT_EQ(ledger.find(kMain)->space.attributed_bytes(), 2 * kMiB);
}

class FullLedgerTest : public LedgerTest {
 protected:
  FullLedgerTest() : LedgerTest(LedgerOptions{.max_processes = 2}) {}
};

TEST_F(FullLedgerTest, BeyondTheLimitNewProcessesAreOnlyCounted) {
  ledger.apply(forked(kMain, kChild, kStart + 20, kChildStart));
  ledger.apply(forked(kMain, 102, kStart + 21, kChildStart + kTick));
  ledger.apply(forked(kMain, 103, kStart + 22, kChildStart + kTick));
  EXPECT_EQ(ledger.untracked_processes(), 2U);
  EXPECT_EQ(ledger.live(), (std::vector<std::uint32_t>{kMain, kChild}));
}

TEST_F(FullLedgerTest, AProcessFoundInProcIsNotCountedAsUntrackedByItsFork) {
  ledger.add(found(kChild, kMain, kChildStart / kTick * kTick, seen(kStart, kMiB)));
  ledger.apply(forked(kMain, kChild, kStart + 20, kChildStart));
  EXPECT_EQ(ledger.untracked_processes(), 0U);
}

TEST_F(FullLedgerTest, APidUsedAgainByAnUntrackedProcessIsNotTheOldOne) {
  ledger.apply(forked(kMain, kChild, kStart + 20, kChildStart));
  ledger.apply(forked(kMain, kChild, kStart + 30, kChildStart + 5 * kTick));
  EXPECT_EQ(ledger.untracked_processes(), 1U);
  EXPECT_EQ(ledger.find(kChild), nullptr);
}

class CrowdedLedgerTest : public LedgerTest {
 protected:
  CrowdedLedgerTest() : LedgerTest(LedgerOptions{.max_processes = 8}) {}
};

TEST_F(CrowdedLedgerTest, SubprocessesThatCameAndWentMakeRoomAndWorkersStay) {
  ledger.apply(forked(kMain, kChild, kStart + 20, kChildStart));
  for (std::uint32_t i = 0; i < 100; ++i) {
    const std::uint64_t now = kStart + 100 + 10 * i;
    ledger.apply(forked(kChild, 500 + i, now, kChildStart + (i + 1) * kTick));
    ledger.apply(executed(500 + i, now + 1, "sh"));
    ledger.apply(ended(500 + i, now + 2));
  }
  EXPECT_EQ(ledger.untracked_processes(), 0U);
  const auto processes = ledger.close(kStart + kSecond);
  EXPECT_EQ(ledger.forgotten_processes() + processes.size(), 102U);
  EXPECT_LE(processes.size(), 8U);
  ASSERT_GE(processes.size(), 3U);
  EXPECT_EQ(processes[0].pid, kMain);
  EXPECT_EQ(processes[1].pid, kChild);
  EXPECT_EQ(processes[1].role, Role::kPoolWorker);
  EXPECT_EQ(processes.back().pid, 599U);
  EXPECT_EQ(processes.back().ppid, kChild);
  ledger.apply(ended(kChild, kStart + kSecond));
  EXPECT_EQ(ledger.live(), std::vector<std::uint32_t>{kMain});
}

class ShortTimelineTest : public LedgerTest, public ::testing::WithParamInterface<std::size_t> {
 protected:
  ShortTimelineTest() : LedgerTest(LedgerOptions{.max_timeline = GetParam()}) {}
};

TEST_P(ShortTimelineTest, ATimelineIsThinnedAndKeepsItsEnds) {
  for (std::uint64_t i = 1; i <= 1000; ++i) {
    ledger.observe(kMain, seen(kStart + i * kSecond, i * kPage));
    const auto& timeline = ledger.find(kMain)->timeline;
    ASSERT_LE(timeline.size(), GetParam());
    ASSERT_EQ(timeline.front().rss, 8 * kMiB);
    ASSERT_EQ(timeline.back().rss, i * kPage);
    ASSERT_TRUE(std::ranges::is_sorted(timeline, {}, &TimelinePoint::t_s));
  }
  EXPECT_GE(ledger.find(kMain)->timeline.size(), GetParam() / 2);
}

INSTANTIATE_TEST_SUITE_P(OfEvenAndOddLength, ShortTimelineTest, ::testing::Values(4, 5, 16, 17));

}  // namespace
}  // namespace torchleak
