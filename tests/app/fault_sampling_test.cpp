// SPDX-License-Identifier: Apache-2.0
#include "torchleak/app/fault_sampling.hpp"

#include <gtest/gtest.h>

namespace torchleak::app {
namespace {

constexpr double kOnePercent = 1;

int watched_of(FaultSampling& sampling, int windows) {
  int watched = 0;
  for (int i = 0; i < windows; ++i) {
    watched += sampling.next_window() ? 1 : 0;
  }
  return watched;
}

TEST(FaultSampling, WatchesAlwaysWhereFaultsAreFew) {
  FaultSampling sampling(kOnePercent, 0);
  sampling.set_target_rate(10'000);
  EXPECT_EQ(sampling.share(), 1);
  EXPECT_EQ(watched_of(sampling, 100), 100);
}

TEST(FaultSampling, WatchesTheShareOfTheTimeThatTheBudgetPaysFor) {
  FaultSampling sampling(kOnePercent, 0);
  sampling.set_target_rate(100'000);  // 1.4 % if always watched; 0.4 % is allowed
  EXPECT_NEAR(sampling.share(), 0.4 / 1.4, 0.001);
  EXPECT_NEAR(watched_of(sampling, 1000), 1000 * 0.4 / 1.4, 1);
}

TEST(FaultSampling, NeverClosesItsEyes) {
  FaultSampling sampling(kOnePercent, 0);
  sampling.set_target_rate(100'000'000);
  EXPECT_EQ(sampling.share(), FaultSampling::kSmallestShare);
  EXPECT_NEAR(watched_of(sampling, 1000), 100, 1);
}

TEST(FaultSampling, AGreaterBudgetWatchesMore) {
  FaultSampling sampling(10 * kOnePercent, 0);
  sampling.set_target_rate(100'000);
  EXPECT_EQ(sampling.share(), 1);
}

TEST(FaultSampling, NeverSamplesSoOftenThatTheKernelStopsIt) {
  FaultSampling sampling(kOnePercent, 0);
  EXPECT_EQ(sampling.period(), 8U);
  EXPECT_TRUE(sampling.set_rate(100'000));
  EXPECT_TRUE(sampling.set_rate(100));
  EXPECT_EQ(sampling.period(), 8U);
}

TEST(FaultSampling, NeverSamplesLessThanOnceAMebibyteOfSmallPages) {
  FaultSampling sampling(kOnePercent, 0);
  for (const std::uint64_t period : {32U, 128U, 256U}) {
    EXPECT_TRUE(sampling.set_rate(1e9));
    EXPECT_EQ(sampling.period(), period);
  }
  EXPECT_FALSE(sampling.set_rate(1e9));
  EXPECT_EQ(sampling.largest_period(), 256U);
}

TEST(FaultSampling, KeepsThePeriodWhileItIsNearlyRight) {
  FaultSampling sampling(kOnePercent, 0);
  const std::uint64_t first = sampling.period();
  EXPECT_FALSE(sampling.set_rate(static_cast<double>(first) * 3000));
  EXPECT_FALSE(sampling.set_rate(static_cast<double>(first) * 200));
  EXPECT_EQ(sampling.period(), first);
}

TEST(FaultSampling, SamplesMoreCoarselyWhereTheTargetDoesLittleButFault) {
  FaultSampling sampling(kOnePercent, 0);
  sampling.set_target_rate(400'000);  // a sample each would cost it 80 %
  sampling.set_rate(1000);
  EXPECT_EQ(sampling.period(), 256U);
}

TEST(FaultSampling, SamplesMoreCoarselyWhereBystandersFault) {
  FaultSampling sampling(kOnePercent, 0);
  sampling.set_machine_rate(400'000);
  EXPECT_EQ(sampling.period(), 32U);
  sampling.set_machine_rate(0);
  EXPECT_TRUE(sampling.set_rate(10));
  EXPECT_EQ(sampling.period(), 8U);
}

TEST(FaultSampling, AFixedPeriodIsNeverChangedAndAlwaysWatched) {
  FaultSampling sampling(kOnePercent, 7);
  sampling.set_target_rate(1e9);
  EXPECT_FALSE(sampling.set_rate(1e9));
  EXPECT_EQ(sampling.period(), 7U);
  EXPECT_EQ(watched_of(sampling, 10), 10);
}

}  // namespace
}  // namespace torchleak::app
