// SPDX-License-Identifier: Apache-2.0
// A target that ends while it is traced: the capture ends with it, and the report is there.
#include <sys/wait.h>

#include <csignal>

#include "rig/books.hpp"
#include "rig/machine.hpp"
#include "rig/scene.hpp"

namespace torchleak::rig {
namespace {

class EndOfTarget : public PrivilegedTest {
 protected:
  // Lets the job end; the tracer ends by itself.
  ProcessReport leave(Workload& job) {
    Tracer tracer(job);
    job.leave();
    status_ = job.process().wait();
    report_ = tracer.report();
    return process_of(report_, job.pid());
  }
  int status_ = 0;
  Report report_;
};

constexpr std::uint64_t kBytes = 64 * kMiB;

TEST_F(EndOfTarget, ByExitIsToldWithItsCode) {
  Workload job({"exit", known("bytes", kBytes), known("code", 3)});
  const ProcessReport seen = leave(job);
  ASSERT_TRUE(seen.exit.has_value());
  EXPECT_EQ(*seen.exit, (Exit{.code = 3, .signal = 0, .oom_killed = false}));
  EXPECT_TRUE(seen.ended_s.has_value());
  EXPECT_GE(seen.peak_rss, kBytes);
  expect_sampled(mapped_growth_of(seen), kBytes);
  expect_reconciled(seen);
}

TEST_F(EndOfTarget, BySignalIsToldWithTheSignal) {
  Workload job({"die", known("bytes", kBytes), known("signal", SIGKILL)});
  const ProcessReport seen = leave(job);
  ASSERT_TRUE(seen.exit.has_value());
  EXPECT_EQ(*seen.exit, (Exit{.code = 0, .signal = SIGKILL, .oom_killed = false}));
  expect_reconciled(seen);
}

TEST_F(EndOfTarget, ForWantOfMemoryIsToldAsSuch) {
  const MemoryLimit limit(kBytes);
  Workload job({"glutton"});
  if (!limit || !limit.forbid_swap() || !limit.take_in(job.process().pid())) {
    GTEST_SKIP() << "no memory cgroup can be made here";
  }
  const ProcessReport seen = leave(job);
  ASSERT_TRUE(WIFSIGNALED(status_));
  ASSERT_TRUE(seen.exit.has_value());
  EXPECT_EQ(*seen.exit, (Exit{.code = 0, .signal = SIGKILL, .oom_killed = true}));
  EXPECT_GE(seen.peak_rss, kBytes / 2);
  expect_reconciled(seen);
}

TEST_F(EndOfTarget, IsWaitedForUntilAllTargetsHaveEnded) {
  Workload first({"exit", known("bytes", kMiB)});
  Workload second({"exit", known("bytes", kMiB)});
  Tracer tracer({"-p", std::to_string(first.pid()), "-p", std::to_string(second.pid())});
  first.leave();
  first.process().wait();
  second.leave();
  const Report report = tracer.report();
  EXPECT_TRUE(process_of(report, first.pid()).ended_s.has_value());
  EXPECT_TRUE(process_of(report, second.pid()).ended_s.has_value());
}

}  // namespace
}  // namespace torchleak::rig
