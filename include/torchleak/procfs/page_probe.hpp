// SPDX-License-Identifier: Apache-2.0
// Looks at single pages of a target from outside, without bringing any of them in.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <span>
#include <unordered_map>

#include "torchleak/base/unique_fd.hpp"
#include "torchleak/core/classify.hpp"

namespace torchleak::procfs {

class PageProbe {
 public:
  explicit PageProbe(std::uint64_t page_bytes);

  // Size of the page that holds `address` now: the base page, or a huge page of whatever size. 0 where it is
  // not there.
  std::uint64_t page_size_at(pid_t pid, std::uint64_t address);

  // How many pages of the 64 KiB around `address`, which is what a fault on a file maps at once, are there.
  std::uint64_t pages_around(pid_t pid, std::uint64_t address);

  // What the first words of a fresh anonymous mapping say. kUnread where the target has not written there
  // yet.
  ChunkHeader chunk_header_at(pid_t pid, std::uint64_t address, std::uint64_t length);

  // Length of the mapping that begins at `address`, 0 where there is none.
  std::uint64_t mapping_length_at(pid_t pid, std::uint64_t address);

  // Must be told: the next process with this pid is another one.
  void forget(pid_t pid) { pagemaps_.erase(pid); }

 private:
  // The pagemap entries from the page of `address` on; false where they cannot be read.
  bool read_pagemap(pid_t pid, std::uint64_t address, std::span<std::uint64_t> entries);
  bool is_present(pid_t pid, std::uint64_t address);
  bool read_page_flags(std::uint64_t first_frame, std::span<std::uint64_t> flags) const;

  std::uint64_t page_bytes_;
  bool huge_pages_possible_;
  UniqueFd page_flags_;
  std::unordered_map<pid_t, UniqueFd> pagemaps_;
};

}  // namespace torchleak::procfs
