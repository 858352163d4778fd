// SPDX-License-Identifier: Apache-2.0
// What the books say when they are closed.
#include <gtest/gtest.h>

#include <random>

#include "ledger_events.hpp"
#include "torchleak/core/ledger.hpp"

namespace torchleak {
namespace {

constexpr std::uint32_t kMain = 100;
constexpr std::uint64_t kStart = 1000;

Ledger ledger_of_one(std::uint64_t rss_bytes) {
  Ledger ledger(LedgerOptions{}, kStart);
  auto main = found(kMain, 1, kTick, seen(kStart, rss_bytes));
  main.target = true;
  ledger.add(main);
  ledger.set_baseline(kMain, snapshot_of(kStart, 16 * kMiB, rss_bytes));
  return ledger;
}

void expect_to_add_up(const ProcessReport& process) {
  const Reconciliation& sum = process.reconciliation;
  EXPECT_EQ(sum.start + sum.attributed - sum.freed + sum.unexplained, sum.measured) << process.pid;
  EXPECT_EQ(sum.start, static_cast<std::int64_t>(process.start.rss + process.start.swap)) << process.pid;
  EXPECT_EQ(sum.measured, static_cast<std::int64_t>(process.end.rss + process.end.swap)) << process.pid;
  std::int64_t copied = 0;
  for (const SourceRow& row : process.sources) {
    EXPECT_EQ(row.growth, row.end - row.start) << process.pid << ' ' << source_name(row.source);
    EXPECT_TRUE(row.start != 0 || row.end != 0 || row.cow != 0) << process.pid;
    copied += row.cow;
  }
  const auto file =
      static_cast<std::int64_t>(process.end.file - process.start.file);  // no file is mapped here
  EXPECT_EQ(process.growth_bytes(), sum.measured - sum.start - file + copied) << process.pid;
}

std::int64_t sum_of(const ProcessReport& process, std::int64_t SourceRow::*column) {
  std::int64_t sum = 0;
  for (const SourceRow& row : process.sources) {
    sum += row.*column;
  }
  return sum;
}

TEST(LedgerClose, WhatWasTouchedAndFreedExplainsTheGrowth) {
  Ledger ledger = ledger_of_one(8 * kMiB);
  ledger.apply(mapped(kMain, kStart + 10, kBase + 32 * kMiB, 4 * kMiB));
  ledger.apply(touched(kMain, kStart + 20, kBase + 32 * kMiB, 512));
  ledger.apply(touched(kMain, kStart + 21, kBase + 34 * kMiB, 256));
  ledger.apply(unmapped(kMain, kStart + 30, kBase + 32 * kMiB, 2 * kMiB));
  ledger.observe(kMain, seen(kStart + 40, 9 * kMiB + 3 * kPage));
  const ProcessReport main = ledger.close(kSecond).at(0);
  EXPECT_EQ(main.reconciliation, (Reconciliation{.start = 8 << 20,
                                                 .attributed = 3 << 20,
                                                 .freed = 2 << 20,
                                                 .measured = (9 << 20) + 3 * 4096,
                                                 .unexplained = 3 * 4096}));
  EXPECT_EQ(main.growth_bytes(), (1 << 20) + 3 * 4096);
  expect_to_add_up(main);
}

TEST(LedgerClose, PagesSwappedInAreNotGrowth) {
  Ledger ledger = ledger_of_one(8 * kMiB);
  ledger.apply(touched(kMain, kStart + 20, kBase + 9 * kMiB, 100));
  ledger.set_counters(kMain, {60, 70, 0, 0});
  const ProcessReport main = ledger.close(kSecond).at(0);
  EXPECT_EQ(main.reconciliation.attributed, 40 * 4096);
  EXPECT_EQ(main.faults.first_touch, 40U);
  EXPECT_EQ(main.faults.swap_in, 60U);
  EXPECT_EQ(main.faults.swap_out, 70U);
  expect_to_add_up(main);
}

TEST(LedgerClose, MoreSwapInsThanSampledFaultsTakeNoMoreThanThereIs) {
  Ledger ledger = ledger_of_one(8 * kMiB);
  ledger.apply(touched(kMain, kStart + 20, kBase + 9 * kMiB, 10));
  ledger.set_counters(kMain, {1000, 0, 0, 0});
  const ProcessReport main = ledger.close(kSecond).at(0);
  EXPECT_EQ(main.reconciliation.attributed, 0);
  EXPECT_EQ(main.faults.first_touch, 0U);
  expect_to_add_up(main);
}

TEST(LedgerClose, SwapIsMemoryToo) {
  Ledger ledger = ledger_of_one(8 * kMiB);
  ledger.observe(kMain, seen(kStart + 40, 5 * kMiB, 3 * kMiB));
  const ProcessReport main = ledger.close(kSecond).at(0);
  EXPECT_EQ(main.growth_bytes(), 0);
  EXPECT_EQ(main.reconciliation.unexplained, 0);
}

TEST(LedgerClose, TheLastSnapshotTellsTheSourcesAtTheEnd) {
  Ledger ledger = ledger_of_one(8 * kMiB);
  ledger.apply(touched(kMain, kStart + 20, kBase + 9 * kMiB, 10));
  Snapshot end = snapshot_of(kStart + 50, 16 * kMiB, 10 * kMiB, Source::kMallocHeap);
  end.swap_bytes = kMiB;
  end.pss = 5;
  end.uss = 4;
  ledger.set_end(kMain, end);
  const ProcessReport main = ledger.close(kSecond).at(0);
  const std::vector<SourceRow> rows = {
      {.source = Source::kMallocHeap, .start = 0, .end = 10 << 20, .growth = 10 << 20},
      {.source = Source::kAnonOther, .start = 8 << 20, .end = 0, .growth = -(8 << 20)},
      {.source = Source::kSwap, .start = 0, .end = 1 << 20, .growth = 1 << 20}};
  EXPECT_EQ(main.sources, rows);
  EXPECT_EQ(main.end.pss, 5U);
  EXPECT_EQ(main.end.uss, 4U);
}

TEST(LedgerClose, WithoutALastSnapshotTheLedgersOwnFiguresAreTheSources) {
  Ledger ledger = ledger_of_one(8 * kMiB);
  ledger.apply(touched(kMain, kStart + 20, kBase + 9 * kMiB, 10));
  ledger.apply(ended(kMain, kStart + 30));
  const ProcessReport main = ledger.close(kSecond).at(0);
  EXPECT_EQ(sum_of(main, &SourceRow::start), 8 << 20);
  EXPECT_EQ(sum_of(main, &SourceRow::end), (8 << 20) + 10 * 4096);
}

TEST(LedgerClose, TimesAreSecondsSinceTheCaptureBegan) {
  Ledger ledger = ledger_of_one(kMiB);
  ledger.apply(forked(kMain, 101, kStart + 2 * kSecond, 9 * kTick, pages(1)));
  ledger.apply(ended(101, kStart + 3 * kSecond));
  const auto all = ledger.close(kStart + 10 * kSecond);
  EXPECT_EQ(all.at(0).started_s, 0);
  EXPECT_FALSE(all.at(0).ended_s);
  EXPECT_DOUBLE_EQ(all.at(1).started_s, 2);
  EXPECT_DOUBLE_EQ(all.at(1).ended_s.value_or(-1), 3);
}

TEST(LedgerClose, TheProcessesComeInTheOrderInWhichTheyAppeared) {
  Ledger ledger = ledger_of_one(kMiB);
  ledger.apply(forked(kMain, 300, kStart + 1, 9 * kTick));
  ledger.apply(forked(300, 200, kStart + 2, 10 * kTick));
  const auto all = ledger.close(kSecond);
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0].role, Role::kMain);
  EXPECT_EQ(all[1].pid, 300U);
  EXPECT_EQ(all[2].pid, 200U);
  EXPECT_EQ(all[2].ppid, 300U);
}

