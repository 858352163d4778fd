// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "torchleak/procfs/process.hpp"

namespace torchleak::procfs {
namespace {

constexpr std::uint64_t kKernelThreadFlag = 0x00200000;  // PF_KTHREAD

// Takes a number off the front of `text`.
template <typename T>
std::optional<T> take_number(std::string_view& text, int base = 10) {
  T value{};
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{}) {
    return std::nullopt;
  }
  text.remove_prefix(static_cast<std::size_t>(rest - text.data()));
  return value;
}

bool take_char(std::string_view& text, char expected) {
  if (!text.starts_with(expected)) {
    return false;
  }
  text.remove_prefix(1);
  return true;
}

void skip_blanks(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
}

std::string_view take_word(std::string_view& text) {
  skip_blanks(text);
  const std::string_view word = text.substr(0, text.find_first_of(" \t\n"));
  text.remove_prefix(word.size());
  return word;
}

// The next line without its newline; nullopt where no whole line is left.
std::optional<std::string_view> take_line(std::string_view& text) {
  const auto newline = text.find('\n');
  if (newline == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view line = text.substr(0, newline);
  text.remove_prefix(newline + 1);
  return line;
}

template <typename T>
bool read_word(std::string_view word, T& value) {
  const auto number = take_number<T>(word);
  if (!number || !word.empty()) {
    return false;
  }
  value = *number;
  return true;
}

// "     1234 kB" in bytes.
bool read_kib(std::string_view text, std::uint64_t& bytes) {
  skip_blanks(text);
  const auto kib = take_number<std::uint64_t>(text);
  if (!kib || text != " kB" || *kib > std::numeric_limits<std::uint64_t>::max() / 1024) {
    return false;
  }
  bytes = *kib * 1024;
  return true;
}

bool read_mask(std::string_view text, std::uint64_t& mask) {
  skip_blanks(text);
  const auto value = take_number<std::uint64_t>(text, 16);
  if (!value || !text.empty()) {
    return false;
  }
  mask = *value;
  return true;
}

// Fields 3 to 28 of /proc/PID/stat, `text` beginning right behind the name.
bool read_stat_fields(std::string_view text, Stat& stat) {
  std::uint64_t flags = 0;
  std::uint64_t user_ticks = 0;
  std::uint64_t system_ticks = 0;
  for (int field = 3; field <= 28; ++field) {
    const std::string_view word = take_word(text);
    bool read = !word.empty();
    switch (field) {
      case 3:
        read = word.size() == 1;
        stat.state = read ? word.front() : '?';
        break;
      case 4:
        read = read_word(word, stat.ppid);
        break;
      case 9:
        read = read_word(word, flags);
        break;
      case 10:
        read = read_word(word, stat.minor_faults);
        break;
      case 12:
        read = read_word(word, stat.major_faults);
        break;
      case 14:
        read = read_word(word, user_ticks);
        break;
      case 15:
        read = read_word(word, system_ticks);
        break;
      case 20:
        read = read_word(word, stat.threads);
        break;
      case 22:
        read = read_word(word, stat.start_ticks);
        break;
      case 28:
        read = read_word(word, stat.stack_start);
        break;
      default:
        break;
    }
    if (!read) {
      return false;
    }
  }
  stat.cpu_ticks = user_ticks + system_ticks;
  stat.kernel_thread = (flags & kKernelThreadFlag) != 0;
  // A cut inside the last number cannot be told from the number; a blank or a newline behind it can.
  return !text.empty();
}

// Where the value of a smaps line goes; null for the lines we do not need.
std::uint64_t* smaps_field(SmapsEntry& entry, std::string_view key) {
  if (key == "Rss") return &entry.rss;
  if (key == "Pss") return &entry.pss;
  if (key == "Private_Clean") return &entry.private_clean;
  if (key == "Private_Dirty") return &entry.private_dirty;
  if (key == "Shared_Clean") return &entry.shared_clean;
  if (key == "Shared_Dirty") return &entry.shared_dirty;
  if (key == "Anonymous") return &entry.anonymous;
  if (key == "AnonHugePages") return &entry.anon_huge_pages;
  if (key == "Swap") return &entry.swap;
  return nullptr;
}

// Reads the lines under a header up to VmFlags, which the kernel writes last.
bool read_smaps_fields(std::string_view& text, SmapsEntry& entry) {
  while (const auto line = take_line(text)) {
    const auto colon = line->find(':');
    if (colon == std::string_view::npos || line->front() < 'A' || line->front() > 'Z') {
      return false;
    }
    const std::string_view key = line->substr(0, colon);
    if (key == "VmFlags") {
      return true;
    }
    std::uint64_t* const field = smaps_field(entry, key);
    if (field != nullptr && !read_kib(line->substr(colon + 1), *field)) {
      return false;
    }
  }
  return false;
}

}  // namespace

std::optional<Stat> parse_stat(std::string_view text) {
  const auto open = text.find('(');
  const auto close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close < open) {
    return std::nullopt;
  }
  Stat stat;
  stat.comm = text.substr(open + 1, close - open - 1);
  return read_stat_fields(text.substr(close + 1), stat) ? std::optional(stat) : std::nullopt;
}

