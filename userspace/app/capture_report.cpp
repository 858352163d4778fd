// SPDX-License-Identifier: Apache-2.0
// The end of a capture: the last look at the targets, what it cost, what was not seen, and the report.
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "torchleak/app/capture.hpp"
#include "torchleak/procfs/machine.hpp"
#include "torchleak/procfs/snapshot.hpp"

namespace torchleak::app {
namespace {

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

const char* layer_name(bpf::Layer layer) {
  switch (layer) {
    case bpf::Layer::kProcesses:
      return "processes";
    case bpf::Layer::kPages:
      return "pages";
    case bpf::Layer::kMappings:
      return "mappings";
    case bpf::Layer::kSwap:
      return "swap";
  }
  return "?";
}

// Growth of those that live: what an ended process held has been given back.
Growth total_growth(const std::vector<ProcessReport>& processes) {
  Growth growth;
  for (const ProcessReport& process : processes) {
    if (!process.ended_s) {
      growth.bytes += process.growth_bytes();
      growth.unexplained_bytes += process.reconciliation.unexplained;
    }
  }
  growth.explained_bytes = growth.bytes - growth.unexplained_bytes;
  return growth;
}

}  // namespace

std::map<std::string, LayerStatus> CaptureSession::layers() const {
  std::map<std::string, LayerStatus> layers;
  layers["pages"] = {LayerState::kOn, {}};
  layers["mappings"] = {LayerState::kOn, {}};
  if (tracer_.swap_attached()) {
    layers["swap"] = {LayerState::kOn, {}};
  } else {
    layers["swap"] = {LayerState::kOff,
                      machine_has_swap_ ? "nothing was swapped" : "this machine has no swap"};
  }
  for (const char* later : {"python", "native", "arrays", "cuda"}) {
    layers[later] = {LayerState::kOff, "not in this version"};
  }
  for (const bpf::BlindSpot& blind : tracer_.blind_spots()) {
    const char* layer = blind.layer == bpf::Layer::kProcesses ? "mappings" : layer_name(blind.layer);
    layers[layer] = {LayerState::kDegraded, fmt::format("{}: {}", blind.program, blind.why)};
  }
  if (smallest_share_ < 1 && layers["pages"].state == LayerState::kOn) {
    layers["pages"].why = fmt::format("faults watched {:.0f} % of the time, to keep within {:g} % of cost",
                                      smallest_share_ * 100, options_.max_overhead_percent);
  }
  return layers;
}

void CaptureSession::tell_losses(Capture& capture) const {
  const auto losses = tracer_.losses();
  capture.lost.samples = losses[TL_LOSS_RING_FULL_SAMPLE];
  capture.lost.events = losses[TL_LOSS_RING_FULL] + losses[TL_LOSS_PROCESS_TABLE_FULL] +
                        decoder_.unknown_kinds() + decoder_.wrong_sizes() + ledger_.untracked_processes();
  const auto tell = [&capture](std::uint64_t count, const char* what) {
    if (count > 0) {
      capture.blind_spots.push_back(fmt::format("{} {}", count, what));
    }
  };
  tell(losses[TL_LOSS_RING_FULL], "records were lost: the ring buffer was full");
  tell(losses[TL_LOSS_RING_FULL_SAMPLE], "samples were lost: the ring buffer was full");
  tell(losses[TL_LOSS_PROCESS_TABLE_FULL], "processes were not followed: the table of processes was full");
  tell(losses[TL_LOSS_ENTRY_TIME], "calls have no time of entry: they had begun before, or shared a slot");
  tell(losses[TL_LOSS_FILE_UNREADABLE], "mapped files have no name: the descriptor was closed already");
  tell(decoder_.unknown_kinds() + decoder_.wrong_sizes(), "records were not understood");
  tell(ledger_.forgotten_processes(), "processes that had ended are left out: too many came and went");
  tell(ledger_.orphan_events(), "records were of processes never heard of");
  tell(ledger_.untracked_processes(), "processes were not followed: too many were started");
}

// What the targets pay, of their own CPU time: for each record they made, for each fault while faults are
// watched, and for passing by the programs on system calls. These run for every process of the machine; the
// targets' part of that is taken to be their part of the CPU time.
double CaptureSession::target_share_percent(const bpf::ProgramCost& cost, double scale) const {
  if (total_.cpu_ns == 0) {
    return 0;
  }
  const auto target_cpu = static_cast<double>(total_.cpu_ns);
  const auto busy_cpu = std::max(static_cast<double>(procfs::busy_cpu_ns() - busy_cpu_at_start_), target_cpu);
  const double calls = static_cast<double>(cost.machine_wide_ns) * scale * target_cpu / busy_cpu;
  const double samples = static_cast<double>(samples_) * FaultSampling::kSampleCostNs;
  const double faults = static_cast<double>(watched_faults_) * FaultSampling::kFaultCostNs;
  return 100 * (calls + samples + faults) / target_cpu;
}

Capture CaptureSession::describe(std::vector<std::string> notes) const {
  Capture capture;
  capture.started = started_;
  capture.duration_s = static_cast<double>(end_ns_ - start_ns_) * 1e-9;
  capture.targets = targets_;
  capture.sample_bytes = sampling_.largest_period() * static_cast<std::uint64_t>(::getpagesize());
  capture.layers = layers();
  capture.blind_spots = std::move(notes);
  capture.blind_spots.insert(capture.blind_spots.end(), blind_spots_.begin(), blind_spots_.end());
  for (const bpf::BlindSpot& blind : tracer_.blind_spots()) {
    capture.blind_spots.push_back(
        fmt::format("{}: {}: {}", layer_name(blind.layer), blind.program, blind.why));
  }
  tell_losses(capture);

  const bpf::ProgramCost cost = tracer_.cost();
  const double scale =
      static_cast<double>(windows_) / static_cast<double>(std::max<std::uint64_t>(costed_windows_, 1));
  capture.cost.bpf_ns = static_cast<std::uint64_t>(static_cast<double>(cost.run_ns) * scale);
  capture.cost.bpf_runs = static_cast<std::uint64_t>(static_cast<double>(cost.runs) * scale);
  capture.cost.target_share_percent = target_share_percent(cost, scale);
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  capture.cost.tracer_cpu_s = seconds_of(usage.ru_utime) + seconds_of(usage.ru_stime);
  if (const auto own = procfs::read_status(::getpid())) {
    capture.cost.tracer_rss_bytes = own->peak_rss;
  }
  capture.cost.first_data_s = static_cast<double>(first_data_ns_ - program_start_ns_) * 1e-9;
  return capture;
}

Report CaptureSession::finish(std::vector<std::string> notes) {
  tracer_.sample_faults(0);
  drain();
  observe_all();
  end_ns_ = procfs::monotonic_ns();
  while (!waiting_.empty() && header_of(waiting_.front().event).time_ns < end_ns_) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    drain();
  }
  // The largest first, should there be no time for all.
  std::vector<std::uint32_t> pids = ledger_.live();
  std::ranges::sort(pids, std::ranges::greater{},
                    [this](std::uint32_t pid) { return ledger_.find(pid)->latest.rss; });
  take_snapshots(pids, "are told by source from samples alone",
                 [this](std::uint32_t pid, const Snapshot& snapshot) { ledger_.set_end(pid, snapshot); });

  Report report;
  report.tool_version = TORCHLEAK_VERSION;
  report.machine = procfs::read_machine();
  report.processes = ledger_.close(end_ns_);
  report.growth = total_growth(report.processes);
  report.capture = describe(std::move(notes));
  return report;
}

}  // namespace torchleak::app
