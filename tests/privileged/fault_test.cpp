// SPDX-License-Identifier: Apache-2.0
// Faults out of the ordinary: of huge pages, of many threads at once, and of the kernel.
#include <unistd.h>

#include "rig/books.hpp"
#include "rig/machine.hpp"
#include "rig/scene.hpp"

namespace torchleak::rig {
namespace {

class Fault : public PrivilegedTest {};

constexpr std::uint64_t kBytes = 64 * kMiB;
const auto kPages = static_cast<std::int64_t>(kBytes) / ::getpagesize();

TEST_F(Fault, OfAHugePageCountsForAllOfIt) {
  const Outcome seen = trace({"huge", known("bytes", kBytes)}, {"--sample-bytes", "4K"});
  if (seen.truth.huge < kBytes) {
    GTEST_SKIP() << "the kernel gave " << seen.truth.huge << " bytes of huge pages only";
  }
  EXPECT_EQ(seen.process.faults.huge, kBytes / (2 * kMiB));
  expect_exact(growth_of(seen.process, Source::kAnonOther), kBytes);
  expect_sampled(seen.process.reconciliation.attributed, kBytes);
  expect_true_books(seen);
}

TEST_F(Fault, OfManyThreadsAtOnceAreAllCounted) {
  const Outcome seen = trace({"parallel-faults", known("count", 8), known("bytes", 16 * kMiB)});
  expect_exact(growth_of(seen.process, Source::kAnonOther), 128 * kMiB);
  expect_sampled(static_cast<std::int64_t>(seen.process.faults.first_touch), 128 * kMiB / 4096);
  expect_sampled(seen.process.reconciliation.attributed, 128 * kMiB);
  expect_true_books(seen);
}

TEST_F(Fault, TakenByTheKernelIsTheProcesssOwn) {
  const Outcome seen = trace({"kernel-fault", known("bytes", kBytes)});
  expect_exact(growth_of(seen.process, Source::kAnonOther), kBytes);
  expect_sampled(static_cast<std::int64_t>(seen.process.faults.kernel), static_cast<std::uint64_t>(kPages));
  expect_sampled(seen.process.reconciliation.attributed, kBytes);
  expect_true_books(seen);
}

TEST_F(Fault, CountsOfTheKernelAreToldAsTheyAre) {
  const Outcome seen = trace({"mmap", known("bytes", kBytes)});
  EXPECT_GE(seen.process.faults.minor, static_cast<std::uint64_t>(kPages));
  EXPECT_LE(seen.process.faults.minor, static_cast<std::uint64_t>(kPages) + 100);
  expect_sampled(static_cast<std::int64_t>(seen.process.faults.first_touch),
                 static_cast<std::uint64_t>(kPages));
}

TEST_F(Fault, AStormIsAttributedWithoutOptions) {
  GTEST_SKIP() << "a known defect: while the period adapts, up to a tenth of a burst is not sampled";
  const Outcome seen = trace({"mmap", known("bytes", 16 * kBytes)});
  expect_sampled(seen.process.reconciliation.attributed, 16 * kBytes);
  expect_sampled(static_cast<std::int64_t>(seen.process.faults.first_touch),
                 16 * static_cast<std::uint64_t>(kPages));
  expect_true_books(seen);
}

TEST_F(Fault, SampledAtAFixedPeriodIsWithinBounds) {
  const Outcome seen = trace({"mmap", known("bytes", 4 * kBytes)}, {"--sample-bytes", "64K"});
  EXPECT_EQ(seen.report.capture.sample_bytes, 64U * 1024);
  expect_sampled(seen.process.reconciliation.attributed, 4 * kBytes);
  expect_true_books(seen);
}

}  // namespace
}  // namespace torchleak::rig
