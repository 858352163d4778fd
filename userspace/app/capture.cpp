// SPDX-License-Identifier: Apache-2.0
#include "torchleak/app/capture.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <ctime>

#include "torchleak/app/tree.hpp"
#include "torchleak/procfs/machine.hpp"
#include "torchleak/procfs/pressure.hpp"
#include "torchleak/procfs/snapshot.hpp"

namespace torchleak::app {
namespace {

constexpr std::uint64_t kMillisecond = 1'000'000;
constexpr int kPollMs = 25;
// A sample is written before its fault is handled, and making room for a huge page can take the kernel some
// time. Younger records wait, so that a look at the page finds it.
constexpr std::uint64_t kSettleNs = 30 * kMillisecond;
constexpr std::uint64_t kWindowNs = 250 * kMillisecond;
constexpr std::uint64_t kSustainedNs = 2000 * kMillisecond;  // a shorter burst is watched whole
constexpr std::uint64_t kSamplesToJudgeBy = 256;
constexpr std::uint64_t kWindowsACosted = 10;  // counting run times makes the programs dearer
constexpr std::uint64_t kObservationNs = 250 * kMillisecond;
constexpr std::uint64_t kObservationCostShare = 100;  // observing may take 1 % of a CPU
constexpr std::uint64_t kSnapshotBudgetNs = 3000 * kMillisecond;
// A look at a mapping takes the lock that the target's own mmap and munmap need. Without it the flags decide.
constexpr std::size_t kHeaderProbesADrain = 8;
constexpr std::uint64_t kSmallestMallocMmap = std::uint64_t{128} * 1024;

std::uint64_t page_bytes() {
  return static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

std::int64_t boottime_offset_ns() {
  timespec boot{};
  ::clock_gettime(CLOCK_BOOTTIME, &boot);
  return boot.tv_sec * 1'000'000'000 + boot.tv_nsec - static_cast<std::int64_t>(procfs::monotonic_ns());
}

LedgerOptions ledger_options() {
  LedgerOptions options;
  options.page_bytes = page_bytes();
  options.boottime_offset_ns = boottime_offset_ns();
  return options;
}

}  // namespace

CaptureSession::CaptureSession(const TraceOptions& options, bpf::Tracer tracer,
                               std::uint64_t program_start_ns)
    : options_(options),
      tracer_(std::move(tracer)),
      ledger_(ledger_options(), procfs::monotonic_ns()),
      probe_(page_bytes()),
      sampling_(options.max_overhead_percent, options.sample_bytes / page_bytes()),
      started_(fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)))),
      program_start_ns_(program_start_ns),
      start_ns_(procfs::monotonic_ns()),
      busy_cpu_at_start_(procfs::busy_cpu_ns()),
      machine_faults_(procfs::machine_faults()),
      machine_faults_ns_(start_ns_) {}

// Traces a process before looking for its children, so that none can be born unseen in between. True if all
// are in.
bool CaptureSession::follow(std::uint32_t root) {
  bool news = false;
  for (const FoundProcess& found : find_tree(root, options_.children)) {
    if (ledger_.find(found.pid) != nullptr) {
      continue;
    }
    const std::uint64_t swap_entries = found.observation.memory.swap / page_bytes();
    if (const auto traced = tracer_.trace(found.pid, swap_entries); !traced) {
      blind_spots_.push_back(traced.error().message);
      continue;
    }
    ledger_.add(found);
    news = true;
  }
  return news;
}

Result<void> CaptureSession::attach(const std::vector<std::uint32_t>& pids) {
  targets_ = pids;
  for (const std::uint32_t pid : pids) {
    while (follow(pid)) {
    }
    if (ledger_.find(pid) == nullptr) {
      return fail(fmt::format("process {} ended while it was being attached to", pid));
    }
  }
  take_snapshots(
      ledger_.live(), "have no baseline by source",
      [this](std::uint32_t pid, const Snapshot& snapshot) { ledger_.set_baseline(pid, snapshot); });
  expect_past_rate();
  next_window();
  machine_has_swap_ = procfs::read_machine().swap_bytes > 0;
  watch_swap();
  observe_all();
  first_data_ns_ = procfs::monotonic_ns();
  return {};
}

