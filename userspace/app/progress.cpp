// SPDX-License-Identifier: Apache-2.0
#include "torchleak/app/progress.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "torchleak/base/text.hpp"

namespace torchleak::app {

Progress::Progress(std::ostream& out, bool quiet, bool terminal, std::optional<double> interval_s)
    : out_(out),
      quiet_(quiet),
      terminal_(terminal),
      interval_s_(interval_s.value_or(terminal ? 1 : 5)),
      next_s_(terminal ? 0 : interval_s_) {}

void Progress::say(const std::string& line) {
  if (quiet_) {
    return;
  }
  finish();
  out_ << line << '\n' << std::flush;
}

void Progress::update(double elapsed_s, std::optional<double> duration_s, std::size_t processes,
                      std::int64_t growth_bytes) {
  if (quiet_ || elapsed_s < next_s_) {
    return;
  }
  next_s_ = std::max(next_s_ + interval_s_, elapsed_s);  // after a pause one line, not all that were missed
  const std::string of = duration_s ? fmt::format(" of {:g} s", *duration_s) : " s, Ctrl-C for the report";
  const std::string line = fmt::format("{:.0f}{} · {} process{} · {}", elapsed_s, of, processes,
                                       processes == 1 ? "" : "es", format_growth(growth_bytes));
  if (terminal_) {
    out_ << "\r\x1b[K" << line << std::flush;
    line_open_ = true;
  } else {
    out_ << line << '\n' << std::flush;
  }
}

void Progress::finish() {
  if (line_open_) {
    out_ << "\r\x1b[K" << std::flush;
    line_open_ = false;
  }
}

}  // namespace torchleak::app
