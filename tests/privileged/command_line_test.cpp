// SPDX-License-Identifier: Apache-2.0
// What the options of the command line do to a real capture.
#include <csignal>
#include <fstream>

#include "rig/books.hpp"
#include "rig/machine.hpp"
#include "rig/scene.hpp"
#include "torchleak/report/json.hpp"

namespace torchleak::rig {
namespace {

constexpr std::uint64_t kBytes = 64 * kMiB;

class CommandLine : public PrivilegedTest {
 protected:
  // Runs the tracer to its end.
  static std::string run(const Words& words) {
    Words command{TORCHLEAK_TRACER};
    command.insert(command.end(), words.begin(), words.end());
    Child tracer(command);
    EXPECT_EQ(tracer.exit_status(), 0) << tracer.err();
    return tracer.out();
  }
};

TEST_F(CommandLine, ACommandIsTracedFromItsFirstInstructionToItsEnd) {
  const auto report = from_json(run({"-q", "--format", "json", "--", TORCHLEAK_WORKLOAD, "take-and-leave",
                                     known("bytes", kBytes), known("code", 5)}));
  ASSERT_TRUE(report.has_value()) << report.error().message;
  ASSERT_EQ(report->processes.size(), 1U);
  const ProcessReport& process = report->processes[0];
  ASSERT_TRUE(process.exit.has_value());
  EXPECT_EQ(process.exit->code, 5);
  EXPECT_EQ(process.cmdline.at(0), TORCHLEAK_WORKLOAD);
  EXPECT_EQ(process.role, Role::kMain);
  EXPECT_GE(process.peak_rss, kBytes);
  expect_sampled(mapped_growth_of(process), kBytes);
  expect_reconciled(process);
}

TEST_F(CommandLine, ADurationEndsTheCapture) {
  const Workload job({"mmap", known("bytes", kMiB)});
  const auto report =
      from_json(run({"-q", "-d", "0.5", "--format", "json", "-p", std::to_string(job.pid())}));
  ASSERT_TRUE(report.has_value()) << report.error().message;
  EXPECT_GE(report->capture.duration_s, 0.5);
  EXPECT_LT(report->capture.duration_s, 2.0);
  EXPECT_EQ(report->capture.targets, std::vector<std::uint32_t>{job.pid()});
  EXPECT_GT(report->capture.cost.first_data_s, 0);
  EXPECT_LT(report->capture.cost.first_data_s, 1.0);
}

TEST_F(CommandLine, CtrlCGivesTheReport) {
  Workload job({"mmap", known("bytes", kBytes)});
  for (const int signal : {SIGINT, SIGTERM}) {
    Tracer tracer(job);
    tracer.process().kill(signal);
    EXPECT_EQ(process_of(tracer.report(), job.pid()).pid, job.pid());
  }
}

TEST_F(CommandLine, ProgressAndReportKeepApart) {
  const Workload job({"mmap", known("bytes", kMiB)});
  Child tracer({TORCHLEAK_TRACER, "-d", "0.3", "-i", "0.1", "-p", std::to_string(job.pid())});
  EXPECT_EQ(tracer.exit_status(), 0);
  EXPECT_NE(tracer.err().find("tracing process " + std::to_string(job.pid())), std::string::npos);
  EXPECT_NE(tracer.out(), "");
  EXPECT_EQ(tracer.out().find("tracing process"), std::string::npos);
  EXPECT_EQ(tracer.out().find('\033'), std::string::npos) << "no colours where there is no terminal";
}

TEST_F(CommandLine, QuietSaysNothing) {
  const Workload job({"mmap", known("bytes", kMiB)});
  Child tracer({TORCHLEAK_TRACER, "-q", "-d", "0.2", "-p", std::to_string(job.pid())});
  EXPECT_EQ(tracer.exit_status(), 0);
  EXPECT_EQ(tracer.err(), "");
}

TEST_F(CommandLine, NoChildrenLeavesThemOut) {
  for (const std::uint64_t before : {0U, 1U}) {
    const Outcome seen =
        trace({"fork-cow", known("bytes", 4 * kMiB), known("written", 4 * kMiB), known("before", before)},
              {"--no-children"});
    EXPECT_EQ(seen.report.processes.size(), 1U);
    expect_true_books(seen);
  }
}

TEST_F(CommandLine, SeveralTargetsAreTracedTogether) {
  Workload first({"mmap", known("bytes", kBytes)});
  Workload second({"brk", known("bytes", kBytes / 2)});
  Tracer tracer({"-p", std::to_string(first.pid()), "-p", std::to_string(second.pid())});
  first.go();
  second.go();
  const Report report = tracer.end();
  EXPECT_EQ(report.processes.size(), 2U);
  expect_exact(growth_of(process_of(report, first.pid()), Source::kAnonOther), kBytes);
  expect_exact(growth_of(process_of(report, second.pid()), Source::kMallocHeap), kBytes / 2);
  EXPECT_EQ(process_of(report, first.pid()).role, Role::kMain);
  EXPECT_EQ(process_of(report, second.pid()).role, Role::kMain);
  expect_reconciled(process_of(report, first.pid()));
  expect_reconciled(process_of(report, second.pid()));
}

TEST_F(CommandLine, AKeptReportIsRenderedAsItWasWritten) {
  const Workload job({"mmap", known("bytes", kMiB)});
  const TempDir directory;
  const std::string json = directory / "kept.json";
  const std::string text = directory / "kept.txt";
  run({"-q", "-d", "0.2", "-p", std::to_string(job.pid()), "-o", json, "-o", text});
  std::ifstream json_file(json);
  std::ifstream text_file(text);
  EXPECT_EQ(run({"report", json, "--format", "json"}),
            std::string((std::istreambuf_iterator<char>(json_file)), {}));
  EXPECT_EQ(run({"report", json}), std::string((std::istreambuf_iterator<char>(text_file)), {}));
}

TEST_F(CommandLine, AnEarlierReportStaysUntilThereIsAnother) {
  const TempDir directory;
  const std::string path = directory / "kept.txt";
  std::ofstream(path) << "an earlier capture\n";
  Child tracer({TORCHLEAK_TRACER, "-q", "-p", "2", "-o", path});
  EXPECT_EQ(tracer.exit_status(), 1);
  EXPECT_EQ(read_line(path), "an earlier capture");
}

}  // namespace
}  // namespace torchleak::rig
