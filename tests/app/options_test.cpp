// SPDX-License-Identifier: Apache-2.0
#include "torchleak/app/options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace torchleak::app {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Words = std::vector<std::string>;
using Parsed = std::variant<TraceOptions, RenderOptions, Answered>;

Parsed parse(const Words& words) {
  std::vector<const char*> argv{"torchleak-trace"};
  for (const std::string& word : words) {
    argv.push_back(word.c_str());
  }
  return parse_command_line(static_cast<int>(argv.size()), argv.data());
}

std::string joined(const Words& words) {
  std::string line;
  for (const std::string& word : words) {
    line += word + ' ';
  }
  return line;
}

TraceOptions trace(const Words& words) {
  const Parsed parsed = parse(words);
  if (const auto* options = std::get_if<TraceOptions>(&parsed)) {
    return *options;
  }
  const auto* answered = std::get_if<Answered>(&parsed);
  ADD_FAILURE() << joined(words) << (answered != nullptr ? answered->err : "is a report to render");
  return {};
}

Answered answer(const Words& words) {
  const Parsed parsed = parse(words);
  if (const auto* answered = std::get_if<Answered>(&parsed)) {
    return *answered;
  }
  ADD_FAILURE() << joined(words) << "was accepted";
  return {};
}

// Wrong usage: status 2, nothing on stdout, and a message that says `what`.
void expect_wrong(const Words& words, const std::string& what) {
  SCOPED_TRACE(joined(words));
  const Answered wrong = answer(words);
  EXPECT_EQ(wrong.status, 2);
  EXPECT_THAT(wrong.out, IsEmpty());
  EXPECT_THAT(wrong.err, HasSubstr(what));
  EXPECT_THAT(wrong.err, ::testing::StartsWith("torchleak-trace: "));
  EXPECT_THAT(wrong.err, HasSubstr("--help"));
}

TEST(Options, HelpTeachesWithExamples) {
  for (const char* word : {"--help", "-h"}) {
    const Answered help = answer({word});
    EXPECT_EQ(help.status, 0);
    EXPECT_THAT(help.err, IsEmpty());
    for (const char* part : {"Examples:", "-p,--pid", "--duration", "--output", "--sample-bytes",
                             "torchleak-trace report", "Exit status"}) {
      EXPECT_THAT(help.out, HasSubstr(part));
    }
  }
  EXPECT_THAT(answer({"report", "--help"}).out, HasSubstr("FILE"));
}

TEST(Options, VersionIsOneLineWithTheName) {
  const Answered version = answer({"--version"});
  EXPECT_EQ(version.status, 0);
  EXPECT_EQ(version.out, "torchleak-trace " TORCHLEAK_VERSION "\n");
}

TEST(Options, APidAloneTakesTheDefaults) {
  const TraceOptions options = trace({"-p", "42"});
  EXPECT_THAT(options.pids, ElementsAre(42U));
  EXPECT_THAT(options.command, IsEmpty());
  EXPECT_FALSE(options.duration_s);
  EXPECT_FALSE(options.interval_s);
  EXPECT_TRUE(options.children);
  EXPECT_EQ(options.sample_bytes, 0U);
  EXPECT_EQ(options.max_overhead_percent, 1);
  EXPECT_FALSE(options.quiet);
  EXPECT_FALSE(options.verbose);
  EXPECT_EQ(options.ready_fd, -1);
  EXPECT_THAT(options.output.files, IsEmpty());
  EXPECT_FALSE(options.output.format);
  EXPECT_EQ(options.output.top, 10U);
  EXPECT_FALSE(options.output.no_color);
}

TEST(Options, EveryOptionIsTaken) {
  const TraceOptions options = trace({"--pid",
                                      "42",
                                      "--duration",
                                      "2.5",
                                      "--interval",
                                      "0.5",
                                      "--no-children",
                                      "--sample-bytes",
                                      "64K",
                                      "--quiet",
                                      "-v",
                                      "--max-overhead",
                                      "0.5",
                                      "--ready-fd",
                                      "7",
                                      "--output",
                                      "a.json",
                                      "-o",
                                      "b.txt",
                                      "--top",
                                      "3",
                                      "--format",
                                      "json",
                                      "--no-color"});
  EXPECT_THAT(options.pids, ElementsAre(42U));
  EXPECT_EQ(options.duration_s, 2.5);
  EXPECT_EQ(options.interval_s, 0.5);
  EXPECT_FALSE(options.children);
  EXPECT_EQ(options.sample_bytes, 65536U);
  EXPECT_EQ(options.max_overhead_percent, 0.5);
  EXPECT_TRUE(options.quiet);
  EXPECT_TRUE(options.verbose);
  EXPECT_EQ(options.ready_fd, 7);
  EXPECT_THAT(options.output.files, ElementsAre("a.json", "b.txt"));
  EXPECT_EQ(options.output.format, Format::kJson);
  EXPECT_EQ(options.output.top, 3U);
  EXPECT_TRUE(options.output.no_color);
}

