// SPDX-License-Identifier: Apache-2.0
#include "samples.hpp"

#include <limits>

namespace torchleak::samples {
namespace {

constexpr std::uint64_t kMiB = 1024 * 1024;
constexpr auto kSignedMiB = static_cast<std::int64_t>(kMiB);

ProcessReport process(std::uint32_t pid, std::uint32_t ppid, Role role, std::uint64_t start_mib,
                      std::uint64_t end_mib) {
  ProcessReport made;
  made.pid = pid;
  made.ppid = ppid;
  made.start_time_ns = 1'000'000 + pid;
  made.comm = "python3";
  made.cmdline = {"python3", "train.py"};
  made.role = role;
  made.start = {
      .rss = start_mib * kMiB, .anon = (start_mib - 90) * kMiB, .file = 80 * kMiB, .shmem = 10 * kMiB};
  made.end = {.rss = end_mib * kMiB, .anon = (end_mib - 90) * kMiB, .file = 80 * kMiB, .shmem = 10 * kMiB};
  made.end.uss = (end_mib - 60) * kMiB;
  made.end.pss = (end_mib - 50) * kMiB;
  made.peak_rss = std::max(start_mib, end_mib) * kMiB;
  const auto growth =
      (static_cast<std::int64_t>(end_mib) - static_cast<std::int64_t>(start_mib)) * kSignedMiB;
  made.reconciliation = {.start = static_cast<std::int64_t>(start_mib) * kSignedMiB,
                         .attributed = growth + 24 * kSignedMiB,
                         .freed = 22 * kSignedMiB,
                         .measured = static_cast<std::int64_t>(end_mib) * kSignedMiB,
                         .unexplained = -2 * kSignedMiB};
  for (std::uint64_t second = 0; second <= 60; second += 5) {
    const std::uint64_t rss = (start_mib * (60 - second) + end_mib * second) * kMiB / 60;
    made.timeline.push_back(
        {.t_s = static_cast<double>(second), .rss = rss, .anon = rss, .file = 0, .shmem = 0, .swap = 0});
  }
  return made;
}

ProcessReport worker(std::uint32_t pid, std::uint32_t slot, std::uint32_t generation, std::uint64_t end_mib) {
  ProcessReport made = process(pid, 4200, Role::kDataLoaderWorker, 640, end_mib);
  made.worker = Worker{slot, generation, "train.py:88 <module>"};
  return made;
}

Report frame() {
  Report report;
  report.tool_version = "0.1.0";
  report.capture.started = "2026-03-01T12:00:00Z";
  report.capture.duration_s = 60;
  report.capture.targets = {4200};
  report.capture.sample_bytes = kMiB;
  for (const char* name : {"pages", "mappings", "swap"}) {
    report.capture.layers[name] = {LayerState::kOn, ""};
  }
  for (const char* name : {"python", "native", "arrays", "cuda"}) {
    report.capture.layers[name] = {LayerState::kOff, ""};
  }
  report.capture.cost = {.bpf_ns = 184'000'000,
                         .bpf_runs = 1'204'331,
                         .target_share_percent = 0.31,
                         .tracer_cpu_s = 0.9,
                         .tracer_rss_bytes = 14 * kMiB,
                         .first_data_s = 0.28};
  report.machine = {.kernel = "6.1.0-18-amd64",
                    .architecture = "x86_64",
                    .cpus = 16,
                    .memory_bytes = 64 * 1024 * kMiB,
                    .swap_bytes = 0,
                    .page_bytes = 4096,
                    .thp = "madvise"};
  return report;
}

class Anything {
 public:
  explicit Anything(std::mt19937_64& random) : random_(random) {}

  template <typename T>
  T number() {
    switch (random_() % 4) {
      case 0:
        return std::numeric_limits<T>::max();
      case 1:
        return std::numeric_limits<T>::min();
      default:
        return static_cast<T>(random_() >> (random_() % 64));
    }
  }
  double real() {
    return static_cast<double>(number<std::int64_t>()) / static_cast<double>(1 + random_() % 1000);
  }
  bool coin() { return random_() % 2 == 0; }
  std::size_t few() { return random_() % 4; }
  std::string text() {
    static const std::vector<std::string> kPieces = {
        "a",          "\"",   "\\", "\n", "\x1b[31m", std::string(1, '\0'), "ä", "→", "\u202e",
        "\U0001F40D", "\x7f", "/",  "{",  "]"};
    std::string made;
    for (std::size_t i = few() * few(); i > 0; --i) {
      made += kPieces[random_() % kPieces.size()];
    }
    return made;
  }
  MemoryCounts counts() {
    const auto n = [this] { return number<std::uint64_t>(); };
    return {.rss = n(), .anon = n(), .file = n(), .shmem = n(), .swap = n(), .pss = n(), .uss = n()};
  }
  ProcessReport process();

