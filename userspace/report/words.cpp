// SPDX-License-Identifier: Apache-2.0
#include "words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "torchleak/base/text.hpp"

namespace torchleak {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();

std::int64_t clamped(std::uint64_t value) {
  return value > static_cast<std::uint64_t>(kMost) ? kMost : static_cast<std::int64_t>(value);
}

std::string signal_text(int signal) {
  const char* name = sigabbrev_np(signal);
  return name != nullptr ? fmt::format("SIG{}", name) : fmt::format("signal {}", signal);
}

}  // namespace

std::string_view plain_source(Source source) {
  switch (source) {
    case Source::kPythonArena:
      return "Python object arenas";
    case Source::kMallocHeap:
      return "glibc heap (brk)";
    case Source::kMallocArena:
      return "glibc thread arenas";
    case Source::kMallocMmap:
      return "large malloc blocks";
    case Source::kTensor:
      return "tensors";
    case Source::kNumpy:
      return "numpy arrays";
    case Source::kThreadStack:
      return "thread stacks";
    case Source::kSharedMemory:
      return "shared memory";
    case Source::kPinnedHost:
      return "pinned host memory";
    case Source::kCudaDevice:
      return "CUDA device memory";
    case Source::kCudaManaged:
      return "CUDA managed memory";
    case Source::kFileMapping:
      return "mapped files";
    case Source::kLibrary:
      return "libraries";
    case Source::kJitCode:
      return "generated code";
    case Source::kOtherAllocator:
      return "another allocator";
    case Source::kAnonOther:
      return "other anonymous memory";
    case Source::kSwap:
      return "swapped out";
  }
  return "unknown memory";
}

std::string plain_name(const ProcessReport& process) {
  const auto slot = [&](std::string_view what) {
    if (!process.worker) {
      return std::string(what);
    }
    const std::string number = fmt::format("{} #{}", what, process.worker->slot);
    return process.worker->generation > 0 ? fmt::format("{} (gen {})", number, process.worker->generation)
                                          : number;
  };
  switch (process.role) {
    case Role::kMain:
      return "main";
    case Role::kDataLoaderWorker:
      return slot("worker");
    case Role::kPinMemoryThread:
      return "pin-memory thread";
    case Role::kPoolWorker:
      return slot("pool worker");
    case Role::kSubprocess:
      return "subprocess " + printable(process.comm);
    case Role::kHelper:
      return "helper " + printable(process.comm);
  }
  return printable(process.comm);
}

bool oom_killed(const ProcessReport& process) {
  return process.exit && process.exit->oom_killed;
}

std::string plain_state(const ProcessReport& process) {
  if (!process.ended_s && !process.exit) {
    return process.started_s > 0 ? "new" : "";
  }
  if (oom_killed(process)) {
    return "OOM-killed";
  }
  if (process.exit && process.exit->signal != 0) {
    return signal_text(process.exit->signal);
  }
  return process.exit && process.exit->code != 0 ? fmt::format("exit {}", process.exit->code) : "ended";
}

double seconds_seen(const ProcessReport& process, const Capture& capture) {
  return std::max(0.0, process.ended_s.value_or(capture.duration_s) - process.started_s);
}

std::string growth_and_rate(std::int64_t bytes, double seconds) {
  std::string text = fmt::format("{} in {}", format_growth(bytes), format_seconds(seconds));
  if (seconds < 1 || magnitude(bytes) < static_cast<std::uint64_t>(kNoiseBytes)) {
    return text;  // a rate would mean nothing
  }
  const double a_minute = std::clamp(static_cast<double>(bytes) / seconds * 60, -0x1p62, 0x1p62);
  return fmt::format("{} ({}/min)", text, format_bytes(static_cast<std::int64_t>(a_minute)));
}

std::string format_seconds(double seconds) {
  if (!(std::abs(seconds) < 1e12)) {
    return "an unknown time";
  }
  if (seconds < 119.5) {
    const bool whole = std::abs(seconds - std::round(seconds)) < 0.05 && std::abs(seconds) >= 1;
    return whole           ? fmt::format("{:.0f} s", seconds)
           : seconds < 0.1 ? fmt::format("{:.2f} s", seconds)
                           : fmt::format("{:.1f} s", seconds);
  }
  const auto whole = static_cast<std::int64_t>(std::round(seconds));
  if (whole < 3600) {
    return whole % 60 == 0 ? fmt::format("{} min", whole / 60)
                           : fmt::format("{} min {} s", whole / 60, whole % 60);
  }
  return fmt::format("{} h {} min", whole / 3600, whole / 60 % 60);
}

std::string format_count(std::uint64_t count) {
  std::string digits = std::to_string(count);
  for (std::size_t at = digits.size(); at > 3; at -= 3) {
    digits.insert(at - 3, ",");
  }
  return digits;
}

std::string counted(std::uint64_t count, std::string_view thing) {
  return fmt::format("{} {}{}", format_count(count), thing,
                     count == 1                ? ""
                     : thing.ends_with("cess") ? "es"
                                               : "s");
}

std::string format_size(std::uint64_t bytes) {
  return format_bytes(clamped(bytes));
}

std::string joined(const std::vector<std::string>& parts, std::string_view separator) {
  return fmt::format("{}", fmt::join(parts, separator));
}

std::int64_t plus(std::int64_t a, std::int64_t b) {
  std::int64_t sum = 0;
  return __builtin_add_overflow(a, b, &sum) ? (a < 0 ? kLeast : kMost) : sum;
}

std::int64_t minus(std::int64_t a, std::int64_t b) {
  std::int64_t difference = 0;
  return __builtin_sub_overflow(a, b, &difference) ? (a < 0 ? kLeast : kMost) : difference;
}

std::int64_t change(std::uint64_t from, std::uint64_t to) {
  return to >= from ? clamped(to - from) : -clamped(from - to);
}

std::uint64_t magnitude(std::int64_t value) {
  return value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
}

std::string sparkline(const ProcessReport& process, double duration_s, std::size_t columns) {
  static constexpr std::array<const char*, 8> kBlocks = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  if (process.timeline.size() < 2 || !(duration_s > 0) || columns == 0) {
    return "";
  }
  const auto column_of = [&](double seconds) {
    const double share = seconds > 0 ? std::min(seconds / duration_s, 1.0) : 0.0;
    return std::min(columns - 1, static_cast<std::size_t>(share * static_cast<double>(columns)));
  };
  std::vector<double> heights(columns, -1);
  double low = std::numeric_limits<double>::max();
  double high = 0;
  for (const TimelinePoint& point : process.timeline) {
    const double bytes = static_cast<double>(point.rss) + static_cast<double>(point.swap);
    heights[column_of(point.t_s)] = bytes;
    low = std::min(low, bytes);
    high = std::max(high, bytes);
  }
  // Noise must look flat: the full height stands for a twentieth of the memory, at least.
  const double range = std::max({high - low, high / 20, 4.0 * kNoiseBytes});
  const std::size_t first = column_of(process.timeline.front().t_s);
  const std::size_t last = column_of(process.timeline.back().t_s);
  std::string line;
  double height = low;
  for (std::size_t i = 0; i < columns; ++i) {
    if (i < first || i > last) {
      line += i < first ? " " : "";
      continue;
    }
    height = heights[i] < 0 ? height : heights[i];  // between two points the earlier one holds
    const double level = std::clamp((height - low) / range * 7.0, 0.0, 7.0);
    line += kBlocks[static_cast<std::size_t>(std::lround(level))];
  }
  return line;
}

}  // namespace torchleak
