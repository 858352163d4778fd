// SPDX-License-Identifier: Apache-2.0
#include "torchleak/bpf/fault_events.hpp"

#include <bpf/libbpf.h>
#include <fmt/format.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace torchleak::bpf {

Result<FaultEvents> FaultEvents::open(int program_fd, std::uint64_t faults_a_sample) {
  FaultEvents events;
  perf_event_attr attributes{};
  attributes.size = sizeof(attributes);
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_PAGE_FAULTS;
  // Not PERF_SAMPLE_PERIOD: with a fixed period it makes the kernel sample every single fault.
  attributes.sample_type = PERF_SAMPLE_ADDR;
  attributes.sample_period = faults_a_sample;
  attributes.disabled = 1;

  const int cpus = libbpf_num_possible_cpus();
  for (int cpu = 0; cpu < cpus; ++cpu) {
    UniqueFd event(
        static_cast<int>(::syscall(SYS_perf_event_open, &attributes, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC)));
    if (!event) {
      if (errno == ENODEV || errno == ENXIO) {
        continue;  // offline
      }
      return fail(fmt::format("perf event page-faults on CPU {}: {}", cpu, std::strerror(errno)));
    }
    if (::ioctl(event.get(), PERF_EVENT_IOC_SET_BPF, program_fd) != 0) {
      return fail(fmt::format("BPF program on the event page-faults: {}", std::strerror(errno)));
    }
    events.events_.push_back(std::move(event));
  }
  if (events.events_.empty()) {
    return fail("perf event page-faults: no CPU is online");
  }
  return events;
}

void FaultEvents::enable(bool on) const {
  for (const UniqueFd& event : events_) {
    ::ioctl(event.get(), on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
  }
}

}  // namespace torchleak::bpf
