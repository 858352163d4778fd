// SPDX-License-Identifier: Apache-2.0
// Known bytes in processes that make processes: copied, executed, borrowed, nested.
#include <unistd.h>

#include "rig/books.hpp"
#include "rig/machine.hpp"
#include "rig/scene.hpp"

namespace torchleak::rig {
namespace {

constexpr std::uint64_t kBytes = 64 * kMiB;

// What a process of this program holds of other anonymous memory before it does anything.
std::uint64_t at_rest(const ProcessReport& process) {
  return static_cast<std::uint64_t>(start_of(process, Source::kAnonOther));
}

std::int64_t memory_growth(const ProcessReport& process) {
  return static_cast<std::int64_t>(process.end.rss + process.end.swap) -
         static_cast<std::int64_t>(process.start.rss + process.start.swap);
}

// The workload's go, and the child's truth with it.
struct Family {
  Outcome parent;
  Truth child_truth;
  ProcessReport child;
};

Family trace_family(const Words& words) {
  Workload job(words);
  Tracer tracer(job);
  Family family;
  family.parent.done = job.go();
  const std::uint64_t child = family.parent.done.at("child");
  family.parent.truth = read_truth(job.pid());
  family.child_truth = read_truth(child);
  family.parent.report = tracer.end();
  family.parent.process = process_of(family.parent.report, job.pid());
  family.child = process_of(family.parent.report, child);
  return family;
}

void expect_true_books(const Family& family) {
  expect_true_books(family.parent);
  expect_sources_sum_to(family.child, family.child_truth);
  expect_reconciled(family.child);
}

class ForkedBefore : public PrivilegedTest, public testing::WithParamInterface<bool> {};

INSTANTIATE_TEST_SUITE_P(Fork, ForkedBefore, testing::Bool(), [](const auto& before) {
  return before.param ? std::string("TheCapture") : std::string("TheWriting");
});

TEST_P(ForkedBefore, AChildThatWritesToInheritedMemoryCopiesIt) {
  const Family seen = trace_family({"fork-cow", known("bytes", 2 * kBytes), known("written", kBytes),
                                    known("before", GetParam() ? 1 : 0)});
  expect_sampled(copied_in(seen.child), kBytes);
  EXPECT_LT(memory_growth(seen.child), static_cast<std::int64_t>(2 * kMiB)) << "RSS stays flat";
  EXPECT_LT(copied_in(seen.parent.process), static_cast<std::int64_t>(kMiB)) << "the parent wrote nothing";
  EXPECT_EQ(seen.child.ppid, seen.parent.process.pid);
  expect_sampled(seen.child.growth_bytes() - memory_growth(seen.child), kBytes);
  expect_true_books(seen);
}

class Fork : public PrivilegedTest {};

TEST_F(Fork, AChildThatEndsIsToldWithItsMemoryAndItsCode) {
  const Outcome seen = trace({"fork-exit", known("bytes", kBytes), known("code", 7)});
  const ProcessReport& child = process_of(seen.report, seen.done.at("child"));
  ASSERT_TRUE(child.exit.has_value());
  EXPECT_EQ(*child.exit, (Exit{.code = 7, .signal = 0, .oom_killed = false}));
  EXPECT_TRUE(child.ended_s.has_value());
  EXPECT_GE(child.peak_rss, kBytes);
  expect_sampled(mapped_growth_of(child), kBytes);
  expect_reconciled(child);
  expect_true_books(seen);
}

class Execute : public PrivilegedTest, public testing::WithParamInterface<const char*> {};

INSTANTIATE_TEST_SUITE_P(Fork, Execute, testing::Values("fork", "vfork", "spawn"),
                         [](const auto& how) { return std::string(how.param); });

TEST_P(Execute, AChildThatExecutesStartsItsBooksAnew) {
  const std::string how = GetParam();
  const std::uint64_t borrowed = how == "vfork" ? kBytes / 2 : 0;
  const Family seen =
      trace_family({"execute", "how=" + how, known("bytes", kBytes), known("borrowed", borrowed)});
  expect_exact(end_of(seen.child, Source::kAnonOther), at_rest(seen.parent.process) + kBytes);
  EXPECT_EQ(seen.child.cmdline, (Words{"workload", "mmap", known("bytes", kBytes)}));
  EXPECT_EQ(seen.child.ppid, seen.parent.process.pid);
  // What a child took in memory it had only borrowed is its parent's, once.
  expect_exact(growth_of(seen.parent.process, Source::kAnonOther), borrowed);
  expect_true_books(seen);
}

TEST_F(Fork, GenerationsAreToldEachWithItsParentAndItsOwnMemory) {
  const Outcome seen = trace({"nested", known("bytes", 16 * kMiB)});
  std::uint32_t parent = seen.process.pid;
  std::uint64_t generation = 0;
  std::uint64_t inherited_and_own = at_rest(seen.process);
  for (const char* name : {"first", "second", "third"}) {
    SCOPED_TRACE(name);
    ++generation;
    inherited_and_own += generation * 16 * kMiB;
    const ProcessReport& process = process_of(seen.report, seen.done.at(name));
    EXPECT_EQ(process.ppid, parent);
    EXPECT_NE(process.role, Role::kMain);
    expect_exact(end_of(process, Source::kAnonOther), inherited_and_own);
    expect_sampled(growth_of(process, Source::kAnonOther), generation * 16 * kMiB);
    expect_reconciled(process);
    parent = process.pid;
  }
  EXPECT_EQ(seen.process.role, Role::kMain);
  EXPECT_EQ(seen.report.processes.size(), 4U);
  expect_true_books(seen);
}

TEST_F(Fork, APidUsedAgainIsAnotherProcess) {
  const Outcome seen = trace({"pid-reuse", known("first", 32 * kMiB), known("second", kBytes)});
  if (seen.done.at("reused") == 0) {
    GTEST_SKIP() << "the kernel gave the pid to nobody again";
  }
  std::vector<const ProcessReport*> lives;
  for (const ProcessReport& process : seen.report.processes) {
    if (process.pid == seen.done.at("child")) {
      lives.push_back(&process);
    }
  }
  ASSERT_EQ(lives.size(), 2U);
  EXPECT_NE(lives[0]->start_time_ns, lives[1]->start_time_ns);
  EXPECT_TRUE(lives[0]->ended_s.has_value());
  EXPECT_FALSE(lives[1]->ended_s.has_value());
  expect_sampled(mapped_growth_of(*lives[0]), 32 * kMiB);
  expect_exact(end_of(*lives[1], Source::kAnonOther), at_rest(seen.process) + kBytes);
}

}  // namespace
}  // namespace torchleak::rig
