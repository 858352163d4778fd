// SPDX-License-Identifier: Apache-2.0
// Private anonymous memory: mmap, brk, mremap, munmap, madvise, huge pages, faults in the kernel.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>

#include "stage.hpp"

namespace torchleak::workload {
namespace {

int run_mmap(const Stage& stage) {
  const std::size_t bytes = stage.number("bytes");
  const std::size_t touched = stage.number("touched", bytes);
  stage.ready();
  std::byte* memory = map_private(bytes);
  touch(memory, touched);
  stage.done({{"bytes", touched}});
  return 0;
}

// Begins where glibc's arenas do.
int run_mmap_aligned(const Stage& stage) {
  constexpr std::size_t kArenaBytes = std::size_t{64} << 20;
  const std::size_t bytes = stage.number("bytes");
  stage.ready();
  std::byte* room = map_private(bytes + kArenaBytes);
  const std::size_t before = kArenaBytes - reinterpret_cast<std::uintptr_t>(room) % kArenaBytes;
  require(::munmap(room, before) == 0, "munmap");
  require(before == kArenaBytes || ::munmap(room + before + bytes, kArenaBytes - before) == 0, "munmap");
  touch(room + before, bytes);
  stage.done({{"bytes", bytes}});
  return 0;
}

int run_brk(const Stage& stage) {
  const std::size_t bytes = stage.number("bytes");
  stage.ready();
  void* memory = ::sbrk(static_cast<std::intptr_t>(bytes));
  require(memory != reinterpret_cast<void*>(-1), "sbrk");
  touch(memory, bytes);
  stage.done({{"bytes", bytes}});
  return 0;
}

// Grown to twice its length; the page behind it is taken, so that it has to move.
int run_mremap(const Stage& stage) {
  const std::size_t bytes = stage.number("bytes");
  stage.ready();
  std::byte* room = map_private(bytes + page_bytes());
  touch(room, bytes);
  require(::mprotect(room + bytes, page_bytes(), PROT_NONE) == 0, "mprotect");
  void* grown = ::mremap(room, bytes, 2 * bytes, MREMAP_MAYMOVE);
  require(grown != MAP_FAILED, "mremap");
  touch(static_cast<std::byte*>(grown) + bytes, bytes);
  stage.done({{"bytes", 2 * bytes}, {"moved", grown != room ? 1U : 0U}});
  return 0;
}

// `before`: the memory is taken before the tracer attaches, else while it watches.
std::byte* take(const Stage& stage, std::size_t bytes) {
  const bool before = stage.number("before") != 0;
  if (!before) {
    stage.ready();
  }
  std::byte* memory = map_private(bytes);
  touch(memory, bytes);
  if (before) {
    stage.ready();
  }
  return memory;
}

// The middle half goes.
int run_munmap_part(const Stage& stage) {
  const std::size_t bytes = stage.number("bytes");
  std::byte* memory = take(stage, bytes);
  require(::munmap(memory + bytes / 4, bytes / 2) == 0, "munmap");
  stage.done({{"freed", bytes / 2}});
  return 0;
}

int run_madvise(const Stage& stage) {
  const std::size_t bytes = stage.number("bytes");
  std::byte* memory = take(stage, bytes);
  require(::madvise(memory, bytes / 2, static_cast<int>(stage.number("advice"))) == 0, "madvise");
  stage.done({{"advised", bytes / 2}});
  return 0;
}

int run_huge(const Stage& stage) {
  constexpr std::size_t kHugeBytes = std::size_t{2} << 20;
  const std::size_t bytes = stage.number("bytes");
  stage.ready();
  std::byte* room = map_private(bytes + kHugeBytes);
  const auto address = reinterpret_cast<std::uintptr_t>(room);
  std::byte* memory = room + (kHugeBytes - address % kHugeBytes) % kHugeBytes;
  require(::madvise(memory, bytes, MADV_HUGEPAGE) == 0, "madvise");
  touch(memory, bytes);
  stage.done({{"bytes", bytes}});
  return 0;
}

// read() writes into fresh memory, so the kernel takes the faults.
int run_kernel_fault(const Stage& stage) {
  const std::size_t bytes = stage.number("bytes");
  const int zero = ::open("/dev/zero", O_RDONLY | O_CLOEXEC);
  require(zero >= 0, "/dev/zero");
  stage.ready();
  std::byte* memory = map_private(bytes);
  for (std::size_t at = 0; at < bytes;) {
    const ssize_t got = ::read(zero, memory + at, bytes - at);
    require(got > 0, "read");
    at += static_cast<std::size_t>(got);
  }
  stage.done({{"bytes", bytes}});
  return 0;
}

// One mapping a page, readable and writable in turn, so that no two of them merge. The writable are touched.
int run_many_mappings(const Stage& stage) {
  const std::size_t count = stage.number("count");
  std::byte* room = map_private(count * page_bytes());
  stage.ready();
  for (std::size_t i = 0; i < count; ++i) {
    const int protection = i % 2 == 0 ? PROT_READ | PROT_WRITE : PROT_READ;
    void* page = ::mmap(room + i * page_bytes(), page_bytes(), protection,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    require(page != MAP_FAILED, "mmap");
    if (i % 2 == 0) {
      touch(page, page_bytes());
    }
  }
  stage.done({{"bytes", (count + 1) / 2 * page_bytes()}});
  return 0;
}

// Takes memory, then looks at all of it again: under a limit the first pushes it out, the second brings it
// in.
int run_take_and_look_again(const Stage& stage) {
  const std::size_t bytes = stage.number("bytes");
  stage.ready();
  std::byte* memory = map_private(bytes);
  touch(memory, bytes);
  stage.done({{"bytes", bytes}});
  look_at(memory, bytes);
  stage.done({{"bytes", bytes}});
  return 0;
}

}  // namespace

std::span<const Entry> anonymous_workloads() {
  static constexpr std::array kEntries = {
      Entry{"mmap", run_mmap},
      Entry{"mmap-aligned", run_mmap_aligned},
      Entry{"brk", run_brk},
      Entry{"mremap", run_mremap},
      Entry{"munmap-part", run_munmap_part},
      Entry{"madvise", run_madvise},
      Entry{"huge", run_huge},
      Entry{"kernel-fault", run_kernel_fault},
      Entry{"many-mappings", run_many_mappings},
      Entry{"take-and-look-again", run_take_and_look_again},
  };
  return kEntries;
}

}  // namespace torchleak::workload
