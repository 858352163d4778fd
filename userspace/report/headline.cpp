// SPDX-License-Identifier: Apache-2.0
#include "headline.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "torchleak/base/text.hpp"
#include "words.hpp"

namespace torchleak {
namespace {

constexpr std::size_t kKillsNamed = 3;

std::string name_and_pid(const ProcessReport& process) {
  std::string name = plain_name(process);
  if (process.worker && name.ends_with(')')) {
    name.pop_back();
    return fmt::format("{}, pid {})", name, process.pid);
  }
  return fmt::format("{} (pid {})", name, process.pid);
}

bool grew(const ProcessReport& process) {
  return process.growth_bytes() >= kNoiseBytes;
}
bool ended(const ProcessReport& process) {
  return process.ended_s || process.exit;
}

const ProcessReport* most_grown(const Report& report, auto counts) {
  const ProcessReport* most = nullptr;
  for (const ProcessReport& process : report.processes) {
    if (counts(process) && (most == nullptr || process.growth_bytes() > most->growth_bytes())) {
      most = &process;
    }
  }
  return most;
}

// Memory of an ended process is free again, so a living one that grew is the better answer. One that the
// kernel killed for its memory is an answer too.
const ProcessReport* the_answer(const Report& report) {
  const auto* held = most_grown(report, [](const auto& p) { return !ended(p) || oom_killed(p); });
  return held != nullptr && grew(*held) ? held : most_grown(report, [](const auto&) { return true; });
}

std::string kind_of_growth(const ProcessReport& process) {
  const auto share = [](const SourceRow& row) { return plus(row.growth, row.cow); };
  const auto most = std::max_element(process.sources.begin(), process.sources.end(),
                                     [&](const auto& a, const auto& b) { return share(a) < share(b); });
  if (most == process.sources.end() || share(*most) < kNoiseBytes) {
    return "";
  }
  const std::string_view how = most->cow > most->growth ? "copied on write in " : "";
  return fmt::format(", most of it {}{} ({})", how.empty() ? "in " : how, plain_source(most->source),
                     format_growth(share(*most)));
}

// What keeps the tool from claiming that it saw all.
std::vector<std::string> doubts(const Capture& capture) {
  std::vector<std::string> found;
  if (capture.lost.events > 0) {
    found.push_back(counted(capture.lost.events, "event") + " lost");
  }
  if (capture.lost.samples > 0) {
    found.push_back(counted(capture.lost.samples, "sample") + " lost");
  }
  for (const auto& [name, status] : capture.layers) {
    if (status.state == LayerState::kDegraded) {
      found.push_back(fmt::format("the {} layer is degraded", printable(name)));
    }
  }
  for (const char* name : {"pages", "mappings"}) {
    const auto layer = capture.layers.find(name);
    if (layer == capture.layers.end() || layer->second.state == LayerState::kOff) {
      found.push_back(fmt::format("the {} layer is off", name));
    }
  }
  return found;
}

void tell_of_kills(const Report& report, std::vector<Sentence>& out) {
  std::size_t kills = 0;
  for (const ProcessReport& process : report.processes) {
    if (oom_killed(process) && ++kills <= kKillsNamed) {
      out.push_back(
          {fmt::format("{} was killed by the kernel for lack of memory (OOM) at {}, holding {} at its peak.",
                       name_and_pid(process),
                       format_seconds(process.ended_s.value_or(report.capture.duration_s)),
                       format_size(process.peak_rss)),
           Ink::kRed});
    }
  }
  if (kills > kKillsNamed) {
    out.push_back(
        {fmt::format("{} more were killed so.", counted(kills - kKillsNamed, "process")), Ink::kRed});
  }
}

void tell_of_growth(const Report& report, const ProcessReport& answer, std::vector<Sentence>& out) {
  const auto growers =
      static_cast<std::uint64_t>(std::count_if(report.processes.begin(), report.processes.end(), grew));
  out.push_back(
      {fmt::format("{} grew{}: {}{}.{}", name_and_pid(answer), growers > 1 ? " most" : "",
                   growth_and_rate(answer.growth_bytes(), seconds_seen(answer, report.capture)),
                   kind_of_growth(answer),
                   ended(answer) && !oom_killed(answer) ? " It has ended since, so that is free again." : ""),
       Ink::kBold});
  std::string all = growers > 1
                        ? fmt::format("{} of {} grew. ", growers, counted(report.processes.size(), "process"))
                        : std::string();
  if (report.processes.size() > 1) {
    all += fmt::format("All together: {}", format_growth(report.growth.bytes));
    all += fmt::format(", {} of it unexplained.", format_bytes(report.growth.unexplained_bytes));
    out.push_back({std::move(all)});
  }
}

void tell_of_rest(const Report& report, const ProcessReport& answer, bool certain,
                  std::vector<Sentence>& out) {
  const std::string most = fmt::format("{} {}", name_and_pid(answer), format_growth(answer.growth_bytes()));
  if (!certain) {
    out.push_back({fmt::format("Cannot tell whether anything grew. The most that was seen in {}: {}.",
                               format_seconds(report.capture.duration_s), most),
                   Ink::kYellow});
  } else if (report.growth.bytes >= kNoiseBytes) {
    out.push_back({fmt::format("No single process grew, but all {} together did: {}. The most: {}.",
                               counted(report.processes.size(), "process"),
                               growth_and_rate(report.growth.bytes, report.capture.duration_s), most),
                   Ink::kBold});
  } else {
    out.push_back({fmt::format("Nothing grew in {}. The largest change: {}.",
                               format_seconds(report.capture.duration_s), most),
                   Ink::kGreen});
  }
}

}  // namespace

std::vector<Sentence> headline(const Report& report) {
  std::vector<Sentence> out;
  const ProcessReport* answer = the_answer(report);
  const std::vector<std::string> unsure = doubts(report.capture);
  if (answer == nullptr) {
    out.push_back({"No process was seen, so nothing can be said about memory.", Ink::kYellow});
  } else {
    tell_of_kills(report, out);
    if (grew(*answer)) {
      tell_of_growth(report, *answer, out);
    } else {
      tell_of_rest(report, *answer, unsure.empty(), out);
    }
  }
  if (!unsure.empty()) {
    out.push_back(
        {fmt::format(
             "Not all was seen ({}): the totals are the kernel's own, but what they are made of may be "
             "incomplete.",
             joined(unsure)),
         Ink::kYellow});
  }
  return out;
}

}  // namespace torchleak
