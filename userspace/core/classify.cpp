// SPDX-License-Identifier: Apache-2.0
#include "torchleak/core/classify.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <charconv>
#include <string_view>
#include <unordered_set>
#include <utility>

namespace torchleak {
namespace {

constexpr std::uint64_t kKiB = 1024;
constexpr std::uint64_t kMiB = 1024 * kKiB;
constexpr std::uint64_t kGlibcHeapBytes = 64 * kMiB;  // HEAP_MAX_SIZE on 64 bits
constexpr std::uint64_t kMaxGuardBytes = 64 * kKiB;
constexpr std::uint64_t kMinStackBytes = 16 * kKiB;  // PTHREAD_STACK_MIN
constexpr std::uint64_t kMaxStackBytes = 1024 * kMiB;
// Beyond this, what lies behind a library is not its .bss but something the kernel merged with it.
constexpr std::uint64_t kMaxBssBytes = 64 * kMiB;
constexpr std::uint64_t kMinMmapBlockBytes = 128 * kKiB;  // M_MMAP_THRESHOLD as it starts
constexpr std::uint32_t kTmpfsMagic = 0x01021994;
constexpr std::uint32_t kHugetlbfsMagic = 0x958458f6;
constexpr std::uint32_t kPrivateAnonymous = MAP_PRIVATE | MAP_ANONYMOUS;
constexpr std::uint32_t kReadWrite = PROT_READ | PROT_WRITE;

std::string_view without_deleted(std::string_view path) {
  constexpr std::string_view kDeleted = " (deleted)";
  return path.ends_with(kDeleted) ? path.substr(0, path.size() - kDeleted.size()) : path;
}

std::string_view base_name(std::string_view path) {
  path = without_deleted(path);
  return path.substr(path.rfind('/') + 1);
}

// "libc.so", "libc.so.6" and "_x.cpython-311-x86_64-linux-gnu.so", but not "notes.socks".
bool is_library_name(std::string_view path) {
  const std::string_view name = base_name(path);
  for (auto at = name.find(".so"); at != std::string_view::npos; at = name.find(".so", at + 1)) {
    const std::string_view rest = name.substr(at + 3);
    if (rest.empty() ||
        (rest.front() == '.' && rest.find_first_not_of("0123456789.") == std::string_view::npos)) {
      return true;
    }
  }
  return false;
}

bool names_other_allocator(std::string_view name) {
  return name.find("jemalloc") != std::string_view::npos || name.find("tcmalloc") != std::string_view::npos ||
         name.find("mimalloc") != std::string_view::npos;
}

struct PythonBuild {
  unsigned minor = 0;
  bool free_threaded = false;
};

// From "python3.11", "python3.13t", "libpython3.6m.so.1.0".
std::optional<PythonBuild> python_build(std::string_view name) {
  if (name.starts_with("lib")) {
    name.remove_prefix(3);
  }
  constexpr std::string_view kPrefix = "python3.";
  if (!name.starts_with(kPrefix)) {
    return std::nullopt;
  }
  name.remove_prefix(kPrefix.size());
  PythonBuild build;
  const auto [rest, error] = std::from_chars(name.data(), name.data() + name.size(), build.minor);
  if (error != std::errc{}) {
    return std::nullopt;
  }
  name.remove_prefix(static_cast<std::size_t>(rest - name.data()));
  const std::string_view abi = name.substr(0, name.find_first_not_of("dmut"));
  build.free_threaded = abi.find('t') != std::string_view::npos;
  name.remove_prefix(abi.size());
  return name.empty() || name.starts_with(".so") ? std::optional(build) : std::nullopt;
}

bool is_anonymous(const VmaFacts& vma) {
  return vma.name.empty() && !vma.shared;
}

bool is_reserve(const VmaFacts& vma) {
  return is_anonymous(vma) && !vma.readable && !vma.writable && !vma.executable;
}

bool is_read_write(const VmaFacts& vma) {
  return is_anonymous(vma) && vma.readable && vma.writable && !vma.executable;
}

std::uint64_t size_of(const VmaFacts& vma) {
  return vma.end - vma.begin;
}

bool is_shared_memory_path(const VmaFacts& vma) {
  const std::string_view name = vma.name;
  if (name.starts_with("/dev/shm/") || name.starts_with("/memfd:") || name.starts_with("/SYSV")) {
    return true;
  }
  return vma.shared && (name.starts_with("/dev/zero") || name.starts_with("/run/") ||
                        name.starts_with("/anon_hugepage") || name.starts_with("/dev/hugepages/"));
}

// The names that brackets hold: the kernel's own, and those that PR_SET_VMA_ANON_NAME gave.
std::optional<Source> classify_bracketed(std::string_view name) {
  if (name == "[heap]") {
    return Source::kMallocHeap;
  }
  if (name.starts_with("[stack")) {  // "[stack:TID]" up to Linux 4.4
    return Source::kThreadStack;
  }
  if (name.starts_with("[vdso") || name.starts_with("[vvar") || name.starts_with("[vsyscall") ||
      name.starts_with("[uprobes")) {
    return Source::kLibrary;
  }
  if (name.starts_with("[anon_shmem:")) {
    return Source::kSharedMemory;
  }
  if (!name.starts_with("[anon:")) {
    return std::nullopt;
  }
  // glibc 2.39 and later, with the tunable glibc.mem.decorate_maps.
  if (name.find("glibc: malloc arena") != std::string_view::npos) {
    return Source::kMallocArena;
  }
  if (name.find("glibc: malloc") != std::string_view::npos) {
    return Source::kMallocMmap;
  }
  if (name.find("glibc: pthread") != std::string_view::npos) {
    return Source::kThreadStack;
  }
  if (name.find("glibc: loader malloc") != std::string_view::npos) {
    return Source::kLibrary;
  }
  if (names_other_allocator(name)) {
    return Source::kOtherAllocator;
  }
  if (name.find("cpython:pymalloc") != std::string_view::npos) {  // CPython 3.15
    return Source::kPythonArena;
  }
  return std::nullopt;
}

class AddressSpaceClassifier {
 public:
  AddressSpaceClassifier(std::span<const VmaFacts> vmas, const ProcessTraits& traits)
      : vmas_(vmas), traits_(traits) {
    for (const VmaFacts& vma : vmas) {
      if (vma.executable && !vma.name.empty()) {
        programs_.insert(vma.name);
      }
    }
  }

