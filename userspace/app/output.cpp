// SPDX-License-Identifier: Apache-2.0
#include "torchleak/app/output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <sstream>

#include "torchleak/base/text.hpp"
#include "torchleak/report/json.hpp"
#include "torchleak/report/text.hpp"

namespace torchleak::app {
namespace {

std::size_t terminal_width() {
  winsize size{};
  if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col >= 40) {
    return size.ws_col;
  }
  return TextOptions{}.width;
}

Result<void> write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = ::write(fd, text.data(), text.size());
    if (written < 0 && errno != EINTR) {
      return fail(std::strerror(errno));
    }
    text.remove_prefix(written < 0 ? 0 : static_cast<std::size_t>(written));
  }
  return {};
}

}  // namespace

std::optional<Format> format_of_file(std::string_view path) {
  if (path.ends_with(".json")) {
    return Format::kJson;
  }
  if (path.ends_with(".txt")) {
    return Format::kText;
  }
  return std::nullopt;
}

Result<Outputs> Outputs::open(const OutputOptions& options) {
  Outputs outputs(options);
  for (const std::string& path : options.files) {
    // Opened without O_TRUNC: what an earlier capture left there stays until this one has something to put in
    // its place.
    UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
    if (!fd) {
      return fail(fmt::format("'{}' cannot be written: {}; give -o a path you may write to", printable(path),
                              std::strerror(errno)));
    }
    outputs.files_.push_back({path, std::move(fd)});
  }
  return outputs;
}

std::string Outputs::render(const Report& report, Format format, bool to_terminal) const {
  if (format == Format::kJson) {
    return to_json(report);
  }
  const char* no_color = std::getenv("NO_COLOR");
  TextOptions text;
  text.top = options_.top;
  text.color = to_terminal && !options_.no_color && (no_color == nullptr || *no_color == '\0');
  text.width = to_terminal ? terminal_width() : text.width;
  std::ostringstream out;
  write_text(out, report, text);
  return out.str();
}

Result<void> Outputs::write(const Report& report) {
  std::string failures;
  const auto note = [&failures](std::string_view path, const Result<void>& result) {
    if (!result) {
      failures += fmt::format("{}'{}' could not be written: {}", failures.empty() ? "" : "; ",
                              printable(path), result.error().message);
    }
  };
  for (const File& file : files_) {
    const auto format = format_of_file(file.path);
    // A device or a pipe has no length to cut; that is no failure.
    struct stat status {};
    if (::fstat(file.fd.get(), &status) == 0 && S_ISREG(status.st_mode) &&
        ::ftruncate(file.fd.get(), 0) != 0) {
      note(file.path, fail(std::strerror(errno)));
      continue;
    }
    note(file.path, write_all(file.fd.get(), render(report, format.value_or(Format::kText), false)));
  }
  if (files_.empty() || options_.format) {
    const bool terminal = ::isatty(STDOUT_FILENO) == 1;
    note("stdout",
         write_all(STDOUT_FILENO, render(report, options_.format.value_or(Format::kText), terminal)));
  }
  if (!failures.empty()) {
    return fail(failures);
  }
  return {};
}

}  // namespace torchleak::app
