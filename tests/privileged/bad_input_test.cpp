// SPDX-License-Identifier: Apache-2.0
// Whatever is wrong is told in one line that says what to do, with the status of the contract.
#include <sched.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "rig/machine.hpp"
#include "rig/scene.hpp"

namespace torchleak::rig {
namespace {

constexpr int kFailed = 1;
constexpr int kWrongUsage = 2;
constexpr int kCannotTrace = 77;
constexpr uid_t kNobody = 65534;

Words tracer_command(const Words& words) {
  Words command{TORCHLEAK_TRACER};
  command.insert(command.end(), words.begin(), words.end());
  return command;
}

// Runs a command to its end and expects this status and, on stderr, a line with these words.
void expect_refusal(const Words& command, int status, const Words& told, uid_t uid = 0) {
  SCOPED_TRACE(testing::PrintToString(command));
  Child tracer(command, {.uid = uid});
  EXPECT_EQ(tracer.exit_status(), status);
  const std::string message = tracer.err();
  EXPECT_TRUE(message.starts_with("torchleak-trace: ")) << message;
  EXPECT_TRUE(message.ends_with("\n")) << message;
  for (const std::string& word : told) {
    EXPECT_NE(message.find(word), std::string::npos) << "no '" << word << "' in: " << message;
  }
  EXPECT_EQ(tracer.out(), "");
}

void expect_refused(const Words& words, int status, const Words& told, uid_t uid = 0) {
  expect_refusal(tracer_command(words), status, told, uid);
}

class BadInput : public PrivilegedTest {
 protected:
  std::string write(const std::string& name, const std::string& text) {
    std::ofstream(directory_ / name) << text;
    return directory_ / name;
  }
  std::string pid() { return std::to_string(job_.pid()); }

  TempDir directory_;
  Workload job_{{"mmap", known("bytes", kMiB)}};
};

TEST_F(BadInput, APidThatIsNobodysIsRefused) {
  std::string nobody;
  {
    Workload gone({"mmap", known("bytes", kMiB)});
    nobody = std::to_string(gone.pid());
  }
  expect_refused({"-p", nobody}, kFailed, {"no process " + nobody});
}

TEST_F(BadInput, APidThatIsNoNumberIsWrongUsage) {
  expect_refused({"-p", "abc"}, kWrongUsage, {"abc", "--help"});
  expect_refused({"-p", "-1"}, kWrongUsage, {"--help"});
  expect_refused({"-p", "0"}, kWrongUsage, {"--help"});
  expect_refused({"-p", "99999999999"}, kWrongUsage, {"--help"});
}

TEST_F(BadInput, NothingToTraceIsWrongUsage) {
  expect_refused({}, kWrongUsage, {"-p PID"});
  expect_refused({"-p", pid(), "--", "true"}, kWrongUsage, {"not both"});
  expect_refused({"--"}, kWrongUsage, {"no command"});
  expect_refused({"-p", pid(), "--sample-bytes", "many"}, kWrongUsage, {"--sample-bytes"});
  expect_refused({"-p", pid(), "-d", "-3"}, kWrongUsage, {"--duration"});
  expect_refused({"-p", pid(), "--nonsense"}, kWrongUsage, {"--nonsense"});
}

TEST_F(BadInput, AKernelThreadIsRefused) {
  expect_refused({"-p", "2"}, kFailed, {"kernel thread"});
}

TEST_F(BadInput, AZombieIsRefused) {
  Workload parent({"zombie"});
  const std::uint64_t zombie = parent.go().at("child");
  expect_refused({"-p", std::to_string(zombie)}, kFailed, {std::to_string(zombie), "zombie"});
}

TEST_F(BadInput, OneWrongPidOfSeveralIsNamed) {
  expect_refused({"-p", pid(), "-p", "2"}, kFailed, {"2 ", "kernel thread"});
}

TEST_F(BadInput, WithoutRootTheMissingCapabilityIsNamed) {
  expect_refused({"-p", pid()}, kFailed, {"CAP_BPF", "CAP_PERFMON", "sudo"}, kNobody);
}

TEST_F(BadInput, APidNamespaceOfItsOwnIsNoPlaceToTraceFrom) {
  expect_refusal({"/usr/bin/unshare", "--pid", "--fork", "--mount-proc", TORCHLEAK_TRACER, "--", "/bin/true"},
                 kCannotTrace, {"container", "host"});
}

TEST_F(BadInput, AnOutputThatCannotBeWrittenIsToldBeforeTheCapture) {
  expect_refused({"-p", pid(), "-o", "/nowhere/at/all.json"}, kFailed, {"/nowhere/at/all.json", "-o"});
  expect_refused({"-p", pid(), "-o", "/proc/version.json"}, kFailed, {"/proc/version.json"});
}

TEST_F(BadInput, AnUnknownEndingIsWrongUsage) {
  expect_refused({"-p", pid(), "-o", "report.xlsx"}, kWrongUsage, {"report.xlsx", ".json"});
  EXPECT_FALSE(std::filesystem::exists("report.xlsx"));
}

TEST_F(BadInput, ACommandThatIsNotThereIsNamed) {
  expect_refused({"-q", "--", "/no/such/program"}, kFailed, {"/no/such/program", "No such file"});
  expect_refused({"-q", "--", "/etc/passwd"}, kFailed, {"/etc/passwd", "Permission denied"});
}

TEST_F(BadInput, AReportThatIsNoneIsRefusedWithTheReason) {
  const std::string whole = directory_ / "whole.json";
  Child tracer(tracer_command({"-q", "-d", "0.1", "-p", pid(), "-o", whole}));
  ASSERT_EQ(tracer.exit_status(), 0) << tracer.err();
  std::ifstream file(whole);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  std::string other = text;
  other.replace(other.find("torchleak.report/1"), 18, "torchleak.report/9");

  expect_refused({"report", directory_ / "none.json"}, kFailed, {"none.json", "No such file"});
  expect_refused({"report", write("cut.json", text.substr(0, text.size() / 2))}, kFailed,
                 {"cut.json", "cut off"});
  expect_refused({"report", write("words.json", "no report at all\n")}, kFailed, {"words.json", "JSON"});
  expect_refused({"report", write("empty.json", "")}, kFailed, {"empty.json"});
  expect_refused({"report", write("other.json", other)}, kFailed, {"other.json", "torchleak.report/9"});
  expect_refused({"report", directory_ / "."}, kFailed, {"directory"});
}

// Processes that end at any moment of the attaching: an error or a report, never a crash or a hang.
TEST_F(BadInput, ATargetThatEndsDuringTheAttachIsAnErrorOrAReport) {
  for (int round = 0; round < 10; ++round) {
    Workload job({"exit", known("bytes", kMiB)});
    Child tracer(tracer_command({"-q", "-p", std::to_string(job.pid()), "--format", "json"}));
    for (int step = 0; step < round * 20; ++step) {
      ::sched_yield();
    }
    job.leave();
    job.process().wait();
    const int status = tracer.exit_status();
    EXPECT_TRUE(status == 0 || status == kFailed) << status;
    EXPECT_EQ(tracer.out().empty(), status != 0);
    EXPECT_EQ(tracer.err().empty(), status == 0) << tracer.err();
  }
}

}  // namespace
}  // namespace torchleak::rig
