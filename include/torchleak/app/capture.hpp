// SPDX-License-Identifier: Apache-2.0
// One capture: attaches to the tree, feeds the ledger with records, observations and snapshots until it is
// told to stop, and closes the books as a Report.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "torchleak/app/fault_sampling.hpp"
#include "torchleak/app/options.hpp"
#include "torchleak/app/progress.hpp"
#include "torchleak/app/stop_signal.hpp"
#include "torchleak/base/result.hpp"
#include "torchleak/bpf/tracer.hpp"
#include "torchleak/core/ledger.hpp"
#include "torchleak/procfs/page_probe.hpp"

namespace torchleak::app {

class CaptureSession {
 public:
  CaptureSession(const TraceOptions& options, bpf::Tracer tracer, std::uint64_t program_start_ns);

  // From here on the targets are traced. Fails where one of them is gone already.
  Result<void> attach(const std::vector<std::uint32_t>& pids);
  void run(StopSignal& stop, Progress& progress);
  Report finish(std::vector<std::string> notes);

  const bpf::Tracer& tracer() const { return tracer_; }

 private:
  struct Usage {
    std::uint64_t cpu_ns = 0;
    std::uint64_t faults = 0;
  };

  struct Waiting {
    Event event;
    std::vector<std::string> cmdline;  // of an EXEC, read at once: the process may be gone soon
  };

  bool follow(std::uint32_t root);
  void take_snapshots(const std::vector<std::uint32_t>& pids, const char* consequence,
                      const std::function<void(std::uint32_t, const Snapshot&)>& use);
  void drain();
  void take(Waiting& waiting);
  EventFacts facts_for(const Event& event);
  void observe_all();
  void watch_swap();
  void expect_past_rate();
  void set_target_rate(const Usage& usage);
  void watch_machine_rate();
  void steer_period();
  void next_window();
  bool targets_ended() const;
  double target_share_percent(const bpf::ProgramCost& cost, double scale) const;
  Capture describe(std::vector<std::string> notes) const;
  std::map<std::string, LayerStatus> layers() const;
  void tell_losses(Capture& capture) const;

  TraceOptions options_;
  bpf::Tracer tracer_;
  Ledger ledger_;
  Decoder decoder_;
  std::deque<Waiting> waiting_;  // drained, too young to be taken
  procfs::PageProbe probe_;
  FaultSampling sampling_;
  std::vector<std::uint32_t> targets_;
  std::vector<std::string> blind_spots_;
  std::string started_;  // ISO 8601
  std::uint64_t program_start_ns_;
  std::uint64_t start_ns_ = 0;
  std::uint64_t end_ns_ = 0;
  std::uint64_t first_data_ns_ = 0;
  std::uint64_t busy_cpu_at_start_;
  std::uint64_t machine_faults_;  // of all processes, as last read
  std::uint64_t machine_faults_ns_;
  std::uint64_t next_observation_ns_ = 0;
  std::uint64_t next_window_ns_ = 0;
  double sampled_share_ = 1;   // of the windows now being sampled
  double smallest_share_ = 1;  // seen in this capture
  bool watching_ = false;      // this window's faults
  std::uint64_t watched_since_ns_ = 0;
  std::uint64_t faults_since_ = 0;    // seen since then
  std::uint64_t watched_faults_ = 0;  // in all
  std::uint64_t samples_ = 0;
  std::uint64_t windows_ = 0;
  std::uint64_t costed_windows_ = 0;                // those in which the programs' run time was counted
  std::unordered_map<std::uint32_t, Usage> usage_;  // by pid, as last observed
  Usage total_;                                     // of the targets, in this capture
  Usage recent_;                                    // since the share was last steered
  std::size_t header_probes_left_ = 0;
  bool machine_has_swap_ = false;
};

}  // namespace torchleak::app