  std::vector<Source> run() {
    for (std::size_t i = 0; i < vmas_.size(); ++i) {
      sources_.push_back(is_anonymous(vmas_[i]) ? classify_anonymous(i) : classify_named(vmas_[i]));
    }
    return std::move(sources_);
  }

 private:
  Source classify_named(const VmaFacts& vma) const {
    if (vma.name.starts_with('[')) {
      const auto source = classify_bracketed(vma.name);
      return source ? *source : vma.executable ? Source::kJitCode : unnamed();
    }
    if (vma.name.empty()) {
      return Source::kSharedMemory;
    }
    if (vma.name.starts_with("/anon_hugepage") && !vma.shared) {
      return unnamed();
    }
    if (is_shared_memory_path(vma) && !is_library_name(vma.name)) {
      // libffi and JITs map one memfd twice, writable and executable.
      return vma.executable ? Source::kJitCode : Source::kSharedMemory;
    }
    const bool library = is_library_name(vma.name) || programs_.contains(vma.name);
    return library ? Source::kLibrary : Source::kFileMapping;
  }

  Source classify_anonymous(std::size_t i) const {
    const VmaFacts& vma = vmas_[i];
    if (vma.executable) {
      return Source::kJitCode;
    }
    // What a header proves beats what place and size suggest: arenas do come to lie right behind a library.
    if (vma.chunk == ChunkHeader::kMallocMmap) {
      return Source::kMallocMmap;
    }
    if (vma.chunk == ChunkHeader::kPythonArena) {
      return Source::kPythonArena;
    }
    if (vma.chunk == ChunkHeader::kGlibcHeap) {
      return Source::kMallocArena;
    }
    if (is_glibc_heap(i) || (is_reserve(vma) && i > 0 && touches(i - 1) && is_glibc_heap(i - 1))) {
      return Source::kMallocArena;
    }
    if (is_stack(i) || (is_reserve(vma) && is_stack(i + 1))) {
      return Source::kThreadStack;
    }
    if (is_bss(i)) {
      return Source::kLibrary;
    }
    if (has_python_arena_size(vma)) {
      return Source::kPythonArena;
    }
    return unnamed();
  }

  Source unnamed() const { return traits_.other_allocator ? Source::kOtherAllocator : Source::kAnonOther; }

  bool touches(std::size_t i) const { return i + 1 < vmas_.size() && vmas_[i].end == vmas_[i + 1].begin; }