 private:
  std::mt19937_64& random_;
};

ProcessReport Anything::process() {
  const auto n = [this] { return number<std::uint64_t>(); };
  const auto s = [this] { return number<std::int64_t>(); };
  ProcessReport made;
  made.pid = number<std::uint32_t>();
  made.ppid = number<std::uint32_t>();
  made.start_time_ns = n();
  made.comm = text();
  made.cmdline = {text(), text()};
  made.role = static_cast<Role>(random_() % 6);
  made.started_s = real();
  if (coin()) {
    made.worker = Worker{number<std::uint32_t>(), number<std::uint32_t>(), text()};
  }
  if (coin()) {
    made.ended_s = real();
    made.exit = Exit{number<std::int32_t>(), number<std::int32_t>(), coin()};
  }
  made.start = counts();
  made.end = counts();
  made.peak_rss = n();
  for (std::size_t i = few(); i > 0; --i) {
    made.sources.push_back({static_cast<Source>(random_() % kSourceCount), s(), s(), s(), s()});
    made.timeline.push_back({real(), n(), n(), n(), n(), n()});
  }
  made.faults = {n(), n(), n(), n(), n(), n(), n(), n(), n(), n()};
  if (coin()) {
    made.heap = HeapCensus{n(), n(), number<std::uint32_t>()};
  }
  made.reconciliation = {s(), s(), s(), s(), s()};
  return made;
}

}  // namespace

Report nothing_grew() {
  Report report = frame();
  report.processes.push_back(process(4200, 1, Role::kMain, 1200, 1200));
  return report;
}

Report leaking_worker() {
  Report report = frame();
  report.capture.layers["python"] = {LayerState::kOff, "arrives with a later version"};
  report.capture.blind_spots = {"Memory that the GPU driver pins is not counted in any process's RSS."};
  ProcessReport main = process(4200, 1, Role::kMain, 1300, 1330);
  main.sources = {{Source::kMallocHeap, 700 * kSignedMiB, 731 * kSignedMiB, 31 * kSignedMiB, 0},
                  {Source::kPythonArena, 90 * kSignedMiB, 89 * kSignedMiB, -1 * kSignedMiB, 0},
                  {Source::kLibrary, 80 * kSignedMiB, 80 * kSignedMiB, 0, 0}};
  main.faults = {
      .first_touch = 812'400, .file = 12, .swap_in = 0, .major = 3, .minor = 813'000, .kernel = 4'100};
  report.processes.push_back(std::move(main));
  for (std::uint32_t slot = 0; slot < 4; ++slot) {
    report.processes.push_back(worker(4310 + slot, slot, slot == 3 ? 1 : 0, slot == 2 ? 1152 : 640));
  }
  ProcessReport& leaking = report.processes[3];
  leaking.sources = {
      {Source::kMallocMmap, 100 * kSignedMiB, 580 * kSignedMiB, 480 * kSignedMiB, 0},
      {Source::kPythonArena, 200 * kSignedMiB, 232 * kSignedMiB, 32 * kSignedMiB, 96 * kSignedMiB}};
  leaking.faults = {.first_touch = 131'072, .cow = 24'576, .minor = 155'700};
  leaking.heap = HeapCensus{560 * kMiB, 12 * kMiB, 8};
  ProcessReport& killed = report.processes[4];
  killed.ended_s = 41.5;
  killed.started_s = 20;
  killed.timeline.erase(killed.timeline.begin(), killed.timeline.begin() + 4);
  killed.timeline.resize(5);
  killed.exit = Exit{0, 9, true};
  report.processes[2].end.swap = 48 * kMiB;
  report.processes[2].end.rss -= 48 * kMiB;
  report.processes[2].end.anon -= 48 * kMiB;
  for (std::uint32_t i = 0; i < 12; ++i) {
    ProcessReport sub = process(5000 + i, 4200, Role::kSubprocess, 96, 96);
    sub.comm = i % 3 == 0 ? "git" : "sh";
    sub.started_s = i;
    sub.ended_s = i + 0.4;
    sub.exit = Exit{};
    report.processes.push_back(std::move(sub));
  }
  report.growth = {638 * kSignedMiB, 630 * kSignedMiB, 8 * kSignedMiB};
  return report;
}

Report of_processes(std::size_t count) {
  Report report = frame();
  for (std::uint32_t i = 0; i < count; ++i) {
    report.processes.push_back(
        process(4200 + i, 4199 + i, i == 0 ? Role::kMain : Role::kPoolWorker, 200, 200 + i));
  }
  return report;
}

Report random_report(std::mt19937_64& random) {
  Anything any(random);
  Report report;
  report.tool_version = any.text();
  Capture& capture = report.capture;
  capture.started = any.text();
  capture.duration_s = any.real();
  capture.sample_bytes = any.number<std::uint64_t>();
  for (std::size_t i = any.few(); i > 0; --i) {
    capture.targets.push_back(any.number<std::uint32_t>());
    capture.layers[any.text()] = {static_cast<LayerState>(random() % 3), any.text()};
    capture.blind_spots.push_back(any.text());
    report.processes.push_back(any.process());
  }
  capture.lost = {any.number<std::uint64_t>(), any.number<std::uint64_t>()};
  capture.cost = {any.number<std::uint64_t>(),
                  any.number<std::uint64_t>(),
                  any.real(),
                  any.real(),
                  any.number<std::uint64_t>(),
                  any.real()};
  report.machine = {any.text(),
                    any.text(),
                    any.number<std::uint32_t>(),
                    any.number<std::uint64_t>(),
                    any.number<std::uint64_t>(),
                    any.number<std::uint64_t>(),
                    any.text()};
  report.growth = {any.number<std::int64_t>(), any.number<std::int64_t>(), any.number<std::int64_t>()};
  return report;
}

}  // namespace torchleak::samples
