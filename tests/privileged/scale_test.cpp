// SPDX-License-Identifier: Apache-2.0
// Many processes, many mappings: all found, and the tracer stays small.
#include <algorithm>

#include "rig/books.hpp"
#include "rig/machine.hpp"
#include "rig/scene.hpp"

namespace torchleak::rig {
namespace {

constexpr std::uint64_t kTracerBytes = 64 * kMiB;
constexpr std::uint64_t kProcesses = 1000;
constexpr std::uint64_t kMappings = 100000;

class Crowd : public PrivilegedTest, public testing::WithParamInterface<bool> {};

INSTANTIATE_TEST_SUITE_P(Scale, Crowd, testing::Bool(), [](const auto& before) {
  return before.param ? std::string("BornBeforeTheCapture") : std::string("BornInTheCapture");
});

TEST_P(Crowd, OfAThousandProcessesIsAllFound) {
  Workload job({"crowd", known("count", kProcesses), known("before", GetParam() ? 1 : 0)});
  Tracer tracer(job);
  job.go();
  const Report report = tracer.end();
  EXPECT_EQ(report.processes.size(), kProcesses + 1);
  EXPECT_TRUE(std::ranges::all_of(report.processes, [&](const ProcessReport& process) {
    return process.pid == job.pid() || process.ppid == job.pid();
  }));
  EXPECT_EQ(report.capture.lost, Lost{});
  EXPECT_LE(report.capture.cost.tracer_rss_bytes, kTracerBytes);
}

TEST_F(PrivilegedTest, AHundredThousandMappingsAreFollowed) {
  const Setting more("/proc/sys/vm/max_map_count", std::to_string(2 * kMappings));
  if (!more) {
    GTEST_SKIP() << "vm.max_map_count cannot be raised here";
  }
  const Outcome seen = trace({"many-mappings", known("count", kMappings)});
  expect_exact(growth_of(seen.process, Source::kAnonOther), seen.done.at("bytes"), kMappings);
  expect_sampled(growth_of(seen.process, Source::kAnonOther), seen.done.at("bytes"));
  EXPECT_LE(seen.report.capture.cost.tracer_rss_bytes, kTracerBytes);
  expect_true_books(seen);
}

}  // namespace
}  // namespace torchleak::rig
