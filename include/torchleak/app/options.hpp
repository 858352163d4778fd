// SPDX-License-Identifier: Apache-2.0
// The command line, as the contract has it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "torchleak/base/result.hpp"

namespace torchleak::app {

enum class Format : std::uint8_t { kText, kJson };

struct OutputOptions {
  std::vector<std::string> files;  // the ending picks the format
  std::optional<Format> format;    // for stdout; without it and with files, stdout stays empty
  std::size_t top = 10;
  bool no_color = false;
};

struct TraceOptions {
  std::vector<std::uint32_t> pids;
  std::vector<std::string> command;  // either pids or a command
  std::optional<double> duration_s;
  std::optional<double> interval_s;
  bool children = true;
  std::uint64_t sample_bytes = 0;  // 0: adapted to the rate of faults
  double max_overhead_percent = 1;
  bool quiet = false;
  bool verbose = false;
  int ready_fd = -1;  // written to once everything is attached, for scripts
  OutputOptions output;
};

struct RenderOptions {
  std::string file;
  OutputOptions output;
};

// The command line has been answered already (--help, --version) or was wrong; leave with this status.
struct Answered {
  int status = 0;
  std::string out;  // for stdout
  std::string err;  // for stderr
};

std::variant<TraceOptions, RenderOptions, Answered> parse_command_line(int argc, const char* const* argv);

}  // namespace torchleak::app
