// SPDX-License-Identifier: Apache-2.0
// What glibc's malloc does: the heap, an arena of a thread's own, a mapping a large block.
#include <array>
#include <cstdlib>
#include <thread>

#include "stage.hpp"

namespace torchleak::workload {
namespace {

constexpr std::size_t kSmallBytes = 1008;                       // a chunk of 1,024 with its header
constexpr std::uint64_t kArenaBytes = std::uint64_t{64} << 20;  // where arenas begin

struct Extent {
  std::uint64_t begin = ~std::uint64_t{0};
  std::uint64_t end = 0;
};

// Small blocks until they take `bytes` in all, each written to. Where they lie tells how many pages they
// took.
Extent take_small_blocks(std::size_t bytes) {
  Extent extent;
  for (std::size_t taken = 0; taken < bytes; taken += kSmallBytes + 16) {
    auto* block = static_cast<volatile char*>(std::malloc(kSmallBytes));
    require(block != nullptr, "malloc");
    block[0] = 1;
    block[kSmallBytes - 1] = 1;
    const auto address = reinterpret_cast<std::uintptr_t>(block);
    extent.begin = std::min<std::uint64_t>(extent.begin, address);
    extent.end = std::max<std::uint64_t>(extent.end, address + kSmallBytes);
  }
  return extent;
}

int run_malloc_small(const Stage& stage) {
  const std::size_t bytes = stage.number("bytes");
  stage.ready();
  const Extent extent = take_small_blocks(bytes);
  stage.done({{"bytes", extent.end - extent.begin}});
  return 0;
}

// The first malloc of a second thread makes an arena for it, whose own books lie at its beginning.
int run_malloc_arena(const Stage& stage) {
  const std::size_t bytes = stage.number("bytes");
  stage.ready();
  Extent extent;
  std::thread([&] { extent = take_small_blocks(bytes); }).join();
  stage.done({{"bytes", extent.end - extent.begin / kArenaBytes * kArenaBytes}});
  return 0;
}

int run_malloc_large(const Stage& stage) {
  const std::size_t bytes = stage.number("bytes");
  stage.ready();
  void* block = std::malloc(bytes);
  require(block != nullptr, "malloc");
  touch(block, bytes);
  stage.done({{"bytes", bytes}});
  std::free(block);
  return 0;
}

}  // namespace

std::span<const Entry> malloc_workloads() {
  static constexpr std::array kEntries = {
      Entry{"malloc-small", run_malloc_small},
      Entry{"malloc-arena", run_malloc_arena},
      Entry{"malloc-large", run_malloc_large},
  };
  return kEntries;
}

}  // namespace torchleak::workload