TEST(Options, PidsMayBeSeveralAndOneGivenTwiceIsOne) {
  EXPECT_THAT(trace({"-p", "7", "-p", "3", "--pid=7"}).pids, ElementsAre(3U, 7U));
}

TEST(Options, WhatIsNoPidIsRefused) {
  for (const char* pid : {"abc", "", "0", "-5", "4194305", "12x", "1.5", "99999999999999999999"}) {
    expect_wrong({"-p", pid}, "--pid");
  }
  expect_wrong({"-p"}, "--pid");
}

TEST(Options, AStrayWordAfterAPidIsNotAPid) {
  expect_wrong({"-p", "3", "4"}, "4");
}

TEST(Options, WhatFollowsTheDashesIsTheCommandWordForWord) {
  const TraceOptions options = trace({"-q", "--", "python3", "-q", "train.py", "--", "--help", "-o", "x"});
  EXPECT_TRUE(options.quiet);
  EXPECT_THAT(options.pids, IsEmpty());
  EXPECT_THAT(options.command, ElementsAre("python3", "-q", "train.py", "--", "--help", "-o", "x"));
  EXPECT_THAT(options.output.files, IsEmpty());
}

TEST(Options, EitherPidsOrACommandIsNeededAndNotBoth) {
  expect_wrong({}, "nothing to trace");
  expect_wrong({"-q"}, "nothing to trace");
  expect_wrong({"--"}, "no command");
  expect_wrong({"-p", "42", "--", "python3"}, "not both");
  expect_wrong({"-p", "42", "--"}, "not both");
}

TEST(Options, SizesAreAsPeopleWriteThem) {
  EXPECT_EQ(trace({"-p", "1", "--sample-bytes", "4096"}).sample_bytes, 4096U);
  EXPECT_EQ(trace({"-p", "1", "--sample-bytes", "1M"}).sample_bytes, 1048576U);
  EXPECT_EQ(trace({"-p", "1", "--sample-bytes=2GiB"}).sample_bytes, std::uint64_t{2} << 30);
  for (const char* size : {"4095", "0", "2T", "-1", "x", "64Q", "99999999999999999999"}) {
    expect_wrong({"-p", "1", std::string("--sample-bytes=") + size}, "--sample-bytes");
  }
}

TEST(Options, FiguresOutOfRangeAreRefusedByName) {
  expect_wrong({"-p", "1", "-d", "0"}, "--duration");
  expect_wrong({"-p", "1", "-d", "soon"}, "--duration");
  expect_wrong({"-p", "1", "-d", "nan"}, "--duration");
  expect_wrong({"-p", "1", "-i", "0.01"}, "--interval");
  expect_wrong({"-p", "1", "--max-overhead", "0"}, "--max-overhead");
  expect_wrong({"-p", "1", "--max-overhead", "101"}, "--max-overhead");
  expect_wrong({"-p", "1", "--top", "many"}, "--top");
  expect_wrong({"-p", "1", "--ready-fd", "x"}, "--ready-fd");
}

TEST(Options, AnUnknownFormatIsRefused) {
  expect_wrong({"-p", "1", "--format", "xml"}, "--format");
  for (const char* file : {"leak.xml", "leak", "json", ".JSON", ""}) {
    expect_wrong({"-p", "1", "-o", file}, ".json");
  }
  expect_wrong({"-p", "1", "-o", "good.json", "-o", "bad.yaml"}, "bad.yaml");
  expect_wrong({"report", "a.json", "-o", "bad.yaml"}, "bad.yaml");
}

TEST(Options, AnUnknownOptionIsNamed) {
  expect_wrong({"-p", "1", "--durration", "3"}, "--durration");
  expect_wrong({"train.py"}, "train.py");
}

TEST(Options, AReportIsRenderedAgain) {
  const Parsed parsed = parse({"report", "leak.json", "--top", "2", "--format", "text", "-o", "x.txt"});
  const auto* options = std::get_if<RenderOptions>(&parsed);
  ASSERT_NE(options, nullptr);
  EXPECT_EQ(options->file, "leak.json");
  EXPECT_EQ(options->output.top, 2U);
  EXPECT_EQ(options->output.format, Format::kText);
  EXPECT_THAT(options->output.files, ElementsAre("x.txt"));
}

TEST(Options, AReportNeedsAFile) {
  expect_wrong({"report"}, "file");
}

TEST(Options, WithoutEvenANameThereIsNothingToTrace) {
  const Parsed parsed = parse_command_line(0, nullptr);
  ASSERT_TRUE(std::holds_alternative<Answered>(parsed));
  EXPECT_EQ(std::get<Answered>(parsed).status, 2);
}

}  // namespace
}  // namespace torchleak::app