// Reading maps takes milliseconds a process, and there may be a thousand. What there was no time for is told,
// with what follows from it.
void CaptureSession::take_snapshots(const std::vector<std::uint32_t>& pids, const char* consequence,
                                    const std::function<void(std::uint32_t, const Snapshot&)>& use) {
  const std::uint64_t deadline = procfs::monotonic_ns() + kSnapshotBudgetNs;
  std::size_t missed = 0;
  for (const std::uint32_t pid : pids) {
    if (procfs::monotonic_ns() > deadline) {
      ++missed;
    } else if (const auto snapshot = procfs::take_snapshot(static_cast<pid_t>(pid))) {
      use(pid, *snapshot);
    } else {
      blind_spots_.push_back(snapshot.error().message);
    }
  }
  if (missed > 0) {
    blind_spots_.push_back(
        fmt::format("{} processes {}: reading their maps would have taken too long", missed, consequence));
  }
}

void CaptureSession::run(StopSignal& stop, Progress& progress) {
  bool stopped = false;
  while (!stopped && !targets_ended()) {
    const double elapsed_s = static_cast<double>(procfs::monotonic_ns() - start_ns_) * 1e-9;
    if (options_.duration_s && elapsed_s >= *options_.duration_s) {
      break;
    }
    const double left_ms = options_.duration_s ? (*options_.duration_s - elapsed_s) * 1000 + 1 : kPollMs;
    stopped = stop.wait(static_cast<int>(std::min<double>(kPollMs, left_ms)));
    drain();
    steer_period();
    const std::uint64_t now = procfs::monotonic_ns();
    if (now >= next_window_ns_) {
      next_window();
    }
    if (now >= next_observation_ns_) {
      observe_all();
      watch_swap();
    }
    progress.update(elapsed_s, options_.duration_s, ledger_.live().size(), ledger_.growth_bytes());
  }
}

bool CaptureSession::targets_ended() const {
  return std::ranges::none_of(targets_, [this](std::uint32_t pid) { return ledger_.find(pid) != nullptr; });
}

void CaptureSession::drain() {
  header_probes_left_ = kHeaderProbesADrain;
  tracer_.drain([this](std::span<const std::byte> record) {
    auto event = decoder_.decode(record);
    if (!event) {
      return;
    }
    if (const auto* fault = std::get_if<tl_fault>(&*event)) {
      faults_since_ += fault->weight;
      watched_faults_ += fault->weight;
      ++samples_;
    }
    const bool executed = std::holds_alternative<tl_exec>(*event);
    const auto pid = static_cast<pid_t>(header_of(*event).tgid);
    waiting_.push_back({*event, executed ? procfs::read_cmdline(pid) : std::vector<std::string>{}});
  });
  const std::uint64_t now = procfs::monotonic_ns();
  while (!waiting_.empty() && header_of(waiting_.front().event).time_ns + kSettleNs < now) {
    take(waiting_.front());
    waiting_.pop_front();
  }
}

void CaptureSession::take(Waiting& waiting) {
  const Event& event = waiting.event;
  const std::uint32_t pid = header_of(event).tgid;
  ledger_.apply(event, facts_for(event));
  if (std::holds_alternative<tl_exec>(event)) {
    if (!waiting.cmdline.empty()) {
      ledger_.set_cmdline(pid, std::move(waiting.cmdline));
    }
    probe_.forget(static_cast<pid_t>(pid));
  } else if (std::holds_alternative<tl_exit>(event)) {
    probe_.forget(static_cast<pid_t>(pid));
    usage_.erase(pid);
  }
}

EventFacts CaptureSession::facts_for(const Event& event) {
  EventFacts facts;
  const auto pid = static_cast<pid_t>(header_of(event).tgid);
  if (const auto* map = std::get_if<tl_map>(&event)) {
    const bool may_be_malloc = map->flags == (MAP_PRIVATE | MAP_ANONYMOUS) &&
                               map->length >= kSmallestMallocMmap &&
                               map->protection == (PROT_READ | PROT_WRITE);
    if (may_be_malloc && header_probes_left_ > 0) {
      --header_probes_left_;
      facts.chunk = probe_.chunk_header_at(pid, map->address, map->length);
    }
  } else if (const auto* fault = std::get_if<tl_fault>(&event)) {
    facts.sampled_share = sampled_share_;
    if ((fault->flags & TL_FAULT_PRESENT) != 0) {
      return facts;
    }
    if (ledger_.is_private_file(fault->header.tgid, fault->address)) {
      facts.pages_mapped_around = probe_.pages_around(pid, fault->address);
    } else {
      facts.touched_page_bytes = probe_.page_size_at(pid, fault->address);
    }
  } else if (const auto* shm = std::get_if<AttachShmEvent>(&event)) {
    facts.attached_bytes = probe_.mapping_length_at(pid, shm->address);
  }
  return facts;
}

