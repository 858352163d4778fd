// SPDX-License-Identifier: Apache-2.0
#include "process_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "process_order.hpp"
#include "table.hpp"
#include "torchleak/base/text.hpp"
#include "words.hpp"

namespace torchleak {
namespace {

constexpr std::size_t kLinesPerTop = 4;  // the table costs a line a process, the details ten
constexpr std::size_t kDeepestIndent = 4;
constexpr std::size_t kSparkColumns = 10;
constexpr std::size_t kSourcesShown = 8;
constexpr std::size_t kNamesShown = 3;

Ink ink_of_growth(std::int64_t bytes) {
  return bytes >= kNoiseBytes ? Ink::kBold : Ink::kPlain;
}

std::string or_blank(std::int64_t bytes) {
  return bytes == 0 ? "" : format_bytes(bytes);
}

std::int64_t copied_on_write(const ProcessReport& process) {
  std::int64_t sum = 0;
  for (const SourceRow& row : process.sources) {
    sum = plus(sum, row.cow);
  }
  return sum;
}

std::vector<Cell> table_row(const Placed& placed, const Capture& capture) {
  const ProcessReport& process = *placed.process;
  const bool well = !process.exit || *process.exit == Exit{};
  const std::int64_t growth = process.growth_bytes();
  const std::string indent(std::min(placed.depth, kDeepestIndent), ' ');
  return {{indent + plain_name(process), growth >= kNoiseBytes ? Ink::kBold : Ink::kPlain},
          {std::to_string(process.pid), Ink::kDim},
          {format_size(process.start.rss)},
          {format_size(process.end.rss)},
          {format_growth(growth), ink_of_growth(growth)},
          {or_blank(copied_on_write(process))},
          {process.end.swap == 0 ? "" : format_size(process.end.swap)},
          {sparkline(process, capture.duration_s, kSparkColumns)},
          {plain_state(process), oom_killed(process) ? Ink::kRed
                                 : well              ? Ink::kDim
                                                     : Ink::kYellow}};
}

// "git, sh and 4 more": the commonest first.
std::string names_of(const std::vector<const ProcessReport*>& processes) {
  std::map<std::string, std::size_t> counts;
  for (const ProcessReport* process : processes) {
    ++counts[process->comm];
  }
  std::vector<std::pair<std::string, std::size_t>> ranked(counts.begin(), counts.end());
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(kNamesShown, ranked.size()); ++i) {
    names.push_back(fmt::format("{} ×{}", printable(ranked[i].first), ranked[i].second));
  }
  const std::size_t more = ranked.size() - names.size();
  return joined(names) + (more > 0 ? fmt::format(" and {} other names", more) : "");
}

std::uint64_t highest_peak(const std::vector<const ProcessReport*>& processes) {
  std::uint64_t peak = 0;
  for (const ProcessReport* process : processes) {
    peak = std::max(peak, process->peak_rss);
  }
  return peak;
}

std::int64_t summed_growth(const std::vector<const ProcessReport*>& processes) {
  std::int64_t sum = 0;
  for (const ProcessReport* process : processes) {
    sum = plus(sum, process->growth_bytes());
  }
  return sum;
}

void write_sources(std::ostream& out, const ProcessReport& process, const TextOptions& options) {
  std::vector<SourceRow> rows;
  for (const SourceRow& row : process.sources) {
    if (row.growth != 0 || row.cow != 0) {
      rows.push_back(row);
    }
  }
  const auto weight = [](const SourceRow& row) { return magnitude(plus(row.growth, row.cow)); };
  std::stable_sort(rows.begin(), rows.end(),
                   [&](const auto& a, const auto& b) { return weight(a) > weight(b); });
  if (rows.empty()) {
    return;
  }
  Table table({{"KIND OF MEMORY", Align::kLeft, 9, 14},
               {"START", Align::kRight, 3},
               {"END", Align::kRight, 4},
               {"GROWTH", Align::kRight, 8},
               {"COPIED", Align::kRight, 5},
               {"SOURCE", Align::kLeft, 1}});
  for (std::size_t i = 0; i < std::min(kSourcesShown, rows.size()); ++i) {
    const SourceRow& row = rows[i];
    table.add({{std::string(plain_source(row.source))},
               {format_bytes(row.start)},
               {format_bytes(row.end)},
               {format_growth(row.growth), ink_of_growth(row.growth)},
               {or_blank(row.cow), ink_of_growth(row.cow)},
               {std::string(source_name(row.source)), Ink::kDim}});
  }
  table.write(out, 2, options.width, options.color);
  if (rows.size() > kSourcesShown) {
    std::int64_t rest = 0;
    for (std::size_t i = kSourcesShown; i < rows.size(); ++i) {
      rest = plus(rest, plus(rows[i].growth, rows[i].cow));
    }
    write_paragraph(out, "  ",
                    fmt::format("{} more kinds: {}", rows.size() - kSourcesShown, format_growth(rest)),
                    options.width, Ink::kDim, options.color);
  }
}

std::string faults_text(const Faults& faults) {
  std::vector<std::string> parts;
  const auto add = [&](std::uint64_t count, std::string_view what) {
    if (count > 0) {
      parts.push_back(fmt::format("{} {}", format_count(count), what));
    }
  };
  add(faults.first_touch, "first touch");
  add(faults.cow, "copy-on-write");
  add(faults.file, "file");
  add(faults.shmem, "shared memory");
  add(faults.huge, "huge");
  add(faults.swap_in, "swapped in");
  add(faults.swap_out, "swapped out");
  add(faults.major, "major");
  add(faults.minor, "minor");
  add(faults.collapsed, "huge pages made by khugepaged");
  add(faults.kernel, "in the kernel");
  return joined(parts);
}

std::string books_text(const Reconciliation& books) {
  return fmt::format("start {} + attributed {} - freed {} = {}, the kernel says {}, unexplained {}",
                     format_bytes(books.start), format_bytes(books.attributed), format_bytes(books.freed),
                     format_bytes(minus(plus(books.start, books.attributed), books.freed)),
                     format_bytes(books.measured), format_bytes(books.unexplained));
}

std::string memory_text(const ProcessReport& process) {
  std::vector<std::string> parts;
  const auto add = [&](std::string_view what, std::uint64_t from, std::uint64_t to) {
    if (from != to) {
      parts.push_back(fmt::format("{} {}", what, format_growth(change(from, to))));
    }
  };
  add("anonymous", process.start.anon, process.end.anon);
  add("file", process.start.file, process.end.file);
  add("shared", process.start.shmem, process.end.shmem);
  add("swap", process.start.swap, process.end.swap);
  if (const std::int64_t copied = copied_on_write(process); copied != 0) {
    parts.push_back(fmt::format("copied on write {}", format_growth(copied)));
  }
  parts.push_back(fmt::format("peak RSS {}", format_size(process.peak_rss)));
  if (process.end.uss > 0) {
    parts.push_back(fmt::format("private at the end {}", format_size(process.end.uss)));
  }
  return joined(parts);
}

void write_details_of(std::ostream& out, const ProcessReport& process, const Report& report,
                      const TextOptions& options) {
  std::string title =
      fmt::format("{}, pid {}: {}", plain_name(process), process.pid,
                  growth_and_rate(process.growth_bytes(), seconds_seen(process, report.capture)));
  if (process.worker && !process.worker->group.empty()) {
    title += ", loader made at " + printable(process.worker->group);
  }
  out << '\n';
  write_paragraph(out, "", title, options.width, Ink::kBold, options.color);
  write_sources(out, process, options);
  write_paragraph(out, "  memory  ", memory_text(process), options.width);
  write_paragraph(out, "  faults  ", faults_text(process.faults), options.width);
  if (process.heap) {
    write_paragraph(
        out, "  heap    ",
        fmt::format("{} in use, {} free but kept, in {}", format_size(process.heap->in_use),
                    format_size(process.heap->free_retained), counted(process.heap->arenas, "arena")),
        options.width);
  }
  write_paragraph(out, "  books   ", books_text(process.reconciliation), options.width);
}

}  // namespace

