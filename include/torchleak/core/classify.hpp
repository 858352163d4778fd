// SPDX-License-Identifier: Apache-2.0
// Gives every byte of address space its source, from what the kernel says of a mapping and from what its
// first bytes look like. Pure: whoever calls has read the facts.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "torchleak/core/source.hpp"

namespace torchleak {

// What the first bytes of a stretch of anonymous memory prove. glibc gives a large block a mapping of its
// own, whose chunk header holds the length of the mapping with the IS_MMAPPED bit; a CPython object arena
// begins with a pool, a heap of a glibc arena with a heap_info. kOther: they were read and prove nothing.
enum class ChunkHeader : std::uint8_t { kUnread, kMallocMmap, kOther, kPythonArena, kGlibcHeap };

// Reads a chunk header: `size_field` is the second word of the mapping, `available` the bytes up to its end.
ChunkHeader read_chunk_header(std::uint64_t size_field, std::uint64_t available, std::uint64_t page_bytes);

// The first 48 bytes of a CPython pool: struct pool_header on 64 bits, unchanged from 3.6 to 3.13.
using PoolWords = std::array<std::uint64_t, 6>;

// Whether `words`, read at `address`, are a pool header. Its maxnextoffset is the pool size less one block,
// exactly, which chance hardly forges.
bool is_python_pool(const PoolWords& words, std::uint64_t address, std::uint64_t pool_bytes);

// The bytes of a glibc arena's heap that are in use, where `words`, read at `address`, are its heap_info;
// else 0. Place and length prove nothing by themselves: from Linux 6.7 on large mappings are aligned to 2
// MiB, and every 32nd of them to the 64 MiB at which glibc's heaps begin.
std::uint64_t glibc_heap_bytes(const PoolWords& words, std::uint64_t address, std::uint64_t page_bytes);

// Facts about the whole process that decide between readings of one mapping.
struct ProcessTraits {
  std::uint64_t python_arena_bytes = 0;  // 256 KiB up to CPython 3.9, 1 MiB from 3.10, 0 without Python
  bool other_allocator = false;  // jemalloc, tcmalloc or mimalloc is mapped, or Python is free-threaded

  // Pools are 4 KiB in arenas of 256 KiB, 16 KiB in those of 1 MiB; each is aligned to its size, an arena to
  // a page.
  std::uint64_t python_pool_bytes() const { return python_arena_bytes / 64; }
  bool operator==(const ProcessTraits&) const = default;
};

// One line of /proc/PID/maps.
struct VmaFacts {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  bool readable = false;
  bool writable = false;
  bool executable = false;
  bool shared = false;
  std::uint64_t offset = 0;
  std::uint64_t inode = 0;
  std::string name;  // path or [name], empty where anonymous
  ChunkHeader chunk = ChunkHeader::kUnread;
  bool operator==(const VmaFacts&) const = default;
};

// Learns the traits from the names in the address space (python3.11, libpython3.9.so, libjemalloc.so.2, …).
ProcessTraits traits_of(std::span<const VmaFacts> vmas);

// The source of each mapping of an address space, in the order given (ascending, as the kernel lists them).
std::vector<Source> classify_address_space(std::span<const VmaFacts> vmas, const ProcessTraits& traits);

// One successful mmap, seen as it happened.
struct MmapFacts {
  std::uint64_t address = 0;
  std::uint64_t length = 0;
  std::uint32_t protection = 0;  // PROT_*
  std::uint32_t flags = 0;       // MAP_*
  bool file_backed = false;
  std::uint32_t filesystem = 0;  // super block magic
  std::string name;              // last path component
  ChunkHeader chunk = ChunkHeader::kUnread;
};

Source classify_mmap(const MmapFacts& facts, const ProcessTraits& traits);

// A range that was reserved without access and is now made writable: the way glibc grows an arena. The new
// source, or nullopt where the protection says nothing.
std::optional<Source> classify_protect(Source now, std::uint64_t mapping_begin, std::uint32_t protection);

}  // namespace torchleak