void CaptureSession::observe_all() {
  const std::uint64_t began = procfs::monotonic_ns();
  for (const std::uint32_t pid : ledger_.live()) {
    const auto observation = procfs::observe(static_cast<pid_t>(pid));
    if (!observation) {
      continue;  // it has ended; its last record is on its way
    }
    ledger_.observe(pid, *observation);
    if (const auto counters = tracer_.counters(pid)) {
      ledger_.set_counters(pid, *counters);
    }
    const Usage now{observation->cpu_ns, observation->minor_faults + observation->major_faults};
    const auto [before, is_new] = usage_.try_emplace(pid, now);
    if (!is_new && now.cpu_ns >= before->second.cpu_ns && now.faults >= before->second.faults) {
      for (Usage* sum : {&total_, &recent_}) {
        sum->cpu_ns += now.cpu_ns - before->second.cpu_ns;
        sum->faults += now.faults - before->second.faults;
      }
      before->second = now;
    }
  }
  const std::uint64_t took = procfs::monotonic_ns() - began;
  next_observation_ns_ = began + std::max(kObservationNs, took * kObservationCostShare);
}

void CaptureSession::watch_swap() {
  if (!machine_has_swap_ || tracer_.swap_attached()) {
    return;
  }
  const bool likely = std::ranges::any_of(
      targets_, [](std::uint32_t pid) { return procfs::swapping_is_likely(static_cast<pid_t>(pid)); });
  if (!likely || !tracer_.attach_swap()) {
    return;
  }
  for (const std::uint32_t pid : ledger_.live()) {
    if (const auto observation = procfs::observe(static_cast<pid_t>(pid))) {
      tracer_.set_swap_entries(pid, observation->memory.swap / page_bytes());
    }
  }
}

// What the targets did all their life is the best guess at what they will do next.
void CaptureSession::expect_past_rate() {
  Usage past;
  for (const std::uint32_t pid : ledger_.live()) {
    if (const auto observation = procfs::observe(static_cast<pid_t>(pid))) {
      past.cpu_ns += observation->cpu_ns;
      past.faults += observation->minor_faults + observation->major_faults;
    }
  }
  if (past.cpu_ns > kSustainedNs) {
    set_target_rate(past);
  }
}

void CaptureSession::watch_machine_rate() {
  const std::uint64_t now = procfs::monotonic_ns();
  const std::uint64_t faults = procfs::machine_faults();
  const double seconds = static_cast<double>(now - machine_faults_ns_) * 1e-9;
  sampling_.set_machine_rate(static_cast<double>(faults - machine_faults_) / std::max(seconds, 0.01));
  machine_faults_ = faults;
  machine_faults_ns_ = now;
}

void CaptureSession::set_target_rate(const Usage& usage) {
  sampling_.set_target_rate(static_cast<double>(usage.faults) / (static_cast<double>(usage.cpu_ns) * 1e-9));
  smallest_share_ = std::min(smallest_share_, sampling_.share());
}

// Follows a rise of the rate at once and a fall when it has lasted.
void CaptureSession::steer_period() {
  const double seconds = static_cast<double>(procfs::monotonic_ns() - watched_since_ns_) * 1e-9;
  const double rate = static_cast<double>(faults_since_) / std::max(seconds, 0.001);
  const bool rises = faults_since_ > sampling_.period() * kSamplesToJudgeBy;
  if (!watching_ || (!rises && seconds < 1)) {
    return;
  }
  const bool changes = sampling_.set_rate(rate);
  if (changes) {
    tracer_.sample_faults(sampling_.period());
  }
  if (changes || seconds >= 1) {
    watched_since_ns_ = procfs::monotonic_ns();
    faults_since_ = 0;
  }
}

// Decides for the next quarter of a second: are faults watched, and is the programs' run time counted?
// Records of the window that ends have just been drained, with its share.
void CaptureSession::next_window() {
  next_window_ns_ = procfs::monotonic_ns() + kWindowNs;
  if (recent_.cpu_ns > kSustainedNs) {
    set_target_rate(recent_);
    recent_ = {};
  }
  watch_machine_rate();
  const bool watch = sampling_.next_window();
  if (watch && !watching_) {
    watched_since_ns_ = procfs::monotonic_ns();
    faults_since_ = 0;
  }
  watching_ = watch;
  tracer_.sample_faults(watch ? sampling_.period() : 0);
  sampled_share_ = sampling_.share();
  const bool count = windows_++ % kWindowsACosted == 0;
  costed_windows_ += count ? 1 : 0;
  tracer_.count_cost(count);
}

}  // namespace torchleak::app
