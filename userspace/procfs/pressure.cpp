// SPDX-License-Identifier: Apache-2.0
#include "torchleak/procfs/pressure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <unordered_map>

#include "torchleak/base/text.hpp"

namespace torchleak::procfs {
namespace {

constexpr std::uint64_t kNoLimit = std::uint64_t{1}
                                   << 60;  // version 1 writes a huge number where there is none

std::unordered_map<std::string, std::uint64_t> read_meminfo() {
  std::unordered_map<std::string, std::uint64_t> kib;
  std::ifstream file("/proc/meminfo");
  std::uint64_t value = 0;
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(':');
    const std::size_t digits = line.find_first_of("0123456789", colon);
    if (colon != std::string::npos && digits != std::string::npos) {
      std::from_chars(line.data() + digits, line.data() + line.size(), value);
      kib[line.substr(0, colon)] = value;
    }
  }
  return kib;
}

std::optional<std::uint64_t> read_limit(const std::filesystem::path& file) {
  std::ifstream in(file);
  std::uint64_t bytes = 0;
  if (in >> bytes && bytes < kNoLimit) {
    return bytes;
  }
  return std::nullopt;  // "max", absent, or none
}

}  // namespace

std::optional<std::uint64_t> memory_limit(pid_t pid) {
  std::optional<std::uint64_t> tightest;
  std::ifstream file(fmt::format("/proc/{}/cgroup", pid));
  for (std::string line; std::getline(file, line);) {
    const auto fields = split(line, ':');
    if (fields.size() < 3) {
      continue;
    }
    const auto controllers = split(fields[1], ',');
    const bool version1 = std::ranges::find(controllers, "memory") != controllers.end();
    const bool version2 = fields[0] == "0" && fields[1].empty();
    if (!version1 && !version2) {
      continue;
    }
    const std::filesystem::path root = version1 ? "/sys/fs/cgroup/memory" : "/sys/fs/cgroup";
    const char* limit_file = version1 ? "memory.limit_in_bytes" : "memory.max";
    std::string_view group = line;
    group.remove_prefix(
        static_cast<std::size_t>(fields[2].data() - line.data()));  // its name may hold colons
    for (std::filesystem::path path = group; !path.relative_path().empty(); path = path.parent_path()) {
      if (const auto limit = read_limit(root / path.relative_path() / limit_file)) {
        tightest = std::min(*limit, tightest.value_or(kNoLimit));
      }
    }
  }
  return tightest;
}

bool swapping_is_likely(pid_t pid) {
  auto kib = read_meminfo();
  return kib["SwapFree"] < kib["SwapTotal"] || kib["MemAvailable"] < kib["MemTotal"] / 4 ||
         memory_limit(pid).has_value();
}

}  // namespace torchleak::procfs