  // Heaps that are full may be merged with the one behind them, so the length is any multiple.
  bool is_glibc_heap(std::size_t i) const {
    const VmaFacts& vma = vmas_[i];
    if (vma.chunk == ChunkHeader::kGlibcHeap) {
      return true;
    }
    if (!is_read_write(vma) || vma.begin % kGlibcHeapBytes != 0 || vma.chunk != ChunkHeader::kUnread) {
      return false;
    }
    return vma.end % kGlibcHeapBytes == 0 ||
           (touches(i) && is_reserve(vmas_[i + 1]) && size_of(vmas_[i + 1]) < kGlibcHeapBytes &&
            vmas_[i + 1].end % kGlibcHeapBytes == 0);
  }

  bool is_stack(std::size_t i) const {
    if (i == 0 || i >= vmas_.size() || !touches(i - 1)) {
      return false;
    }
    const VmaFacts& vma = vmas_[i];
    const bool proven_other = vma.chunk == ChunkHeader::kMallocMmap || vma.chunk == ChunkHeader::kPythonArena;
    return is_read_write(vma) && !proven_other && size_of(vma) >= kMinStackBytes &&
           size_of(vma) <= kMaxStackBytes && is_reserve(vmas_[i - 1]) &&
           size_of(vmas_[i - 1]) <= kMaxGuardBytes && !is_glibc_heap(i);
  }

  bool is_bss(std::size_t i) const {
    return i > 0 && touches(i - 1) && is_read_write(vmas_[i]) && size_of(vmas_[i]) <= kMaxBssBytes &&
           vmas_[i - 1].name.starts_with('/') && sources_[i - 1] == Source::kLibrary;
  }

  bool has_python_arena_size(const VmaFacts& vma) const {
    return traits_.python_arena_bytes != 0 && vma.chunk == ChunkHeader::kUnread && is_read_write(vma) &&
           size_of(vma) > 0 && size_of(vma) % traits_.python_arena_bytes == 0;
  }

