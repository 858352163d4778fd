// SPDX-License-Identifier: Apache-2.0
#include "torchleak/bpf/tracer.hpp"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include <cerrno>
#include <cstring>

#include "tl_programs.skel.h"
#include "torchleak/base/unique_fd.hpp"
#include "torchleak/bpf/fault_events.hpp"

namespace torchleak::bpf {
namespace {

struct SkeletonDeleter {
  void operator()(tl_programs* skeleton) const { tl_programs__destroy(skeleton); }
};
struct LinkDeleter {
  void operator()(bpf_link* link) const { bpf_link__destroy(link); }
};
struct RingDeleter {
  void operator()(ring_buffer* ring) const { ring_buffer__free(ring); }
};
using Link = std::unique_ptr<bpf_link, LinkDeleter>;

// libbpf explains itself through one process-wide callback; the last warning is what a person needs to see.
std::string& last_warning() {
  static thread_local std::string text;
  return text;
}

int remember_warning(libbpf_print_level level, const char* format, va_list arguments) {
  if (level != LIBBPF_WARN) {
    return 0;
  }
  std::array<char, 512> line{};
  const int length = std::vsnprintf(line.data(), line.size(), format, arguments);
  std::string_view text(line.data(),
                        std::min(line.size() - 1, static_cast<std::size_t>(std::max(length, 0))));
  while (text.ends_with('\n')) {
    text.remove_suffix(1);
  }
  if (!text.empty()) {
    last_warning() = text;
  }
  return 0;
}

std::string reason(int error) {
  std::string text = std::strerror(error < 0 ? -error : error);
  return last_warning().empty() ? text : fmt::format("{} ({})", text, last_warning());
}

// Before 5.11 BPF memory counts against RLIMIT_MEMLOCK; from then on the limit does not matter, nor does a
// refusal here.
void raise_memlock_limit() {
  const rlimit unlimited{RLIM_INFINITY, RLIM_INFINITY};
  ::setrlimit(RLIMIT_MEMLOCK, &unlimited);
}

int hand_over(void* context, void* data, std::size_t size) {
  const auto& handler = *static_cast<const Tracer::RecordHandler*>(context);
  handler({static_cast<const std::byte*>(data), size});
  return 0;
}

}  // namespace

struct Tracer::State {
  std::unique_ptr<tl_programs, SkeletonDeleter> skeleton;
  std::unique_ptr<ring_buffer, RingDeleter> ring;
  RecordHandler handler;  // what the ring calls; set for the time of a drain
  std::vector<Link> links;
  std::optional<FaultEvents> faults;
  std::vector<Link> swap_links;
  std::vector<BlindSpot> blind_spots;
  std::uint64_t faults_a_sample = 0;
  UniqueFd stats;

  // The new events take over from the old in microseconds. Closing takes milliseconds, thousands of faults in
  // a storm, and a change of period in place (PERF_EVENT_IOC_PERIOD) gives the next samples the weight of the
  // old one.
  Result<void> open_faults(std::uint64_t period) {
    auto opened = FaultEvents::open(bpf_program__fd(skeleton->progs.tl_on_page_fault), period);
    if (!opened) {
      return std::unexpected(opened.error());
    }
    if (faults) {
      faults->enable(false);
    }
    opened->enable(true);
    faults = std::move(*opened);
    return {};
  }

