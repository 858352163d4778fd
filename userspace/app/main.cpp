// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <iostream>
#include <sstream>

#include "torchleak/app/capture.hpp"
#include "torchleak/app/options.hpp"
#include "torchleak/app/output.hpp"
#include "torchleak/app/preflight.hpp"
#include "torchleak/app/tree.hpp"
#include "torchleak/base/text.hpp"
#include "torchleak/procfs/snapshot.hpp"
#include "torchleak/report/json.hpp"

namespace torchleak::app {
namespace {

constexpr int kDone = 0;
constexpr int kFailed = 1;
constexpr int kCannotTrace = 77;

int complain(std::string_view message, int status) {
  std::cerr << "torchleak-trace: " << message << '\n';
  return status;
}

int write_report(Outputs& outputs, const Report& report) {
  const auto written = outputs.write(report);
  return written ? kDone : complain(written.error().message, kFailed);
}

int render(const RenderOptions& options) {
  std::ifstream file(options.file, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf())) {
    return complain(fmt::format("'{}' cannot be read: {}; give a report that was written with -o FILE.json",
                                printable(options.file), errno != 0 ? std::strerror(errno) : "it is empty"),
                    kFailed);
  }
  const auto report = from_json(text.str());
  if (!report) {
    return complain(fmt::format("'{}': {}", printable(options.file), report.error().message), kFailed);
  }
  auto outputs = Outputs::open(options.output);
  return outputs ? write_report(*outputs, *report) : complain(outputs.error().message, kFailed);
}

std::string tracing_line(const TraceOptions& options, const std::vector<std::uint32_t>& pids) {
  const std::string what = options.command.empty()
                               ? fmt::format("process {}", fmt::join(pids, ", "))
                               : fmt::format("'{}' (process {})", printable(options.command[0]), pids[0]);
  return fmt::format("tracing {}{}", what, options.children ? " and all below" : "");
}

int trace(const TraceOptions& options, std::uint64_t program_start_ns) {
  auto outputs = Outputs::open(options.output);
  if (!outputs) {
    return complain(outputs.error().message, kFailed);
  }
  for (const std::uint32_t pid : options.pids) {
    if (const auto fit = check_target(pid); !fit) {
      return complain(fit.error().message, kFailed);
    }
  }
  Preflight preflight = check_machine();
  if (preflight.status != 0) {
    return complain(preflight.message, preflight.status);
  }
  auto tracer = bpf::Tracer::create({.follow_children = options.children});
  if (!tracer) {
    return complain(tracer.error().message, kCannotTrace);
  }

  StopSignal stop;
  std::optional<Launch> launch;
  std::vector<std::uint32_t> pids = options.pids;
  if (!options.command.empty()) {
    auto prepared = Launch::prepare(options.command);
    if (!prepared) {
      return complain(prepared.error().message, kFailed);
    }
    launch = std::move(*prepared);
    pids = {launch->pid()};
  }
  CaptureSession capture(options, std::move(*tracer), program_start_ns);
  if (const auto attached = capture.attach(pids); !attached) {
    return complain(attached.error().message, kFailed);
  }
  if (launch) {
    if (const auto released = launch->release(); !released) {
      ::waitpid(static_cast<pid_t>(launch->pid()), nullptr, 0);
      return complain(released.error().message, kFailed);
    }
  }
  Progress progress(std::cerr, options.quiet, ::isatty(STDERR_FILENO) == 1, options.interval_s);
  progress.say(tracing_line(options, pids));
  if (options.verbose) {
    for (const bpf::BlindSpot& blind : capture.tracer().blind_spots()) {
      progress.say(fmt::format("not attached: {}: {}", blind.program, blind.why));
    }
  }
  if (options.ready_fd >= 0) {
    const char byte = '\n';
    (void)!::write(options.ready_fd, &byte, 1);
  }
  capture.run(stop, progress);
  progress.finish();
  return write_report(*outputs, capture.finish(std::move(preflight.notes)));
}

int run(int argc, const char* const* argv) {
  const std::uint64_t program_start_ns = procfs::monotonic_ns();
  const auto command = parse_command_line(argc, argv);
  if (const auto* answered = std::get_if<Answered>(&command)) {
    std::cout << answered->out;
    std::cerr << answered->err;
    return answered->status;
  }
  if (const auto* options = std::get_if<RenderOptions>(&command)) {
    return render(*options);
  }
  return trace(std::get<TraceOptions>(command), program_start_ns);
}

}  // namespace
}  // namespace torchleak::app

int main(int argc, char** argv) {
  try {
    return torchleak::app::run(argc, argv);
  } catch (const std::exception& error) {  // memory exhausted, or a defect of ours: say so and leave in order
    std::cerr << "torchleak-trace: internal error: " << error.what() << '\n';
    return 1;
  }
}
