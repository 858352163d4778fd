// SPDX-License-Identifier: Apache-2.0
#include "torchleak/procfs/page_probe.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <string>
#include <vector>

#include "torchleak/procfs/process.hpp"

namespace torchleak::procfs {
namespace {

constexpr std::uint64_t kPresent = std::uint64_t{1} << 63;
constexpr std::uint64_t kFilePage = std::uint64_t{1} << 61;
constexpr std::uint64_t kFrameMask = (std::uint64_t{1} << 55) - 1;
// Documentation/admin-guide/mm/pagemap.rst
constexpr std::uint64_t kCompoundHead = std::uint64_t{1} << 15;
constexpr std::uint64_t kCompoundTail = std::uint64_t{1} << 16;
constexpr std::uint64_t kTransparentHuge = std::uint64_t{1} << 22;
constexpr std::size_t kFramesLookedAt = 512;  // a huge page of 2 MiB on 4 KiB pages
constexpr std::size_t kOpenPagemaps = 256;
constexpr std::uint64_t kFaultAroundBytes = std::uint64_t{64} * 1024;

bool huge_pages_possible() {
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string text;
  std::getline(file, text);
  return !text.empty() && text.find("[never]") == std::string::npos;
}

}  // namespace

PageProbe::PageProbe(std::uint64_t page_bytes)
    : page_bytes_(page_bytes),
      huge_pages_possible_(huge_pages_possible()),
      page_flags_(::open("/proc/kpageflags", O_RDONLY | O_CLOEXEC)) {}

bool PageProbe::read_pagemap(pid_t pid, std::uint64_t address, std::span<std::uint64_t> entries) {
  auto it = pagemaps_.find(pid);
  if (it == pagemaps_.end()) {
    if (pagemaps_.size() >= kOpenPagemaps) {
      pagemaps_.clear();
    }
    UniqueFd file(::open(fmt::format("/proc/{}/pagemap", pid).c_str(), O_RDONLY | O_CLOEXEC));
    it = pagemaps_.emplace(pid, std::move(file)).first;
  }
  const auto offset = static_cast<off_t>(address / page_bytes_ * sizeof(entries[0]));
  return it->second && ::pread(it->second.get(), entries.data(), entries.size_bytes(), offset) ==
                           static_cast<ssize_t>(entries.size_bytes());
}

bool PageProbe::is_present(pid_t pid, std::uint64_t address) {
  std::uint64_t entry = 0;
  return read_pagemap(pid, address, {&entry, 1}) && (entry & kPresent) != 0;
}

std::uint64_t PageProbe::pages_around(pid_t pid, std::uint64_t address) {
  std::vector<std::uint64_t> entries(std::max<std::uint64_t>(kFaultAroundBytes / page_bytes_, 1));
  const std::uint64_t first = address / kFaultAroundBytes * kFaultAroundBytes;
  if (!read_pagemap(pid, first, entries)) {
    return 0;
  }
  const auto cached = [](std::uint64_t entry) { return (entry & kPresent) != 0 && (entry & kFilePage) != 0; };
  if (!cached(entries[(address - first) / page_bytes_])) {
    return 1;  // a private copy, which is made alone
  }
  return static_cast<std::uint64_t>(std::ranges::count_if(entries, cached));
}

std::uint64_t PageProbe::page_size_at(pid_t pid, std::uint64_t address) {
  if (!huge_pages_possible_) {
    return page_bytes_;
  }
  std::uint64_t entry = 0;
  if (!read_pagemap(pid, address, {&entry, 1}) || (entry & kPresent) == 0) {
    return 0;
  }
  const std::uint64_t frame = entry & kFrameMask;
  std::uint64_t own_flags = 0;
  if (frame == 0 || !read_page_flags(frame, {&own_flags, 1}) || (own_flags & kTransparentHuge) == 0) {
    return page_bytes_;
  }
  const std::uint64_t first = frame / kFramesLookedAt * kFramesLookedAt;
  std::array<std::uint64_t, kFramesLookedAt> flags{};
  if (!read_page_flags(first, flags)) {
    return page_bytes_;
  }
  std::size_t head = frame - first;
  while (head > 0 && (flags[head] & kCompoundHead) == 0) {
    --head;
  }
  std::size_t end = head + 1;
  while (end < kFramesLookedAt && (flags[end] & kCompoundTail) != 0) {
    ++end;
  }
  return (end - head) * page_bytes_;
}

bool PageProbe::read_page_flags(std::uint64_t first_frame, std::span<std::uint64_t> flags) const {
  const auto offset = static_cast<off_t>(first_frame * sizeof(std::uint64_t));
  return page_flags_ && ::pread(page_flags_.get(), flags.data(), flags.size_bytes(), offset) ==
                            static_cast<ssize_t>(flags.size_bytes());
}

ChunkHeader PageProbe::chunk_header_at(pid_t pid, std::uint64_t address, std::uint64_t length) {
  if (!is_present(pid, address)) {
    return ChunkHeader::kUnread;  // reading would bring a page in
  }
  std::uint64_t size_field = 0;
  const iovec local{&size_field, sizeof(size_field)};
  // NOLINTNEXTLINE(performance-no-int-to-ptr): an address in another process
  const iovec remote{reinterpret_cast<void*>(address + sizeof(std::uint64_t)), sizeof(size_field)};
  if (::process_vm_readv(pid, &local, 1, &remote, 1, 0) != sizeof(size_field)) {
    return ChunkHeader::kUnread;
  }
  return read_chunk_header(size_field, length, page_bytes_);
}

std::uint64_t PageProbe::mapping_length_at(pid_t pid, std::uint64_t address) {
  std::ifstream maps(fmt::format("/proc/{}/maps", pid));
  for (std::string line; std::getline(maps, line);) {
    if (const auto vma = parse_maps_line(line); vma && vma->begin == address) {
      return vma->end - vma->begin;
    }
  }
  return 0;
}

}  // namespace torchleak::procfs
