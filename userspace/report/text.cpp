// SPDX-License-Identifier: Apache-2.0
#include "torchleak/report/text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "headline.hpp"
#include "layout.hpp"
#include "process_text.hpp"
#include "torchleak/base/text.hpp"
#include "words.hpp"

namespace torchleak {
namespace {

constexpr std::size_t kNarrowest = 20;

std::string capture_text(const Report& report) {
  std::vector<std::string> pids;
  pids.reserve(report.capture.targets.size());
  for (const std::uint32_t pid : report.capture.targets) {
    pids.push_back(std::to_string(pid));
  }
  return fmt::format("{} from {}, {} {}, torchleak-trace {}", format_seconds(report.capture.duration_s),
                     printable(report.capture.started), pids.size() == 1 ? "target" : "targets",
                     pids.empty() ? "none" : joined(pids), printable(report.tool_version));
}

std::string machine_text(const Machine& machine) {
  std::vector<std::string> parts;
  parts.push_back(fmt::format("Linux {} {}", printable(machine.kernel), printable(machine.architecture)));
  parts.push_back(counted(machine.cpus, "CPU"));
  parts.push_back(fmt::format("{} of memory", format_size(machine.memory_bytes)));
  parts.push_back(machine.swap_bytes == 0 ? "no swap"
                                          : fmt::format("{} of swap", format_size(machine.swap_bytes)));
  parts.push_back(fmt::format("pages of {}", format_size(machine.page_bytes)));
  if (!machine.thp.empty()) {
    parts.push_back(fmt::format("huge pages: {}", printable(machine.thp)));
  }
  return joined(parts);
}

// "mappings, pages on; cuda off (no CUDA library is mapped)": layers of one state and one reason stand
// together.
std::string layers_text(const Capture& capture) {
  std::map<std::pair<LayerState, std::string>, std::vector<std::string>> alike;
  for (const auto& [name, status] : capture.layers) {
    alike[{status.state, status.why}].push_back(printable(name));
  }
  std::vector<std::string> parts;
  for (const auto& [state_and_why, names] : alike) {
    const auto& [state, why] = state_and_why;
    parts.push_back(fmt::format("{} {}{}", joined(names), layer_state_name(state),
                                why.empty() ? "" : fmt::format(" ({})", printable(why))));
  }
  return parts.empty() ? "none named" : joined(parts, "; ");
}

std::string lost_text(const Lost& lost) {
  if (lost == Lost{}) {
    return "nothing";
  }
  return fmt::format("{}, {}", counted(lost.events, "event"), counted(lost.samples, "sample"));
}

std::string cost_text(const Cost& cost) {
  return fmt::format(
      "{:.2f} % of the target (BPF ran for {:.1f} ms in {}); the tracer used {} of CPU and {} of memory; "
      "first figures "
      "after {}",
      cost.target_share_percent, static_cast<double>(cost.bpf_ns) / 1e6, counted(cost.bpf_runs, "run"),
      format_seconds(cost.tracer_cpu_s), format_size(cost.tracer_rss_bytes),
      format_seconds(cost.first_data_s));
}

void write_footer(std::ostream& out, const Report& report, const TextOptions& options) {
  const auto line = [&](std::string_view label, const std::string& text, Ink ink = Ink::kPlain) {
    write_paragraph(out, fmt::format("{:<9} ", label), text, options.width, ink, options.color);
  };
  const bool lost = report.capture.lost != Lost{};
  out << '\n';
  line("capture", capture_text(report));
  line("machine", machine_text(report.machine));
  line("layers", layers_text(report.capture));
  line("lost", lost_text(report.capture.lost), lost ? Ink::kYellow : Ink::kPlain);
  line("cost", cost_text(report.capture.cost));
  std::string_view label = "blind to";
  for (const std::string& blind_spot : report.capture.blind_spots) {
    line(label, printable(blind_spot));
    label = "";
  }
}

}  // namespace

void write_text(std::ostream& out, const Report& report, const TextOptions& options) {
  TextOptions fitted = options;
  fitted.width = std::max(options.width, kNarrowest);
  for (const Sentence& sentence : headline(report)) {
    write_paragraph(out, "", sentence.text, fitted.width, sentence.ink, fitted.color);
  }
  write_process_table(out, report, fitted);
  write_process_details(out, report, fitted);
  write_footer(out, report, fitted);
}

}  // namespace torchleak
