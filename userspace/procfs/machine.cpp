// SPDX-License-Identifier: Apache-2.0
#include "torchleak/procfs/machine.hpp"

#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <sstream>
#include <string_view>

#include "file.hpp"
#include "torchleak/procfs/process.hpp"

namespace torchleak::procfs {
namespace {

// The choice in brackets: "madvise" of "always [madvise] never".
std::string chosen(std::string_view choices) {
  const auto open = choices.find('[');
  const auto close = choices.find(']', std::min(open, choices.size()));
  return close == std::string_view::npos ? "" : std::string(choices.substr(open + 1, close - open - 1));
}

}  // namespace

Machine read_machine() {
  Machine machine;
  utsname names{};
  if (::uname(&names) == 0) {
    machine.kernel = names.release;
    machine.architecture = names.machine;
  }
  struct sysinfo memory {};
  if (::sysinfo(&memory) == 0) {
    machine.memory_bytes = std::uint64_t{memory.totalram} * memory.mem_unit;
    machine.swap_bytes = std::uint64_t{memory.totalswap} * memory.mem_unit;
  }
  machine.cpus = static_cast<std::uint32_t>(std::max(::sysconf(_SC_NPROCESSORS_ONLN), 0L));
  machine.page_bytes = static_cast<std::uint64_t>(std::max(::sysconf(_SC_PAGESIZE), 0L));
  if (const auto thp = read_file("/sys/kernel/mm/transparent_hugepage/enabled")) {
    machine.thp = chosen(*thp);
  }
  return machine;
}

std::uint64_t busy_cpu_ns() {
  const auto text = read_file("/proc/stat");
  if (!text) {
    return 0;
  }
  // cpu user nice system idle iowait irq softirq …: the fourth and fifth are not busy.
  std::istringstream line(text->substr(0, text->find('\n')));
  std::string name;
  std::array<std::uint64_t, 7> ticks{};
  line >> name;
  for (std::uint64_t& tick : ticks) {
    line >> tick;
  }
  return ticks_to_ns(ticks[0] + ticks[1] + ticks[2] + ticks[5] + ticks[6]);
}

std::uint64_t machine_faults() {
  const auto text = read_file("/proc/vmstat");
  constexpr std::string_view kName = "\npgfault ";
  const std::size_t at = text ? text->find(kName) : std::string::npos;
  std::uint64_t faults = 0;
  if (at != std::string::npos) {
    std::from_chars(text->data() + at + kName.size(), text->data() + text->size(), faults);
  }
  return faults;
}

}  // namespace torchleak::procfs