bool has_execed(const Stat& child, const Stat& parent) {
  return child.stack_start != 0 && parent.stack_start != 0 && child.stack_start != parent.stack_start;
}

std::optional<Status> parse_status(std::string_view text) {
  Status status;
  bool has_signals = false;
  while (const auto line = take_line(text)) {
    const auto colon = line->find(':');
    if (colon == std::string_view::npos) {
      return std::nullopt;
    }
    const std::string_view key = line->substr(0, colon);
    const std::string_view value = line->substr(colon + 1);
    bool read = true;
    if (key == "VmRSS") {
      read = read_kib(value, status.memory.rss);
      status.has_memory = true;
    } else if (key == "VmHWM") {
      read = read_kib(value, status.peak_rss);
    } else if (key == "RssAnon") {
      read = read_kib(value, status.memory.anon);
    } else if (key == "RssFile") {
      read = read_kib(value, status.memory.file);
    } else if (key == "RssShmem") {
      read = read_kib(value, status.memory.shmem);
    } else if (key == "VmSwap") {
      read = read_kib(value, status.memory.swap);
    } else if (key == "SigCgt") {
      read = read_mask(value, status.caught_signals);
      has_signals = true;
    }
    if (!read) {
      return std::nullopt;
    }
  }
  return has_signals ? std::optional(status) : std::nullopt;
}

// "7f41cd509000-7f41d1851000 rw-p 00000000 00:00 0    [name]"
std::optional<VmaFacts> parse_maps_line(std::string_view line) {
  VmaFacts vma;
  const auto begin = take_number<std::uint64_t>(line, 16);
  if (!begin || !take_char(line, '-')) {
    return std::nullopt;
  }
  const auto end = take_number<std::uint64_t>(line, 16);
  const std::string_view permissions = take_word(line);
  if (!end || *end <= *begin || permissions.size() != 4) {
    return std::nullopt;
  }
  skip_blanks(line);
  const auto offset = take_number<std::uint64_t>(line, 16);
  const std::string_view device = take_word(line);
  skip_blanks(line);
  const auto inode = take_number<std::uint64_t>(line);
  if (!offset || device.find(':') == std::string_view::npos || !inode ||
      (!line.empty() && line.front() != ' ')) {
    return std::nullopt;
  }
  skip_blanks(line);
  vma.begin = *begin;
  vma.end = *end;
  vma.readable = permissions[0] == 'r';
  vma.writable = permissions[1] == 'w';
  vma.executable = permissions[2] == 'x';
  vma.shared = permissions[3] == 's';
  vma.offset = *offset;
  vma.inode = *inode;
  vma.name = line;
  return vma;
}

Smaps parse_smaps(std::string_view text) {
  Smaps smaps;
  while (const auto header = take_line(text)) {
    auto vma = parse_maps_line(*header);
    SmapsEntry entry;
    if (!vma || !read_smaps_fields(text, entry)) {
      smaps.complete = false;
      return smaps;
    }
    entry.vma = std::move(*vma);
    smaps.entries.push_back(std::move(entry));
  }
  smaps.complete = text.empty();
  return smaps;
}

}  // namespace torchleak::procfs
