// SPDX-License-Identifier: Apache-2.0
#include "torchleak/core/decoder.hpp"

#include <cstring>
#include <type_traits>

namespace torchleak {
namespace {

// The layouts of both sides were compared when the BPF object was opened, so a record has its struct's size
// or is broken: there is no "longer, from a newer version" to be lenient about.
template <typename Record>
std::optional<Event> copy(std::span<const std::byte> bytes, const tl_header& header,
                          std::size_t size = sizeof(Record)) {
  static_assert(std::is_trivially_copyable_v<Record>);
  if (bytes.size() != size || header.size != size) {
    return std::nullopt;
  }
  Record record{};
  std::memcpy(&record, bytes.data(), size);
  if constexpr (requires { record.comm; }) {
    record.comm[TL_COMM_BYTES - 1] = '\0';
  }
  if constexpr (requires { record.name; }) {
    record.name[TL_NAME_BYTES - 1] = '\0';
  }
  return record;
}

bool is_known(std::uint16_t kind) {
  return kind > TL_KIND_INVALID && kind <= TL_KIND_FAULT;
}

std::optional<Event> copy_by_kind(std::span<const std::byte> bytes, const tl_header& header) {
  switch (header.kind) {
    case TL_KIND_FORK:
      return copy<tl_fork>(bytes, header);
    case TL_KIND_EXEC:
      return copy<tl_exec>(bytes, header);
    case TL_KIND_EXIT:
      return copy<tl_exit>(bytes, header);
    case TL_KIND_OOM_KILL:
      return copy<tl_oom_kill>(bytes, header);
    case TL_KIND_RENAME:
      return copy<tl_rename>(bytes, header);
    case TL_KIND_MAP:
      return header.size == TL_MAP_ANONYMOUS_BYTES ? copy<tl_map>(bytes, header, TL_MAP_ANONYMOUS_BYTES)
                                                   : copy<tl_map>(bytes, header);
    case TL_KIND_UNMAP:
      return copy<UnmapEvent>(bytes, header);
    case TL_KIND_REMAP:
      return copy<tl_remap>(bytes, header);
    case TL_KIND_PROTECT:
      return copy<ProtectEvent>(bytes, header);
    case TL_KIND_BRK:
      return copy<tl_brk>(bytes, header);
    case TL_KIND_ADVISE:
      return copy<AdviseEvent>(bytes, header);
    case TL_KIND_ATTACH_SHM:
      return copy<AttachShmEvent>(bytes, header);
    case TL_KIND_DETACH_SHM:
      return copy<DetachShmEvent>(bytes, header);
    case TL_KIND_FAULT:
      return copy<tl_fault>(bytes, header);
    default:
      return std::nullopt;
  }
}

}  // namespace

const tl_header& header_of(const Event& event) {
  return std::visit([](const auto& record) -> const tl_header& { return record.header; }, event);
}

std::optional<Event> Decoder::decode(std::span<const std::byte> record) {
  tl_header header{};
  if (record.size() < sizeof(header)) {
    ++wrong_sizes_;
    return std::nullopt;
  }
  std::memcpy(&header, record.data(), sizeof(header));
  if (!is_known(header.kind)) {
    ++unknown_kinds_;
    return std::nullopt;
  }
  std::optional<Event> event = copy_by_kind(record, header);
  if (!event) {
    ++wrong_sizes_;
  }
  return event;
}

}  // namespace torchleak
