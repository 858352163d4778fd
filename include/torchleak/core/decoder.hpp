// SPDX-License-Identifier: Apache-2.0
// Turns ring-buffer records into typed events. A record is copied after its size has been checked; an unknown
// kind or a size that does not fit is counted and never cast.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <variant>

#include "torchleak/abi/event.h"

namespace torchleak {

struct UnmapEvent : tl_range {};
struct ProtectEvent : tl_range {};
struct AdviseEvent : tl_range {};
struct AttachShmEvent : tl_shm {};
struct DetachShmEvent : tl_shm {};

using Event = std::variant<tl_fork, tl_exec, tl_exit, tl_oom_kill, tl_rename, tl_map, UnmapEvent, tl_remap,
                           ProtectEvent, tl_brk, AdviseEvent, AttachShmEvent, DetachShmEvent, tl_fault>;

const tl_header& header_of(const Event& event);

class Decoder {
 public:
  // nullopt where the record is not understood; the counters then say why. Names in the returned event are
  // always NUL-terminated.
  std::optional<Event> decode(std::span<const std::byte> record);

  std::uint64_t unknown_kinds() const { return unknown_kinds_; }
  std::uint64_t wrong_sizes() const { return wrong_sizes_; }

 private:
  std::uint64_t unknown_kinds_ = 0;
  std::uint64_t wrong_sizes_ = 0;
};

}  // namespace torchleak