  bool attach(Layer layer, bpf_program* program, std::vector<Link>& to) {
    last_warning().clear();
    Link link(bpf_program__attach(program));
    if (!link) {
      blind_spots.push_back({layer, bpf_program__name(program), reason(errno)});
      return false;
    }
    to.push_back(std::move(link));
    return true;
  }
};

Tracer::Tracer(std::unique_ptr<State> state) : state_(std::move(state)) {}
Tracer::Tracer(Tracer&&) noexcept = default;
Tracer& Tracer::operator=(Tracer&&) noexcept = default;
Tracer::~Tracer() = default;

Result<Tracer> Tracer::create(const TracerOptions& options) {
  libbpf_set_print(remember_warning);
  raise_memlock_limit();
  auto state = std::make_unique<State>();
  last_warning().clear();
  state->skeleton.reset(tl_programs__open());
  if (!state->skeleton) {
    return fail(fmt::format("the BPF programs cannot be opened: {}", reason(errno)));
  }
  if (state->skeleton->rodata->tl_abi_version != TL_ABI_VERSION) {
    return fail("the BPF programs and this program were built from different versions; build again");
  }
  state->skeleton->rodata->tl_follow_children = options.follow_children ? 1 : 0;
  if (const int error = tl_programs__load(state->skeleton.get()); error != 0) {
    return fail(fmt::format("the kernel refused the BPF programs: {}", reason(error)));
  }
  auto& programs = state->skeleton->progs;
  for (bpf_program* program : {programs.tl_on_fork, programs.tl_on_exec, programs.tl_on_exit,
                               programs.tl_on_rename, programs.tl_on_oom_kill}) {
    state->attach(Layer::kProcesses, program, state->links);
  }
  state->attach(Layer::kPages, programs.tl_on_collapse, state->links);
  for (bpf_program* program : {programs.tl_on_sys_enter, programs.tl_on_sys_exit}) {
    state->attach(Layer::kMappings, program, state->links);
  }
  if (const auto tried = state->open_faults(1); !tried) {
    state->blind_spots.push_back({Layer::kPages, "tl_on_page_fault", tried.error().message});
  }
  state->faults.reset();
  state->ring.reset(
      ring_buffer__new(bpf_map__fd(state->skeleton->maps.tl_events), hand_over, &state->handler, nullptr));
  if (!state->ring) {
    return fail(fmt::format("the ring buffer cannot be mapped: {}", reason(errno)));
  }
  return Tracer(std::move(state));
}

Result<void> Tracer::trace(std::uint32_t tgid, std::uint64_t swap_entries) {
  tl_process counters{};
  counters.last_swap_entries = swap_entries;
  if (bpf_map_update_elem(bpf_map__fd(state_->skeleton->maps.tl_processes), &tgid, &counters, BPF_NOEXIST) !=
          0 &&
      errno != EEXIST) {
    return fail(fmt::format("process {} cannot be traced: {}", tgid, std::strerror(errno)));
  }
  return {};
}

std::optional<tl_process> Tracer::counters(std::uint32_t tgid) const {
  tl_process counters{};
  if (bpf_map_lookup_elem(bpf_map__fd(state_->skeleton->maps.tl_processes), &tgid, &counters) != 0) {
    return std::nullopt;
  }
  return counters;
}

std::size_t Tracer::drain(const RecordHandler& handler) {
  state_->handler = handler;
  const int records = ring_buffer__consume(state_->ring.get());
  return records > 0 ? static_cast<std::size_t>(records) : 0;
}

Result<void> Tracer::attach_swap() {
  auto& programs = state_->skeleton->progs;
  // The order matters: see bpf/swap.bpf.c.
  if (state_->attach(Layer::kSwap, programs.tl_on_rss_owner, state_->swap_links) &&
      state_->attach(Layer::kSwap, programs.tl_on_rss_size, state_->swap_links)) {
    return {};
  }
  state_->swap_links.clear();
  return fail(state_->blind_spots.back().why);
}

bool Tracer::swap_attached() const {
  return !state_->swap_links.empty();
}

void Tracer::set_swap_entries(std::uint32_t tgid, std::uint64_t entries) {
  if (auto known = counters(tgid)) {
    known->last_swap_entries = entries;
    bpf_map_update_elem(bpf_map__fd(state_->skeleton->maps.tl_processes), &tgid, &*known, BPF_EXIST);
  }
}

void Tracer::sample_faults(std::uint64_t faults_a_sample) {
  if (faults_a_sample == state_->faults_a_sample) {
    return;
  }
  state_->faults_a_sample = faults_a_sample;
  if (faults_a_sample == 0) {
    state_->faults.reset();
    return;
  }
  if (const auto opened = state_->open_faults(faults_a_sample); !opened) {
    state_->blind_spots.push_back({Layer::kPages, "tl_on_page_fault", opened.error().message});
  }
}

const std::vector<BlindSpot>& Tracer::blind_spots() const {
  return state_->blind_spots;
}

std::array<std::uint64_t, TL_LOSS_COUNT> Tracer::losses() const {
  std::array<std::uint64_t, TL_LOSS_COUNT> sums{};
  std::vector<std::uint64_t> per_cpu(static_cast<std::size_t>(libbpf_num_possible_cpus()));
  for (std::uint32_t reason_index = 0; reason_index < TL_LOSS_COUNT; ++reason_index) {
    if (bpf_map_lookup_elem(bpf_map__fd(state_->skeleton->maps.tl_losses), &reason_index, per_cpu.data()) ==
        0) {
      for (const std::uint64_t count : per_cpu) {
        sums[reason_index] += count;
      }
    }
  }
  return sums;
}

ProgramCost Tracer::cost() const {
  ProgramCost sum;
  bpf_program* program = nullptr;
  bpf_object__for_each_program(program, state_->skeleton->obj) {
    bpf_prog_info info{};
    std::uint32_t size = sizeof(info);
    if (bpf_obj_get_info_by_fd(bpf_program__fd(program), &info, &size) == 0) {
      sum.run_ns += info.run_time_ns;
      sum.runs += info.run_cnt;
      const auto& programs = state_->skeleton->progs;
      if (program == programs.tl_on_sys_enter || program == programs.tl_on_sys_exit) {
        sum.machine_wide_ns += info.run_time_ns;
      }
    }
  }
  return sum;
}

void Tracer::count_cost(bool on) {
  state_->stats = on ? UniqueFd(bpf_enable_stats(BPF_STATS_RUN_TIME)) : UniqueFd();
}

}  // namespace torchleak::bpf
