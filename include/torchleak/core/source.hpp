// SPDX-License-Identifier: Apache-2.0
// What a byte of address space is for. The names are part of the report's contract.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace torchleak {

enum class Source : std::uint8_t {
  kPythonArena,
  kMallocHeap,
  kMallocArena,
  kMallocMmap,
  kTensor,
  kNumpy,
  kThreadStack,
  kSharedMemory,
  kPinnedHost,
  kCudaDevice,
  kCudaManaged,
  kFileMapping,
  kLibrary,
  kJitCode,
  kOtherAllocator,
  kAnonOther,
  kSwap,
};

inline constexpr std::size_t kSourceCount = 17;

// "python_arena", "malloc_heap", … as contract.md's `sources[].source`.
std::string_view source_name(Source source);
std::optional<Source> source_from_name(std::string_view name);

// Bytes for each source; the sum over all of them is a process's memory.
class SourceBytes {
 public:
  std::int64_t& operator[](Source source) { return bytes_[static_cast<std::size_t>(source)]; }
  std::int64_t operator[](Source source) const { return bytes_[static_cast<std::size_t>(source)]; }
  // Both wrap instead of overflowing: absurd figures from a target must not break the laws of the books.
  void add(Source source, std::uint64_t bytes);
  void take(Source source, std::uint64_t bytes) { add(source, 0 - bytes); }
  std::int64_t total() const;
  bool operator==(const SourceBytes&) const = default;

 private:
  std::array<std::int64_t, kSourceCount> bytes_{};
};

}  // namespace torchleak
