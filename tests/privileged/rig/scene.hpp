// SPDX-License-Identifier: Apache-2.0
// A workload with the tracer upon it. Most tests are one call:
//   const Outcome seen = trace({"mmap", "bytes=67108864"});
// and the others take the steps one by one:
//   Workload job({"sysv", "bytes=…"});   has said "ready"
//   Tracer tracer(job);                  has attached
//   job.go();                            has said "done"
//   const Report report = tracer.end();  Ctrl-C
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "child.hpp"
#include "torchleak/core/report.hpp"

namespace torchleak::rig {

using Words = std::vector<std::string>;
using Facts = std::map<std::string, std::uint64_t>;

inline constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

// "bytes=67108864" for known("bytes", 64 * kMiB).
std::string known(const std::string& key, std::uint64_t value);

class TempDir {
 public:
  TempDir();
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir();
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

class Workload {
 public:
  explicit Workload(const Words& words);
  std::uint32_t pid() const { return static_cast<std::uint32_t>(child_.pid()); }
  // Lets it do its next step; what it then says of it.
  Facts go();
  // Lets it do a step that it does not come back from.
  void leave() { child_.say("go"); }
  Child& process() { return child_; }

 private:
  Child child_;
};

class Tracer {
 public:
  // Traces with these options, to a file of its own; returns once it is attached.
  explicit Tracer(const Words& options);
  explicit Tracer(const Workload& job, const Words& options = {});
  // Ctrl-C, and its report.
  Report end();
  // The report of a capture that ends by itself.
  Report report();
  Child& process() { return child_; }
  std::uint64_t rss_bytes() const;

 private:
  Words command(const Words& options) const;

  TempDir directory_;
  UniqueFd ready_end_;  // the tracer's; before ready_, which makes both
  UniqueFd ready_;
  Child child_;
};

// smaps_rollup, as the test itself reads it.
struct Truth {
  std::uint64_t rss = 0;
  std::uint64_t swap = 0;
  std::uint64_t huge = 0;
};
Truth read_truth(std::uint64_t pid);

struct Outcome {
  Facts done;
  Truth truth;
  Report report;
  ProcessReport process;  // the workload's own
};

Outcome trace(const Words& workload, const Words& options = {});
// Lets the attached job do a step, looks, and ends the capture.
Outcome watch(Workload& job, Tracer& tracer);

const ProcessReport& process_of(const Report& report, std::uint64_t pid);

}  // namespace torchleak::rig
