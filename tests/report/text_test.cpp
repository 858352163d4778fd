// SPDX-License-Identifier: Apache-2.0
#include "torchleak/report/text.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "samples.hpp"
#include "torchleak/base/text.hpp"

namespace torchleak {
namespace {

constexpr std::int64_t kMiB = 1024 * 1024;

std::string text_of(const Report& report, TextOptions options = {}) {
  std::ostringstream out;
  write_text(out, report, options);
  return out.str();
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

std::size_t widest_line(std::string_view text) {
  std::size_t widest = 0;
  for (const std::string_view line : split(text, '\n')) {
    const auto columns = std::count_if(line.begin(), line.end(),
                                       [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
    widest = std::max(widest, static_cast<std::size_t>(columns));
  }
  return widest;
}

// TORCHLEAK_WRITE_GOLDEN=1 writes the files anew; read the difference before it is committed.
void expect_golden(const std::string& text, const std::string& name) {
  const std::string path = std::string(TORCHLEAK_TEST_DATA) + "/" + name;
  if (std::getenv("TORCHLEAK_WRITE_GOLDEN") != nullptr) {
    std::ofstream(path) << text;
  }
  std::ostringstream golden;
  golden << std::ifstream(path).rdbuf();
  EXPECT_EQ(text, golden.str()) << path;
}

TEST(Text, TellsOfALeakingWorkerAsInTheGoldenFiles) {
  expect_golden(text_of(samples::leaking_worker()), "leaking_worker_100.txt");
  expect_golden(text_of(samples::leaking_worker(), {.width = 80}), "leaking_worker_80.txt");
}

TEST(Text, TellsThatNothingGrewAsInTheGoldenFile) {
  expect_golden(text_of(samples::nothing_grew()), "nothing_grew.txt");
}

TEST(Text, BeginsWithTheProcessThatGrewMost) {
  Report report = samples::leaking_worker();
  report.processes[4].exit.reset();
  EXPECT_TRUE(text_of(report).starts_with("worker #2 (pid 4312) grew most: +608 MiB in 60 s (608 MiB/min)"));
}

TEST(Text, PrefersALivingProcessToOneWhoseMemoryIsFreeAgain) {
  Report report = samples::leaking_worker();
  report.processes[4].exit.reset();
  report.processes[4].end.rss = report.processes[4].end.anon = 9000 * static_cast<std::uint64_t>(kMiB);
  EXPECT_TRUE(text_of(report).starts_with("worker #2 (pid 4312) grew most"));
}

TEST(Text, NamesCopyOnWriteWhereThatIsTheGrowth) {
  Report report = samples::nothing_grew();
  report.processes[0].sources = {{Source::kPythonArena, 200 * kMiB, 200 * kMiB, 0, 50 * kMiB}};
  EXPECT_TRUE(contains(text_of(report, {.width = 200}),
                       "most of it copied on write in Python object arenas (+50 MiB)"));
}

TEST(Text, NeverSaysThatNothingGrewWhereRecordsWereLost) {
  for (const Lost lost : {Lost{1, 0}, Lost{0, 1}, Lost{1200, 3}}) {
    Report report = samples::nothing_grew();
    report.capture.lost = lost;
    const std::string text = text_of(report);
    EXPECT_FALSE(contains(text, "Nothing grew"));
    EXPECT_TRUE(text.starts_with("Cannot tell whether anything grew."));
  }
}

TEST(Text, NeverSaysThatNothingGrewWhereALayerIsBlind) {
  Report degraded = samples::nothing_grew();
  degraded.capture.layers["swap"] = {LayerState::kDegraded, "no tracepoint"};
  Report off = samples::nothing_grew();
  off.capture.layers["pages"] = {LayerState::kOff, "refused"};
  for (const Report& report : {degraded, off}) {
    EXPECT_TRUE(text_of(report).starts_with("Cannot tell whether anything grew."));
  }
  EXPECT_TRUE(contains(text_of(degraded), "swap degraded (no tracepoint)"));
}

TEST(Text, TellsOfGrowthThatIsSpreadOverManyProcesses) {
  Report report = samples::of_processes(8);
  for (ProcessReport& process : report.processes) {
    process.end.rss = process.start.rss + 100 * 1024;
    process.end.anon = process.start.anon + 100 * 1024;
  }
  report.growth.bytes = 800 * 1024;
  EXPECT_TRUE(
      text_of(report).starts_with("No single process grew, but all 8 processes together did: +800 KiB"));
}

TEST(Text, SaysWhyThereIsNothingToSayWithoutProcesses) {
  EXPECT_TRUE(text_of(Report{}).starts_with("No process was seen"));
}

TEST(Text, SumsUpWhatAThousandProcessesDid) {
  const std::string text = text_of(samples::of_processes(1000));
  EXPECT_TRUE(contains(text, "and 960 processes that changed less: "));
  EXPECT_LT(std::count(text.begin(), text.end(), '\n'), 150);
}

TEST(Text, ShowsAsManyProcessesAsAreAskedFor) {
  const std::string text = text_of(samples::of_processes(100), {.top = 2});
  EXPECT_TRUE(contains(text, "and 92 processes that changed less: "));
  EXPECT_TRUE(contains(text, "\npool worker, pid 4298: "));
  EXPECT_FALSE(contains(text, "\npool worker, pid 4297: "));
}

TEST(Text, KeepsWithinTheWidth) {
  std::mt19937_64 random(11);
  Report odd = samples::leaking_worker();
  odd.processes[0].comm = std::string(300, 'x');
  odd.processes[0].role = Role::kHelper;
  odd.capture.blind_spots.push_back("/" + std::string(300, 'y'));
  for (const std::size_t width : {20U, 40U, 60U, 80U, 100U, 200U}) {
    for (const Report& report :
         {odd, samples::of_processes(1000), samples::nothing_grew(), samples::random_report(random)}) {
      EXPECT_LE(widest_line(text_of(report, {.width = width})), width);
    }
  }
}

TEST(Text, KeepsTheNameAndTheGrowthWhereTheTerminalIsNarrow) {
  const std::string text = text_of(samples::leaking_worker(), {.width = 40});
  EXPECT_TRUE(contains(text, "worker #2"));
  EXPECT_TRUE(contains(text, "+608 MiB"));
  EXPECT_TRUE(contains(text, "OOM-killed"));
}

TEST(Text, LetsNoEscapeCodeOfTheTargetThrough) {
  Report report = samples::leaking_worker();
  for (ProcessReport& process : report.processes) {
    process.comm = "\x1b[2J\x9b\xc2\x9b\r";
    process.role = Role::kSubprocess;
    process.worker = Worker{0, 0, "\x1b]0;owned\x07"};
  }
  report.tool_version = report.machine.kernel = report.machine.thp = report.capture.started = "\x1b[31m";
  report.capture.layers["\x1b"] = {LayerState::kDegraded, "\x1b\n"};
  report.capture.blind_spots = {"\x1b[31m"};
  const std::string text = text_of(report);
  EXPECT_TRUE(contains(text, "\\x1b[2J\\x9b"));
  EXPECT_EQ(text.find_first_of("\x1b\x07\r"), std::string::npos);
  EXPECT_FALSE(contains(text, "\xc2\x9b"));
}

TEST(Text, ColoursOnlyWhereAskedTo) {
  const Report report = samples::leaking_worker();
  EXPECT_EQ(text_of(report).find('\x1b'), std::string::npos);
  const std::string coloured = text_of(report, {.color = true});
  EXPECT_TRUE(contains(coloured, "\x1b[1;31mOOM-killed\x1b[0m"));
}

TEST(Text, ColourChangesNothingButTheColour) {
  std::string coloured = text_of(samples::leaking_worker(), {.color = true});
  for (std::size_t at = coloured.find('\x1b'); at != std::string::npos; at = coloured.find('\x1b')) {
    coloured.erase(at, coloured.find('m', at) - at + 1);
  }
  EXPECT_EQ(coloured, text_of(samples::leaking_worker()));
}

TEST(Text, LeavesNoSpaceAtTheEndOfALine) {
  const std::string text = text_of(samples::leaking_worker());
  for (const std::string_view line : split(text, '\n')) {
    EXPECT_FALSE(line.ends_with(' ')) << line;
  }
}

TEST(Text, SurvivesAnyReport) {
  std::mt19937_64 random(42);
  for (int i = 0; i < 500; ++i) {
    EXPECT_FALSE(
        text_of(samples::random_report(random), {.color = i % 2 == 0, .width = random() % 120}).empty());
  }
}

TEST(Text, SurvivesParentsInACircle) {
  Report report = samples::of_processes(3);
  report.processes[0].ppid = report.processes[2].pid;
  const std::string text = text_of(report);
  for (const char* pid : {"4200", "4201", "4202"}) {
    EXPECT_TRUE(contains(text, pid));
  }
}

}  // namespace
}  // namespace torchleak