// Some thousand random events in a tree of processes, from a fixed seed.
class RandomHistory {
 public:
  explicit RandomHistory(std::uint64_t seed) : random_(seed), ledger_(ledger_of_one(8 * kMiB)) {}

  const Ledger& play(int events) {
    for (int i = 0; i < events; ++i) {
      now_ += below(1000) + 1;
      step();
    }
    return ledger_;
  }
  std::uint64_t now() const { return now_; }

 private:
  std::uint64_t below(std::uint64_t end) { return random_() % end; }
  std::uint64_t address() { return kBase + below(8192) * kPage; }

  void step() {
    const auto live = ledger_.live();
    const std::uint32_t pid = live.empty() ? kMain : live[below(live.size())];
    switch (below(12)) {
      case 0:
        ledger_.apply(forked(pid, static_cast<std::uint32_t>(101 + below(40)), now_, below(100) * kTick,
                             pages(below(5000), below(500), below(500), below(50))));
        break;
      case 1:
        ledger_.apply(vforked(pid, static_cast<std::uint32_t>(101 + below(40)), now_, below(100) * kTick));
        break;
      case 2:
        if (pid != kMain) {
          ledger_.apply(below(2) == 0 ? Event{executed(pid, now_, "prog")}
                                      : Event{ended(pid, now_, 0, pages(below(5000)))});
        }
        break;
      case 3:
        ledger_.observe(pid, seen(now_, below(1 << 14) * kPage, below(64) * kPage));
        break;
      case 4:
        ledger_.set_counters(pid, {below(200), below(200), 0, 0});
        break;
      case 5:
        ledger_.apply(unmapped(pid, now_ - below(500), address(), below(512) * kPage));
        break;
      case 6:
      case 7:
        ledger_.apply(mapped(pid, now_, address(), below(512) * kPage));
        break;
      default:
        ledger_.apply(touched(pid, now_, address(), below(100), static_cast<std::uint32_t>(below(4))));
    }
  }

  std::mt19937_64 random_;
  Ledger ledger_;
  std::uint64_t now_ = 10'000;
};

TEST(LedgerClose, EveryHistoryAddsUp) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE(seed);
    RandomHistory history(seed);
    const Ledger& ledger = history.play(2000);
    const auto all = ledger.close(history.now());
    EXPECT_GT(all.size(), 20U);
    for (const ProcessReport& process : all) {
      expect_to_add_up(process);
    }
    std::int64_t growth = 0;
    for (const ProcessReport& process : all) {
      growth += process.ended_s ? 0 : process.growth_bytes();
    }
    EXPECT_EQ(ledger.growth_bytes(), growth);
    for (const std::uint32_t pid : ledger.live()) {
      const AddressSpace& space = ledger.find(pid)->space;
      EXPECT_EQ(static_cast<std::uint64_t>(space.resident().total()),
                space.start_bytes() + space.attributed_bytes() - space.freed_bytes());
    }
  }
}

}  // namespace
}  // namespace torchleak
