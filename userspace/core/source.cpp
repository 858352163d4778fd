// SPDX-License-Identifier: Apache-2.0
#include "torchleak/core/source.hpp"

#include <algorithm>
#include <cassert>

namespace torchleak {
namespace {

// In the order of the enumeration.
constexpr std::array<std::string_view, kSourceCount> kNames = {
    "python_arena", "malloc_heap",   "malloc_arena",    "malloc_mmap", "tensor",       "numpy",
    "thread_stack", "shared_memory", "pinned_host",     "cuda_device", "cuda_managed", "file_mapping",
    "library",      "jit_code",      "other_allocator", "anon_other",  "swap",
};
static_assert(static_cast<std::size_t>(Source::kSwap) + 1 == kSourceCount);
static_assert(kNames[static_cast<std::size_t>(Source::kSwap)] == "swap");

}  // namespace

std::string_view source_name(Source source) {
  const auto index = static_cast<std::size_t>(source);
  assert(index < kNames.size());
  return kNames[index];
}

std::optional<Source> source_from_name(std::string_view name) {
  const auto found = std::ranges::find(kNames, name);
  if (found == kNames.end()) {
    return std::nullopt;
  }
  return static_cast<Source>(found - kNames.begin());
}

void SourceBytes::add(Source source, std::uint64_t bytes) {
  (*this)[source] = static_cast<std::int64_t>(static_cast<std::uint64_t>((*this)[source]) + bytes);
}

std::int64_t SourceBytes::total() const {
  // Unsigned, so that absurd figures wrap instead of being undefined.
  std::uint64_t sum = 0;
  for (const std::int64_t bytes : bytes_) {
    sum += static_cast<std::uint64_t>(bytes);
  }
  return static_cast<std::int64_t>(sum);
}

}  // namespace torchleak
