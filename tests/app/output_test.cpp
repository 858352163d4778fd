// SPDX-License-Identifier: Apache-2.0
#include "torchleak/app/output.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "torchleak/report/json.hpp"

namespace torchleak::app {
namespace {

using ::testing::HasSubstr;

class OutputsTest : public ::testing::Test {
 protected:
  OutputsTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "torchleak-output-XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) {
      throw std::runtime_error("no temporary directory");
    }
    directory = pattern;
    report.tool_version = "9.8.7";
  }
  ~OutputsTest() override {
    std::error_code ignored;
    std::filesystem::remove_all(directory, ignored);
  }

  std::string path(const char* name) const { return (directory / name).string(); }
  static std::string content(const std::string& file) {
    std::ifstream in(file, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
  }
  static void put(const std::string& file, const std::string& text) { std::ofstream(file) << text; }
  static Result<Outputs> open(std::vector<std::string> files) {
    OutputOptions options;
    options.files = std::move(files);
    return Outputs::open(options);
  }

  std::filesystem::path directory;
  Report report;
};

TEST_F(OutputsTest, TheEndingPicksTheFormat) {
  EXPECT_EQ(format_of_file("a.json"), Format::kJson);
  EXPECT_EQ(format_of_file("/x.txt/a.json"), Format::kJson);
  EXPECT_EQ(format_of_file("a.txt"), Format::kText);
  for (const char* name : {"", "a", "json", "a.JSON", "a.json.gz", "a.xml"}) {
    EXPECT_EQ(format_of_file(name), std::nullopt) << name;
  }
}

TEST_F(OutputsTest, AnUnwritablePathIsFoundAtOpen) {
  for (const std::string& file : {path("no/such/directory.json"), path("")}) {
    const auto outputs = open({path("good.json"), file});
    ASSERT_FALSE(outputs) << file;
    EXPECT_THAT(outputs.error().message, HasSubstr(file));
    EXPECT_THAT(outputs.error().message, HasSubstr("-o"));
  }
}

TEST_F(OutputsTest, ADirectoryInTheWayIsFoundAtOpen) {
  std::filesystem::create_directory(path("taken.json"));
  const auto outputs = open({path("taken.json")});
  ASSERT_FALSE(outputs);
  EXPECT_THAT(outputs.error().message, HasSubstr("directory"));
}

TEST_F(OutputsTest, AnExistingFileKeepsItsContentUntilThereIsAReport) {
  const std::string old(100'000, 'x');
  put(path("kept.json"), old);
  auto outputs = open({path("kept.json")});
  ASSERT_TRUE(outputs);
  EXPECT_EQ(content(path("kept.json")), old);
  ASSERT_TRUE(outputs->write(report));
  EXPECT_EQ(content(path("kept.json")), to_json(report));
}

TEST_F(OutputsTest, EveryFileGetsTheReportInItsOwnFormat) {
  auto outputs = open({path("a.json"), path("b.txt"), path("c.json")});
  ASSERT_TRUE(outputs);
  ASSERT_TRUE(outputs->write(report));
  EXPECT_EQ(content(path("a.json")), to_json(report));
  EXPECT_EQ(content(path("c.json")), to_json(report));
  EXPECT_FALSE(content(path("b.txt")).empty());
  EXPECT_EQ(content(path("b.txt")).find('\x1b'), std::string::npos);
  const auto again = from_json(content(path("a.json")));
  ASSERT_TRUE(again) << again.error().message;
  EXPECT_EQ(*again, report);
}

TEST_F(OutputsTest, OneFileThatFailsDoesNotCostTheOthers) {
  std::filesystem::create_symlink("/dev/full", path("full.json"));
  auto outputs = open({path("full.json"), path("good.json")});
  ASSERT_TRUE(outputs) << outputs.error().message;
  const auto written = outputs->write(report);
  ASSERT_FALSE(written);
  EXPECT_THAT(written.error().message, HasSubstr("full.json"));
  EXPECT_THAT(written.error().message, ::testing::Not(HasSubstr("good.json")));
  EXPECT_EQ(content(path("good.json")), to_json(report));
}

TEST_F(OutputsTest, StdoutStaysEmptyWhereThereAreFilesAndNoFormat) {
  auto outputs = open({path("a.json")});
  ASSERT_TRUE(outputs);
  ::testing::internal::CaptureStdout();
  EXPECT_TRUE(outputs->write(report));
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), "");
}

TEST_F(OutputsTest, WithAFormatStdoutGetsTheReportToo) {
  OutputOptions options;
  options.files = {path("a.txt")};
  options.format = Format::kJson;
  auto outputs = Outputs::open(options);
  ASSERT_TRUE(outputs);
  ::testing::internal::CaptureStdout();
  EXPECT_TRUE(outputs->write(report));
  EXPECT_EQ(::testing::internal::GetCapturedStdout(), to_json(report));
}

TEST_F(OutputsTest, WithoutFilesTheReportIsTextOnStdout) {
  auto outputs = open({});
  ASSERT_TRUE(outputs);
  ::testing::internal::CaptureStdout();
  EXPECT_TRUE(outputs->write(report));
  const std::string out = ::testing::internal::GetCapturedStdout();
  EXPECT_FALSE(out.empty());
  EXPECT_EQ(out.find('\x1b'), std::string::npos);  // no terminal, no colours
}

}  // namespace
}  // namespace torchleak::app
