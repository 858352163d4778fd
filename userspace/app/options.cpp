// SPDX-License-Identifier: Apache-2.0
#include "torchleak/app/options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <sstream>

#include "torchleak/app/output.hpp"
#include "torchleak/base/text.hpp"

namespace torchleak::app {
namespace {

constexpr const char* kDescription =
    "Watches the memory of a running PyTorch job and of all processes below it, without a restart:\n"
    "which process or DataLoader worker grows, and in what kind of memory.\n";

constexpr const char* kExamples =
    "\nExamples:\n"
    "  sudo torchleak-trace -p 4242                    watch until Ctrl-C, then print the report\n"
    "  sudo torchleak-trace -p 4242 -d 30              watch for 30 seconds\n"
    "  sudo torchleak-trace -p 4242 -d 30 -o leak.json keep the report as JSON\n"
    "  sudo torchleak-trace -- python3 train.py        start a job and watch it from its first instruction\n"
    "  torchleak-trace report leak.json                print a kept report again\n"
    "\nExit status: 0 done, 1 could not do it, 2 wrong usage, 77 this machine cannot trace.\n";

// CLI11 makes up one line of usage; there are three ways to call this.
class HelpFormat : public CLI::Formatter {
 public:
  HelpFormat() { column_width(30); }
  std::string make_usage(const CLI::App* app, std::string name) const override {
    if (app->get_parent() != nullptr) {
      return CLI::Formatter::make_usage(app, std::move(name));
    }
    return "Usage: torchleak-trace [options] -p PID [-p PID...]\n"
           "       torchleak-trace [options] -- COMMAND ARGS...\n"
           "       torchleak-trace report FILE [options]\n";
  }
};

// As CLI::Range, which lets "nan" through: it is neither below nor above.
CLI::Validator number_between(double least, double most) {
  return {[least, most](const std::string& text) {
            double value = 0;
            const bool fits = CLI::detail::lexical_cast(text, value) && value >= least && value <= most;
            return fits ? std::string{}
                        : fmt::format("'{}' is not a number from {:g} to {:g}", printable(text), least, most);
          },
          ""};
}

CLI::Validator process_id() {
  return {[](const std::string& text) {
            constexpr std::uint32_t kHighest = 1U << 22;  // the kernel's PID_MAX_LIMIT
            std::uint32_t value = 0;
            const bool fits = CLI::detail::lexical_cast(text, value) && value >= 1 && value <= kHighest;
            return fits ? std::string{}
                        : fmt::format("'{}' is not a process id; 'ps -e' lists them", printable(text));
          },
          ""};
}

void add_output_options(CLI::App& app, OutputOptions& output) {
  app.add_option("-o,--output", output.files,
                 "Write the report to FILE; .json or .txt picks the format (repeatable)")
      ->type_name("FILE")
      ->allow_extra_args(false);
  app.add_option("--format", output.format, "Format for stdout: text or json (default: text, none with -o)")
      ->transform(CLI::CheckedTransformer(
                      std::map<std::string, Format>{{"text", Format::kText}, {"json", Format::kJson}})
                      .description(""))
      ->type_name("FORMAT");
  app.add_option("--top", output.top, "Processes shown in full (default: 10)")->type_name("N");
  app.add_flag("--no-color", output.no_color,
               "No colours (also: NO_COLOR in the environment, or no terminal)");
}

void add_trace_options(CLI::App& app, TraceOptions& trace, std::string& sample_bytes) {
  app.add_option("-p,--pid", trace.pids, "Process to trace, with all below it (repeatable)")
      ->type_name("PID")
      ->check(process_id())
      ->allow_extra_args(false);
  app.add_option("-d,--duration", trace.duration_s,
                 "Stop after this time (default: Ctrl-C, or the target's end)")
      ->type_name("SECONDS")
      ->check(number_between(0.01, 1e9));
  app.add_option("-i,--interval", trace.interval_s,
                 "Time between progress lines (default: 1 on a terminal, else 5)")
      ->type_name("SECONDS")
      ->check(number_between(0.1, 1e6));
  app.add_flag_callback(
      "--no-children", [&trace] { trace.children = false; }, "This process only, not those below it");
  app.add_option("--sample-bytes", sample_bytes,
                 "Mean bytes of fresh memory a sample, e.g. 64K (default: adapted)")
      ->type_name("SIZE");
  app.add_option("--max-overhead", trace.max_overhead_percent,
                 "Cost budget on the target, in percent (default: 1)")
      ->type_name("PERCENT")
      ->check(number_between(0.01, 100));
  app.add_flag("-q,--quiet", trace.quiet, "No progress on stderr");
  app.add_flag("-v,--verbose", trace.verbose, "Say on stderr what is attached and what is not");
  app.add_option("--ready-fd", trace.ready_fd,
                 "Write a byte to this file descriptor once everything is attached")
      ->type_name("FD");
}

Answered wrong_usage(const std::string& message) {
  return {.status = 2,
          .out = {},
          .err = fmt::format("torchleak-trace: {}\nTry 'torchleak-trace --help'.\n", message)};
}

// What CLI11 cannot check by itself; nullopt where all is well.
std::optional<Answered> check_trace(TraceOptions& trace, const std::string& sample_bytes,
                                    bool command_given) {
  if (trace.pids.empty() && trace.command.empty()) {
    return wrong_usage(command_given ? "no command after '--'"
                                     : "nothing to trace: give -p PID, or -- COMMAND");
  }
  if (!trace.pids.empty() && command_given) {
    return wrong_usage("give either -p PID or -- COMMAND, not both");
  }
  if (!sample_bytes.empty()) {
    const auto bytes = parse_bytes(sample_bytes);
    if (!bytes) {
      return wrong_usage("--sample-bytes: " + bytes.error().message);
    }
    if (*bytes < 4096 || *bytes > (std::uint64_t{1} << 40)) {
      return wrong_usage("--sample-bytes: between 4K and 1T");
    }
    trace.sample_bytes = *bytes;
  }
  std::ranges::sort(trace.pids);
  trace.pids.erase(std::ranges::unique(trace.pids).begin(), trace.pids.end());
  return std::nullopt;
}

}  // namespace

std::variant<TraceOptions, RenderOptions, Answered> parse_command_line(int argc, const char* const* argv) {
  const std::vector<std::string> words(argv + std::min(argc, 1), argv + argc);
  const auto separator = std::ranges::find(words, "--");
  std::vector<std::string> own(words.begin(), separator);

  TraceOptions trace;
  RenderOptions render;
  std::string sample_bytes;
  CLI::App app(kDescription, "torchleak-trace");
  app.set_version_flag("--version", "torchleak-trace " TORCHLEAK_VERSION);
  app.footer(kExamples);
  app.formatter(std::make_shared<HelpFormat>());
  add_trace_options(app, trace, sample_bytes);
  add_output_options(app, trace.output);
  CLI::App* report = app.add_subcommand("report", "Render a kept report again");
  report->add_option("file", render.file, "A report in JSON, as written by -o FILE.json")
      ->required()
      ->type_name("FILE");
  add_output_options(*report, render.output);

  try {
    std::ranges::reverse(own);  // CLI11 takes the words from the back
    app.parse(own);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {
      std::ostringstream out;
      app.exit(error, out, out);
      return Answered{.status = 0, .out = out.str(), .err = {}};
    }
    return wrong_usage(error.what());
  }
  const OutputOptions& output = report->parsed() ? render.output : trace.output;
  for (const std::string& file : output.files) {
    if (!format_of_file(file)) {
      return wrong_usage(
          fmt::format("'{}': unknown format; use a name that ends in .json or .txt", printable(file)));
    }
  }
  if (report->parsed()) {
    return render;
  }
  if (separator != words.end()) {
    trace.command.assign(separator + 1, words.end());
  }
  if (auto wrong = check_trace(trace, sample_bytes, separator != words.end())) {
    return *wrong;
  }
  return trace;
}

}  // namespace torchleak::app