void write_process_table(std::ostream& out, const Report& report, const TextOptions& options) {
  const Lines lines = choose_lines(report, kLinesPerTop * std::max<std::size_t>(options.top, 1));
  if (lines.shown.empty() && lines.folded.empty()) {
    return;
  }
  out << '\n';
  Table table({{"PROCESS", Align::kLeft, 9, 18},
               {"PID", Align::kRight, 4},
               {"RSS START", Align::kRight, 2},
               {"RSS END", Align::kRight, 6},
               {"GROWTH", Align::kRight, 8},
               {"COPIED", Align::kRight, 5},
               {"SWAP", Align::kRight, 3},
               {"RSS+SWAP", Align::kLeft, 1},
               {"STATE", Align::kLeft, 7}});
  for (const Placed& placed : lines.shown) {
    table.add(table_row(placed, report.capture));
  }
  if (!lines.shown.empty()) {
    table.write(out, 0, options.width, options.color);
  }
  if (!lines.omitted.empty()) {
    write_paragraph(
        out, "",
        fmt::format("and {} that changed less: {} in all, highest peak {}",
                    counted(lines.omitted.size(), "process"), format_growth(summed_growth(lines.omitted)),
                    format_size(highest_peak(lines.omitted))),
        options.width);
  }
  if (!lines.folded.empty()) {
    write_paragraph(out, "",
                    fmt::format("and {} that came and went ({}), highest peak {}",
                                counted(lines.folded.size(), "subprocess"), names_of(lines.folded),
                                format_size(highest_peak(lines.folded))),
                    options.width);
  }
}

void write_process_details(std::ostream& out, const Report& report, const TextOptions& options) {
  for (const ProcessReport* process : those_that_matter(report, options.top)) {
    write_details_of(out, *process, report, options);
  }
}

}  // namespace torchleak
