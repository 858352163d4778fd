// SPDX-License-Identifier: Apache-2.0
// Memory that does not fit its limit: pushed out to a zram device made for it, and brought in again.
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <stdexcept>
#include <string>

#include "rig/books.hpp"
#include "rig/machine.hpp"
#include "rig/scene.hpp"

namespace torchleak::rig {
namespace {

constexpr std::uint64_t kBytes = 128 * kMiB;
constexpr std::uint64_t kLimit = 64 * kMiB;

// The whole machine's count, which only this test moves.
std::int64_t pages_of(const std::string& counter) {
  std::ifstream file("/proc/vmstat");
  std::string name;
  std::int64_t pages = 0;
  while (file >> name >> pages) {
    if (name == counter) {
      return pages;
    }
  }
  throw std::runtime_error("/proc/vmstat has no " + counter);
}

class Swap : public PrivilegedTest {
 protected:
  void SetUp() override {
    PrivilegedTest::SetUp();
    if (IsSkipped()) {
      return;
    }
    if (!swap_) {
      GTEST_SKIP() << "no zram device can be made to swap to";
    }
    if (!limit_ || !limit_.take_in(job_.process().pid())) {
      GTEST_SKIP() << "no memory cgroup can be made here";
    }
  }
  void TearDown() override {
    job_.process().kill(SIGKILL);  // the cgroup goes after the last process in it
    job_.process().wait();
  }

  ZramSwap swap_{2 * kBytes};
  MemoryLimit limit_{kLimit};
  Workload job_{{"take-and-look-again", known("bytes", kBytes)}};
};

TEST_F(Swap, MemoryPushedOutStaysTheProcesssOwn) {
  const std::int64_t before = pages_of("pswpout");
  Tracer tracer(job_);
  const Outcome seen = watch(job_, tracer);
  const auto pushed_out = static_cast<std::uint64_t>(pages_of("pswpout") - before);
  EXPECT_EQ(seen.report.capture.layers.at("swap").state, LayerState::kOn);
  EXPECT_GT(seen.truth.swap, kLimit / 2) << "the limit pushes memory out";
  expect_sampled(static_cast<std::int64_t>(seen.process.faults.swap_out), pushed_out);
  expect_sampled(growth_of(seen.process, Source::kSwap), seen.truth.swap);
  expect_exact(growth_of(seen.process, Source::kSwap) + growth_of(seen.process, Source::kAnonOther), kBytes);
  expect_true_books(seen);
}

TEST_F(Swap, MemoryBroughtInIsNoGrowth) {
  Tracer tracer(job_);
  job_.go();
  const std::uint64_t out = read_truth(job_.pid()).swap;
  const std::int64_t before = pages_of("pswpin");
  const Outcome seen = watch(job_, tracer);
  const auto brought_in = static_cast<std::uint64_t>(pages_of("pswpin") - before);
  const auto swapped_in = static_cast<std::int64_t>(seen.process.faults.swap_in);
  EXPECT_GE(swapped_in * ::getpagesize(), static_cast<std::int64_t>(out / 20 * 19));
  expect_sampled(swapped_in, brought_in);
  EXPECT_GT(seen.process.faults.swap_out, 0U);
  expect_exact(growth_of(seen.process, Source::kSwap) + growth_of(seen.process, Source::kAnonOther), kBytes);
  expect_true_books(seen);
}

// Every fault a sample: each page is known when it comes back.
TEST_F(Swap, MemoryBroughtInIsNoGrowthHoweverFinelySampled) {
  Tracer tracer(job_, {"--sample-bytes", "4K"});
  job_.go();
  const Outcome seen = watch(job_, tracer);
  expect_sampled(seen.process.reconciliation.attributed, kBytes);
  expect_true_books(seen);
}

}  // namespace
}  // namespace torchleak::rig
