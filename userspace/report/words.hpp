// SPDX-License-Identifier: Apache-2.0
// The report's facts in plain words. Whatever came from the target leaves here printable.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "torchleak/core/report.hpp"

namespace torchleak {

// Growth below this is noise: the kernel's RSS counters lag by some pages a thread.
inline constexpr std::int64_t kNoiseBytes = 256 * 1024;

std::string_view plain_source(Source source);          // "glibc heap (brk)"
std::string plain_name(const ProcessReport& process);  // "worker #2 (gen 3)"
// "OOM-killed", "SIGTERM", "exit 1", "ended", "new" where it began during the capture; empty where it just
// runs.
std::string plain_state(const ProcessReport& process);
bool oom_killed(const ProcessReport& process);
// Seconds of the capture in which the process lived.
double seconds_seen(const ProcessReport& process, const Capture& capture);
// "+512 MiB in 60 s (512 MiB/min)".
std::string growth_and_rate(std::int64_t bytes, double seconds);

std::string format_seconds(double seconds);                        // "0.05 s", "12.5 s", "3 min 5 s"
std::string format_count(std::uint64_t count);                     // "1,234,567"
std::string counted(std::uint64_t count, std::string_view thing);  // "1 event", "1,200 events"
// As format_bytes, of counters that a hostile file may hold anything in.
std::string format_size(std::uint64_t bytes);
std::string joined(const std::vector<std::string>& parts, std::string_view separator = ", ");

// Arithmetic that stops at the ends of the range: a saved report may hold any number.
std::int64_t plus(std::int64_t a, std::int64_t b);
std::int64_t minus(std::int64_t a, std::int64_t b);
std::int64_t change(std::uint64_t from, std::uint64_t to);
std::uint64_t magnitude(std::int64_t value);

// RSS and swap as blocks over the whole capture; blank where the process did not live.
std::string sparkline(const ProcessReport& process, double duration_s, std::size_t columns);

}  // namespace torchleak
