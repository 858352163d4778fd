// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>

namespace torchleak::app {

// What a person sees on stderr while the capture runs: one line that renews itself on a terminal, a line an
// interval elsewhere.
class Progress {
 public:
  Progress(std::ostream& out, bool quiet, bool terminal, std::optional<double> interval_s);

  void say(const std::string& line);
  void update(double elapsed_s, std::optional<double> duration_s, std::size_t processes,
              std::int64_t growth_bytes);
  void finish();

 private:
  std::ostream& out_;
  bool quiet_;
  bool terminal_;
  double interval_s_;
  double next_s_;
  bool line_open_ = false;
};

}  // namespace torchleak::app
