// SPDX-License-Identifier: Apache-2.0
#include "torchleak/report/json.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "samples.hpp"

namespace torchleak {
namespace {

using nlohmann::json;

std::string error_of(std::string_view text) {
  const Result<Report> read = from_json(text);
  return read ? "" : read.error().message;
}

// The error after one change to a good report.
template <typename Change>
std::string error_after(Change change) {
  json document = json::parse(to_json(samples::leaking_worker()));
  change(document);
  return error_of(document.dump());
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

TEST(Json, ReadsBackAnyReportUnchanged) {
  std::mt19937_64 random(20260301);
  for (int i = 0; i < 500; ++i) {
    const Report report = samples::random_report(random);
    const Result<Report> read = from_json(to_json(report));
    ASSERT_TRUE(read) << read.error().message;
    ASSERT_EQ(*read, report) << "report number " << i;
  }
}

TEST(Json, ReadsBackAReportWithNothingInIt) {
  EXPECT_EQ(from_json(to_json(Report{})).value_or(samples::nothing_grew()), Report{});
}

TEST(Json, HoldsEveryFieldOfTheContract) {
  const json document = json::parse(to_json(samples::leaking_worker()));
  EXPECT_EQ(document["schema"], "torchleak.report/1");
  EXPECT_EQ(document["tool"], json({{"name", "torchleak-trace"}, {"version", "0.1.0"}}));
  EXPECT_EQ(document["capture"]["layers"]["pages"], json({{"state", "on"}, {"why", nullptr}}));
  EXPECT_EQ(document["capture"]["layers"]["python"]["why"], "arrives with a later version");
  EXPECT_EQ(document["sites"], json::array());
  EXPECT_EQ(document["verdicts"], json::array());
  const json& main = document["processes"][0];
  for (const char* field :
       {"pid", "ppid", "start_time_ns", "comm", "cmdline", "role", "worker", "started_s", "ended_s", "exit",
        "memory", "sources", "faults", "heap", "reconciliation", "timeline"}) {
    EXPECT_TRUE(main.contains(field)) << field;
  }
  EXPECT_TRUE(main["worker"].is_null());
  EXPECT_TRUE(main["heap"].is_null());
  EXPECT_EQ(document["processes"][3]["worker"],
            json({{"slot", 2}, {"generation", 0}, {"group", "train.py:88 <module>"}}));
  EXPECT_EQ(document["processes"][4]["exit"], json({{"code", 0}, {"signal", 9}, {"oom_killed", true}}));
}

TEST(Json, BeginsWithTheSchemaAndEndsWithANewline) {
  const std::string text = to_json(Report{});
  EXPECT_TRUE(text.starts_with("{\n \"schema\": \"torchleak.report/1\""));
  EXPECT_TRUE(text.ends_with("}\n"));
}

TEST(Json, ReplacesBrokenUtf8FromTheTarget) {
  Report report = samples::nothing_grew();
  report.processes[0].comm = "py\xff\xc3";
  const Result<Report> read = from_json(to_json(report));
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->processes[0].comm, "py\uFFFD\uFFFD");
}

TEST(Json, WritesNumbersThatJsonDoesNotHaveAsZero) {
  Report report;
  report.capture.duration_s = std::numeric_limits<double>::infinity();
  report.capture.cost.tracer_cpu_s = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(from_json(to_json(report)).value_or(samples::nothing_grew()), Report{});
}

TEST(Json, EveryPrefixOfAReportIsAnErrorThatSaysWhereItIsCutOff) {
  Report report = samples::leaking_worker();
  report.processes.resize(2);
  const std::string text = to_json(report);
  ASSERT_FALSE(from_json(text.substr(0, 1)));
  for (std::size_t length = 1; length + 1 < text.size(); ++length) {
    ASSERT_EQ(error_of(std::string_view(text).substr(0, length)),
              "the report is cut off at byte " + std::to_string(length) + ": it was not written to its end");
  }
}

TEST(Json, ChangingAnyByteNeverThrows) {
  std::mt19937_64 random(7);
  const std::string text = to_json(samples::nothing_grew());
  for (int i = 0; i < 3000; ++i) {
    std::string changed = text;
    changed[random() % changed.size()] = static_cast<char>(random());
    EXPECT_NO_THROW((void)from_json(changed));
  }
}

TEST(Json, SaysThatAFileIsEmpty) {
  EXPECT_EQ(error_of(""), "the report is empty: the capture that wrote it may have been killed");
  EXPECT_EQ(error_of(" \n"), error_of(""));
}

TEST(Json, SaysThatTextIsNotJson) {
  EXPECT_EQ(error_of("hello"), "not JSON: unexpected 'h' at byte 0");
  EXPECT_EQ(error_of("{\"a\": \x1b}"), "not JSON: unexpected '\\x1b' at byte 6");
  EXPECT_EQ(error_of("{} {}"), "not JSON: unexpected '{' at byte 3");
}

TEST(Json, SaysThatOtherJsonIsNotAReport) {
  for (const char* text : {"{}", "[]", "null", "3", "\"x\"", "{\"schema\": 1}"}) {
    EXPECT_TRUE(error_of(text).starts_with("this is JSON but not a torchleak report: it has no")) << text;
  }
  EXPECT_EQ(error_of("{\"schema\": \"x\\u001b/1\"}"),
            "this is JSON but not a torchleak report: its schema is 'x\\x1b/1', not 'torchleak.report/1'");
}

TEST(Json, AsksForAnUpgradeWhereTheReportIsNewer) {
  EXPECT_EQ(error_of("{\"schema\": \"torchleak.report/2\"}"),
            "the report is torchleak.report/2, written by a newer version; this one reads "
            "torchleak.report/1: upgrade "
            "torchleak-trace");
}

TEST(Json, NamesThePathOfAMissingField) {
  EXPECT_EQ(error_after([](json& d) { d["processes"][3]["memory"]["start"].erase("rss"); }),
            "the report's field processes[3].memory.start.rss is missing");
  EXPECT_EQ(error_after([](json& d) { d.erase("growth"); }), "the report's field growth is missing");
}

TEST(Json, NamesThePathOfAFieldOfTheWrongType) {
  EXPECT_EQ(error_after([](json& d) { d["processes"][0]["pid"] = "4200"; }),
            "the report's field processes[0].pid must be a whole number, not a string");
  EXPECT_EQ(error_after([](json& d) { d["capture"]["layers"]["pages"] = "on"; }),
            "the report's field capture.layers.pages must be an object, not a string");
  EXPECT_EQ(error_after([](json& d) { d["processes"][0]["exit"] = json::array(); }),
            "the report's field processes[0].exit must be an object, not a list");
  EXPECT_EQ(error_after([](json& d) { d["processes"][3]["sources"][1]["cow"] = 1.5; }),
            "the report's field processes[3].sources[1].cow must be a whole number, not a fraction");
}

TEST(Json, RefusesNumbersThatDoNotFit) {
  EXPECT_EQ(error_after([](json& d) { d["processes"][0]["memory"]["peak_rss"] = -1; }),
            "the report's field processes[0].memory.peak_rss is negative");
  EXPECT_EQ(error_after([](json& d) { d["capture"]["targets"][0] = 4294967296; }),
            "the report's field capture.targets[0] is out of range");
  EXPECT_EQ(error_after([](json& d) { d["growth"]["bytes"] = 18446744073709551615U; }),
            "the report's field growth.bytes is out of range");
  EXPECT_EQ(error_after([](json& d) { d["growth"]["bytes"] = 1e30; }),
            "the report's field growth.bytes is out of range");
  EXPECT_EQ(error_of("{\"schema\": 1e999}"), "the report holds a number that is out of range");
}

TEST(Json, TakesAWholeNumberHoweverItIsWritten) {
  EXPECT_EQ(error_after([](json& d) { d["growth"]["bytes"] = 4096.0; }), "");
}

TEST(Json, NamesAValueItDoesNotKnow) {
  EXPECT_EQ(error_after([](json& d) { d["processes"][0]["role"] = "king\x1b"; }),
            "the report's field processes[0].role is 'king\\x1b', which is no role this version knows");
}

TEST(Json, IgnoresFieldsItDoesNotKnowAndMissesNoneOfItsOwnAdditions) {
  EXPECT_EQ(error_after([](json& d) { d["machine"]["numa"] = {{"nodes", 2}}; }), "");
  EXPECT_EQ(error_after([](json& d) { d["sites"].push_back({{"id", "s1"}}); }), "");
  EXPECT_EQ(error_after([](json& d) {
              d["capture"].erase("blind_spots");
              d["machine"].clear();
            }),
            "");
}

TEST(Json, RefusesAbsurdNestingWithoutOverflowingTheStack) {
  EXPECT_EQ(error_of(std::string(5'000'000, '[')),
            "not a report: nested more than 64 levels deep at byte 64");
  std::string objects;
  for (int i = 0; i < 500'000; ++i) {
    objects += "{\"a\":";
  }
  EXPECT_TRUE(contains(error_of(objects), "nested more than 64 levels"));
  EXPECT_TRUE(contains(error_of("[\"" + std::string(100, '[') + "\\\"[[\"]"), "not a torchleak report"));
}

}  // namespace
}  // namespace torchleak