  std::span<const VmaFacts> vmas_;
  const ProcessTraits& traits_;
  std::unordered_set<std::string_view> programs_;
  std::vector<Source> sources_;
};

Source classify_file_mmap(const MmapFacts& facts) {
  const bool in_memory = facts.filesystem == kTmpfsMagic || facts.filesystem == kHugetlbfsMagic;
  const bool shared = (facts.flags & MAP_SHARED) != 0;
  const bool shared_name = facts.name.starts_with("memfd:") || facts.name.starts_with("torch_");
  if (in_memory && (shared || shared_name)) {
    return (facts.protection & PROT_EXEC) != 0 ? Source::kJitCode : Source::kSharedMemory;
  }
  const bool library = is_library_name(facts.name) || (facts.protection & PROT_EXEC) != 0;
  return library ? Source::kLibrary : Source::kFileMapping;
}

// glibc's new_heap: 64 MiB where it hopes to be aligned, else 128 MiB of which it keeps the aligned half.
bool is_glibc_heap_reservation(const MmapFacts& facts) {
  return facts.protection == PROT_NONE && facts.flags == (kPrivateAnonymous | MAP_NORESERVE) &&
         ((facts.length == kGlibcHeapBytes && facts.address % kGlibcHeapBytes == 0) ||
          facts.length == 2 * kGlibcHeapBytes);
}

}  // namespace

ChunkHeader read_chunk_header(std::uint64_t size_field, std::uint64_t available, std::uint64_t page_bytes) {
  constexpr std::uint64_t kIsMmapped = 2;
  const std::uint64_t size = size_field - size_field % page_bytes;
  const bool block = size_field % page_bytes == kIsMmapped && size > 0 && size <= available;
  return block ? ChunkHeader::kMallocMmap : ChunkHeader::kOther;
}

// struct pool_header { u32 count; u32 pad; void *freeblock, *next, *prev; u32 arenaindex, szidx, nextoffset,
// maxnextoffset; }. Blocks are multiples of 16 bytes, of 8 before CPython 3.7.4.
bool is_python_pool(const PoolWords& words, std::uint64_t address, std::uint64_t pool_bytes) {
  constexpr std::uint64_t kHeaderBytes = 48;
  constexpr std::uint64_t kMaxBlockBytes = 512;
  const std::uint64_t count = words[0] & 0xffffffff;
  const std::uint64_t free_block = words[1];
  const std::uint64_t size_index = words[4] >> 32;
  const std::uint64_t next_offset = words[5] & 0xffffffff;
  const std::uint64_t max_next_offset = words[5] >> 32;
  const bool free_block_inside =
      free_block == 0 || (free_block >= address + kHeaderBytes && free_block - address < pool_bytes);
  const auto fits = [&](std::uint64_t alignment) {
    const std::uint64_t block_bytes = (size_index + 1) * alignment;
    return block_bytes <= kMaxBlockBytes && max_next_offset == pool_bytes - block_bytes &&
           next_offset >= kHeaderBytes && next_offset <= pool_bytes && count * block_bytes <= pool_bytes;
  };
  return pool_bytes > kMaxBlockBytes && free_block_inside && (fits(16) || fits(8));
}

// struct heap_info { mstate ar_ptr; heap_info *prev; size_t size, mprotect_size; … }. The arena itself lies
// behind the heap_info of its first heap, which is 32 bytes long, 48 from glibc 2.35 on.
std::uint64_t glibc_heap_bytes(const PoolWords& words, std::uint64_t address, std::uint64_t page_bytes) {
  const auto [arena, previous, size, writable, unused1, unused2] = words;
  const std::uint64_t offset = arena % kGlibcHeapBytes;
  const bool first = arena - offset == address;
  const bool linked = previous % kGlibcHeapBytes == 0 && (previous == 0) == first;
  const bool sized = size > 0 && size <= writable && writable <= kGlibcHeapBytes && size % page_bytes == 0 &&
                     writable % page_bytes == 0;
  return address % kGlibcHeapBytes == 0 && (offset == 32 || offset == 48) && linked && sized ? writable : 0;
}

ProcessTraits traits_of(std::span<const VmaFacts> vmas) {
  ProcessTraits traits;
  for (const VmaFacts& vma : vmas) {
    if (!vma.name.starts_with('/')) {
      continue;
    }
    const std::string_view name = base_name(vma.name);
    if (is_library_name(name) && names_other_allocator(name)) {
      traits.other_allocator = true;
    }
    const auto python = python_build(name);
    if (python && python->free_threaded) {  // objects live in a mimalloc of its own
      traits.other_allocator = true;
    } else if (python) {
      traits.python_arena_bytes = python->minor <= 9 ? 256 * kKiB : kMiB;
    }
  }
  return traits;
}

std::vector<Source> classify_address_space(std::span<const VmaFacts> vmas, const ProcessTraits& traits) {
  return AddressSpaceClassifier(vmas, traits).run();
}

Source classify_mmap(const MmapFacts& facts, const ProcessTraits& traits) {
  const Source unnamed = traits.other_allocator ? Source::kOtherAllocator : Source::kAnonOther;
  if ((facts.flags & MAP_STACK) != 0) {
    return Source::kThreadStack;
  }
  if (facts.file_backed) {
    return classify_file_mmap(facts);
  }
  if ((facts.flags & MAP_SHARED) != 0) {
    return Source::kSharedMemory;
  }
  if ((facts.protection & PROT_EXEC) != 0) {
    return Source::kJitCode;
  }
  if (facts.chunk == ChunkHeader::kMallocMmap) {
    return Source::kMallocMmap;
  }
  if (facts.chunk == ChunkHeader::kPythonArena) {
    return Source::kPythonArena;
  }
  if (is_glibc_heap_reservation(facts)) {
    return Source::kMallocArena;
  }
  const bool plain = facts.flags == kPrivateAnonymous && facts.protection == kReadWrite;
  if (plain && facts.length != 0 && facts.length == traits.python_arena_bytes) {
    return Source::kPythonArena;
  }
  const bool like_malloc = plain && facts.chunk == ChunkHeader::kUnread &&
                           facts.length >= kMinMmapBlockBytes && facts.length % (4 * kKiB) == 0;
  return like_malloc && !traits.other_allocator ? Source::kMallocMmap : unnamed;
}

std::optional<Source> classify_protect(Source now, std::uint64_t mapping_begin, std::uint32_t protection) {
  const bool anonymous = now == Source::kAnonOther || now == Source::kOtherAllocator;
  if (anonymous && (protection & PROT_EXEC) != 0) {
    return Source::kJitCode;
  }
  if (anonymous && (protection & PROT_WRITE) != 0 && mapping_begin % kGlibcHeapBytes == 0) {
    return Source::kMallocArena;
  }
  return std::nullopt;
}

}  // namespace torchleak
