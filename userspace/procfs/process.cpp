// SPDX-License-Identifier: Apache-2.0
#include "torchleak/procfs/process.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <iterator>
#include <memory>

#include "file.hpp"
#include "torchleak/base/text.hpp"
#include "torchleak/base/unique_fd.hpp"

namespace torchleak::procfs {
namespace {

constexpr std::size_t kMaxFileBytes = 256UL << 20;
constexpr std::size_t kSmapsPieceBytes = 8192;  // the kernel gives a page a call

struct CloseDirectory {
  void operator()(DIR* directory) const { ::closedir(directory); }
};

// The entries of a directory whose names are numbers, ascending; empty where it cannot be read.
std::vector<pid_t> numbered_entries(const std::string& path) {
  std::vector<pid_t> numbers;
  const std::unique_ptr<DIR, CloseDirectory> directory(::opendir(path.c_str()));
  if (!directory) {
    return numbers;
  }
  while (const dirent* entry = ::readdir(directory.get())) {
    const std::string_view name = entry->d_name;
    pid_t number = 0;
    const auto [rest, error] = std::from_chars(name.data(), name.data() + name.size(), number);
    if (error == std::errc{} && rest == name.data() + name.size()) {
      numbers.push_back(number);
    }
  }
  std::ranges::sort(numbers);
  return numbers;
}

std::string proc_path(pid_t pid, std::string_view file) {
  return fmt::format("/proc/{}/{}", pid, file);
}

std::vector<pid_t> scan_for_children(pid_t parent) {
  std::vector<pid_t> children;
  for (const pid_t pid : numbered_entries("/proc")) {
    const auto stat = read_stat(pid);
    if (stat && static_cast<pid_t>(stat->ppid) == parent) {
      children.push_back(pid);
    }
  }
  return children;
}

template <typename T>
Result<T> not_understood(pid_t pid, std::string_view file) {
  return fail(fmt::format("{} is not in a form known to this version", proc_path(pid, file)));
}

// Up to where the text holds whole entries of smaps, whose last line is VmFlags.
std::size_t end_of_whole_entries(std::string_view text) {
  const std::string_view lines = text.substr(0, text.rfind('\n') + 1);
  const auto last = lines.rfind("\nVmFlags:");
  return last == std::string_view::npos ? 0 : lines.find('\n', last + 1) + 1;
}

}  // namespace

Result<std::string> read_file(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) {
    return fail(fmt::format("cannot open {}: {}", path, std::strerror(errno)));
  }
  std::string text;
  std::size_t used = 0;
  while (used < kMaxFileBytes) {
    if (text.size() - used < 4096) {
      text.resize(std::max<std::size_t>(16384, text.size() * 2));
    }
    const ssize_t length = ::read(fd.get(), text.data() + used, text.size() - used);
    if (length < 0 && errno == EINTR) {
      continue;
    }
    if (length < 0) {
      return fail(fmt::format("cannot read {}: {}", path, std::strerror(errno)));
    }
    if (length == 0) {
      break;
    }
    used += static_cast<std::size_t>(length);
  }
  text.resize(used);
  return text;
}

Result<Stat> read_stat(pid_t pid) {
  const auto text = read_file(proc_path(pid, "stat"));
  if (!text) {
    return std::unexpected(text.error());
  }
  auto stat = parse_stat(*text);
  return stat ? Result<Stat>(std::move(*stat)) : not_understood<Stat>(pid, "stat");
}

Result<Status> read_status(pid_t pid) {
  const auto text = read_file(proc_path(pid, "status"));
  if (!text) {
    return std::unexpected(text.error());
  }
  const auto status = parse_status(*text);
  return status ? Result<Status>(*status) : not_understood<Status>(pid, "status");
}

// A piece at a time: of 100,000 mappings the whole text is 70 MB.
Result<Smaps> read_smaps(pid_t pid) {
  const std::string path = proc_path(pid, "smaps");
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) {
    return fail(fmt::format("cannot open {}: {}", path, std::strerror(errno)));
  }
  Smaps smaps;
  std::string text;
  for (ssize_t length = 1; length > 0;) {
    const std::size_t kept = text.size();
    text.resize(kept + kSmapsPieceBytes);
    do {
      length = ::read(fd.get(), text.data() + kept, kSmapsPieceBytes);
    } while (length < 0 && errno == EINTR);
    if (length < 0) {
      return fail(fmt::format("cannot read {}: {}", path, std::strerror(errno)));
    }
    text.resize(kept + static_cast<std::size_t>(length));
    const std::size_t whole = length == 0 ? text.size() : end_of_whole_entries(text);
    Smaps piece = parse_smaps(std::string_view(text).substr(0, whole));
    std::ranges::move(piece.entries, std::back_inserter(smaps.entries));
    if (!piece.complete) {
      smaps.complete = false;
      return smaps;
    }
    text.erase(0, whole);
  }
  return smaps;
}

std::vector<std::string> read_cmdline(pid_t pid) {
  const auto text = read_file(proc_path(pid, "cmdline"));
  if (!text) {
    return {};
  }
  // A process that sets its own title leaves the rest of the space as zeros.
  const std::string_view words(text->data(), text->find_last_not_of('\0') + 1);
  std::vector<std::string> cmdline;
  if (!words.empty()) {
    for (const std::string_view word : split(words, '\0')) {
      cmdline.emplace_back(word);
    }
  }
  return cmdline;
}

std::vector<pid_t> read_children(pid_t pid) {
  std::vector<pid_t> children;
  for (const pid_t tid : numbered_entries(proc_path(pid, "task"))) {
    const std::string task = fmt::format("/proc/{}/task/{}", pid, tid);
    const auto text = read_file(task + "/children");
    if (!text && ::access(task.c_str(), F_OK) == 0) {
      return scan_for_children(pid);  // the thread is there, so the kernel lacks CONFIG_PROC_CHILDREN
    }
    for (const std::string_view word : split(text ? *text : std::string_view(), ' ')) {
      pid_t child = 0;
      if (std::from_chars(word.data(), word.data() + word.size(), child).ec == std::errc{}) {
        children.push_back(child);
      }
    }
  }
  std::ranges::sort(children);
  return children;
}

std::uint64_t ticks_to_ns(std::uint64_t ticks) {
  const auto ticks_per_s = static_cast<std::uint64_t>(::sysconf(_SC_CLK_TCK));
  return ticks / ticks_per_s * 1'000'000'000 + ticks % ticks_per_s * 1'000'000'000 / ticks_per_s;
}

}  // namespace torchleak::procfs
