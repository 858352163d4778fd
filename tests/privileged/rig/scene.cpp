// SPDX-License-Identifier: Apache-2.0
#include "scene.hpp"

#include <fcntl.h>
#include <unistd.h>
#include <algorithm>

#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <stdexcept>

#include "torchleak/report/json.hpp"

namespace torchleak::rig {
namespace {

std::string read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The figure of a "Name:   123 kB" line, in bytes.
std::uint64_t kilobytes_after(const std::string& text, const std::string& name) {
  const auto at = text.find("\n" + name + ":");
  return at == std::string::npos ? 0 : std::stoull(text.substr(at + name.size() + 2)) * 1024;
}

Words workload_command(const Words& words) {
  Words command{TORCHLEAK_WORKLOAD};
  command.insert(command.end(), words.begin(), words.end());
  return command;
}

Words options_for(const Workload& job, Words options) {
  options.insert(options.begin(), {"-p", std::to_string(job.pid())});
  return options;
}

UniqueFd pipe_into(UniqueFd& write_end) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    throw std::runtime_error("no pipe");
  }
  write_end = UniqueFd(ends[1]);
  return UniqueFd(ends[0]);
}

}  // namespace

std::string known(const std::string& key, std::uint64_t value) {
  return key + "=" + std::to_string(value);
}

TempDir::TempDir() : path_(testing::TempDir() + "torchleak.XXXXXX") {
  if (::mkdtemp(path_.data()) == nullptr) {
    throw std::runtime_error("no temporary directory " + path_);
  }
}

TempDir::~TempDir() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

Workload::Workload(const Words& words) : child_(workload_command(words), {.speaks = true}) {
  if (child_.hear() != "ready") {
    throw std::runtime_error("the workload is not ready");
  }
}

Facts Workload::go() {
  child_.say("go");
  std::istringstream line(child_.hear());
  std::string word;
  line >> word;
  if (word != "done") {
    throw std::runtime_error("the workload says '" + word + "' for 'done'");
  }
  Facts facts;
  while (line >> word) {
    const auto equals = word.find('=');
    facts[word.substr(0, equals)] = std::stoull(word.substr(equals + 1));
  }
  return facts;
}

Tracer::Tracer(const Words& options)
    : ready_(pipe_into(ready_end_)), child_(command(options), {.inherited_fd = ready_end_.get()}) {
  ready_end_ = UniqueFd();
  await_readable(ready_.get(), "the tracer to attach");
  char byte = 0;
  if (::read(ready_.get(), &byte, 1) != 1) {
    child_.wait();
    throw std::runtime_error("the tracer ended instead of attaching: " + child_.err());
  }
}

Tracer::Tracer(const Workload& job, const Words& options) : Tracer(options_for(job, options)) {}

Words Tracer::command(const Words& options) const {
  Words command{TORCHLEAK_TRACER,          "-q", "--ready-fd", std::to_string(ready_end_.get()), "-o",
                directory_ / "report.json"};
  command.insert(command.end(), options.begin(), options.end());
  // The books are proven at a fixed period: the one that adapts loses up to a tenth of a burst of 64 MiB.
  if (std::ranges::find(options, "--sample-bytes") == options.end()) {
    command.insert(command.end(), {"--sample-bytes", "64K"});
  }
  return command;
}

Report Tracer::end() {
  child_.kill(SIGINT);
  return report();
}

Report Tracer::report() {
  if (const int status = child_.exit_status(); status != 0) {
    throw std::runtime_error("the tracer left with " + std::to_string(status) + ": " + child_.err());
  }
  auto report = from_json(read_file(directory_ / "report.json"));
  if (!report) {
    throw std::runtime_error("its report cannot be read: " + report.error().message);
  }
  return *report;
}

std::uint64_t Tracer::rss_bytes() const {
  return kilobytes_after(read_file("/proc/" + std::to_string(child_.pid()) + "/status"), "VmRSS");
}

Truth read_truth(std::uint64_t pid) {
  const std::string text = read_file("/proc/" + std::to_string(pid) + "/smaps_rollup");
  return {kilobytes_after(text, "Rss"), kilobytes_after(text, "Swap"),
          kilobytes_after(text, "AnonHugePages")};
}

Outcome watch(Workload& job, Tracer& tracer) {
  Outcome outcome;
  outcome.done = job.go();
  outcome.truth = read_truth(job.pid());
  outcome.report = tracer.end();
  outcome.process = process_of(outcome.report, job.pid());
  return outcome;
}

Outcome trace(const Words& workload, const Words& options) {
  Workload job(workload);
  Tracer tracer(job, options);
  return watch(job, tracer);
}

const ProcessReport& process_of(const Report& report, std::uint64_t pid) {
  for (const ProcessReport& process : report.processes) {
    if (process.pid == pid) {
      return process;
    }
  }
  throw std::runtime_error("the report has no process " + std::to_string(pid));
}

}  // namespace torchleak::rig
