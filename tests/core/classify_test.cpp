// SPDX-License-Identifier: Apache-2.0
#include "torchleak/core/classify.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <string_view>

namespace torchleak {
namespace {

constexpr std::uint64_t kKiB = 1024;
constexpr std::uint64_t kMiB = 1024 * kKiB;
constexpr std::uint64_t kPage = 4 * kKiB;
constexpr std::uint64_t kBase = 0x7f0000000000;  // a multiple of 64 MiB
constexpr std::uint32_t kPrivateAnonymous = MAP_PRIVATE | MAP_ANONYMOUS;
constexpr ProcessTraits kPython311{.python_arena_bytes = kMiB, .other_allocator = false};
constexpr ProcessTraits kJemalloc{.python_arena_bytes = 0, .other_allocator = true};

VmaFacts vma(std::uint64_t begin, std::uint64_t bytes, std::string_view permissions, std::string name = "",
             ChunkHeader chunk = ChunkHeader::kUnread) {
  VmaFacts facts;
  facts.begin = begin;
  facts.end = begin + bytes;
  facts.readable = permissions[0] == 'r';
  facts.writable = permissions[1] == 'w';
  facts.executable = permissions[2] == 'x';
  facts.shared = permissions[3] == 's';
  facts.name = std::move(name);
  facts.chunk = chunk;
  return facts;
}

std::vector<Source> classify(const std::vector<VmaFacts>& vmas, const ProcessTraits& traits = {}) {
  return classify_address_space(vmas, traits);
}

Source classify_one(std::string_view permissions, std::string name) {
  return classify({vma(kBase + kPage, kMiB, permissions, std::move(name))}).front();
}

Source classify_anonymous(std::uint64_t bytes, ChunkHeader chunk, const ProcessTraits& traits) {
  return classify({vma(kBase + kPage, bytes, "rw-p", "", chunk)}, traits).front();
}

using Sources = std::vector<Source>;

TEST(ReadChunkHeader, TellsABlockOfItsOwnByItsSizeAndTheMmappedBit) {
  EXPECT_EQ(read_chunk_header(548 * kKiB | 2, 548 * kKiB, kPage), ChunkHeader::kMallocMmap);
  EXPECT_EQ(read_chunk_header(548 * kKiB | 2, 2 * kMiB, kPage), ChunkHeader::kMallocMmap);
  EXPECT_EQ(read_chunk_header(548 * kKiB | 2, 548 * kKiB - kPage, kPage), ChunkHeader::kOther);
  EXPECT_EQ(read_chunk_header(548 * kKiB | 1, 548 * kKiB, kPage), ChunkHeader::kOther);
  EXPECT_EQ(read_chunk_header(548 * kKiB | 0x12, 548 * kKiB, kPage), ChunkHeader::kOther);
  EXPECT_EQ(read_chunk_header(2, kMiB, kPage), ChunkHeader::kOther);
  EXPECT_EQ(read_chunk_header(~0ULL, kMiB, kPage), ChunkHeader::kOther);
}

// A pool of 16 KiB with blocks of 64 bytes, 10 in use, read from a real CPython 3.11 in shape.
PoolWords pool_at(std::uint64_t address) {
  return {10, address + 48 + 64, 0, 0, 3ULL << 32 | 7, (16384ULL - 64) << 32 | 752};
}

TEST(IsPythonPool, KnowsAHeaderByTheOffsetOfItsLastBlock) {
  EXPECT_TRUE(is_python_pool(pool_at(kBase), kBase, 16384));
  EXPECT_FALSE(is_python_pool(pool_at(kBase), kBase, 4096)) << "the pools of another version";
  EXPECT_FALSE(is_python_pool(pool_at(kBase), kBase + kMiB, 16384)) << "a free block outside the pool";
  EXPECT_FALSE(is_python_pool({}, kBase, 16384));
  EXPECT_FALSE(is_python_pool({~0ULL, ~0ULL, ~0ULL, ~0ULL, ~0ULL, ~0ULL}, kBase, 16384));
  EXPECT_FALSE(is_python_pool(pool_at(kBase), kBase, 0));
}

TEST(IsPythonPool, KnowsTheEightByteStepsOfOldVersions) {
  const PoolWords words{1, 0, 0, 0, 2ULL << 32, (4096ULL - 24) << 32 | 72};
  EXPECT_TRUE(is_python_pool(words, kBase, 4096));
}

TEST(GlibcHeapBytes, AreProvenByTheHeapInfoAtItsBeginning) {
  constexpr std::uint64_t kNext = kBase + 64 * kMiB;
  EXPECT_EQ(glibc_heap_bytes({kBase + 48, 0, 132 * kKiB, 256 * kKiB, kPage, 0}, kBase, kPage), 256 * kKiB);
  EXPECT_EQ(glibc_heap_bytes({kBase + 32, 0, kPage, kPage, 0, 0}, kBase, kPage), kPage)
      << "before glibc 2.35";
  EXPECT_EQ(glibc_heap_bytes({kBase + 48, kBase, 64 * kMiB, 64 * kMiB, kPage, 0}, kNext, kPage), 64 * kMiB);
  EXPECT_EQ(glibc_heap_bytes({}, kBase, kPage), 0U) << "zeros";
  EXPECT_EQ(glibc_heap_bytes({kBase + 48, 0, 132 * kKiB, 128 * kMiB, kPage, 0}, kBase, kPage), 0U);
  EXPECT_EQ(glibc_heap_bytes({kNext + 48, 0, kPage, kPage, kPage, 0}, kBase, kPage), 0U) << "not the first";
  EXPECT_EQ(glibc_heap_bytes({kBase + 48, 0, kPage, kPage, kPage, 0}, kBase + kPage, kPage), 0U);
}

TEST(TraitsOf, KnowsTheArenaOfEachPythonByItsName) {
  const auto arena = [](std::string name) {
    return traits_of(std::vector{vma(kBase, kMiB, "r-xp", std::move(name))});
  };
  EXPECT_EQ(arena("/usr/bin/python3.11"), kPython311);
  EXPECT_EQ(arena("/opt/env/bin/python3.9").python_arena_bytes, 256 * kKiB);
  EXPECT_EQ(arena("/opt/lib/libpython3.6m.so.1.0").python_arena_bytes, 256 * kKiB);
  EXPECT_EQ(arena("/opt/lib/libpython3.13.so.1.0 (deleted)").python_arena_bytes, kMiB);
  EXPECT_EQ(arena("/opt/bin/python3.13t"), kJemalloc) << "a free-threaded Python has mimalloc";
  EXPECT_EQ(arena("/usr/lib/libpython3.so"), ProcessTraits{});
  EXPECT_EQ(arena("/usr/lib/python3.11/lib-dynload/_json.so"), ProcessTraits{});
  EXPECT_EQ(arena("/data/python3.11.tar"), ProcessTraits{});
  EXPECT_EQ(arena("/usr/bin/python3.99999999999999999999"), ProcessTraits{});
}

TEST(TraitsOf, NoticesAnotherAllocator) {
  for (const char* name :
       {"/usr/lib/libjemalloc.so.2", "/usr/lib/libtcmalloc_minimal.so.4", "/usr/lib/libmimalloc.so"}) {
    EXPECT_TRUE(traits_of(std::vector{vma(kBase, kMiB, "r-xp", name)}).other_allocator) << name;
  }
  EXPECT_FALSE(traits_of(std::vector{vma(kBase, kMiB, "r--p", "/data/jemalloc.txt")}).other_allocator);
}

TEST(ClassifyAddressSpace, TakesTheKernelsNamesAtTheirWord) {
  EXPECT_EQ(classify_one("rw-p", "[heap]"), Source::kMallocHeap);
  EXPECT_EQ(classify_one("rw-p", "[stack]"), Source::kThreadStack);
  EXPECT_EQ(classify_one("r-xp", "[vdso]"), Source::kLibrary);
  EXPECT_EQ(classify_one("r--p", "[vvar_vclock]"), Source::kLibrary);
  EXPECT_EQ(classify_one("--xp", "[vsyscall]"), Source::kLibrary);
}

TEST(ClassifyAddressSpace, TakesTheNamesThatAllocatorsGive) {
  EXPECT_EQ(classify_one("rw-p", "[anon: glibc: malloc arena]"), Source::kMallocArena);
  EXPECT_EQ(classify_one("rw-p", "[anon: glibc: malloc]"), Source::kMallocMmap);
  EXPECT_EQ(classify_one("rw-p", "[anon: glibc: pthread stack: 4711]"), Source::kThreadStack);
  EXPECT_EQ(classify_one("rw-p", "[anon: glibc: pthread user stack: 4711]"), Source::kThreadStack);
  EXPECT_EQ(classify_one("rw-p", "[anon: glibc: loader malloc]"), Source::kLibrary);
  EXPECT_EQ(classify_one("rw-p", "[anon:jemalloc_pg]"), Source::kOtherAllocator);
  EXPECT_EQ(classify_one("rw-p", "[anon:something]"), Source::kAnonOther);
  EXPECT_EQ(classify_one("rw-s", "[anon_shmem:ring]"), Source::kSharedMemory);
}

TEST(ClassifyAddressSpace, TellsSharedMemoryByItsPath) {
  EXPECT_EQ(classify_one("rw-s", "/dev/shm/torch_4711_123_0 (deleted)"), Source::kSharedMemory);
  EXPECT_EQ(classify_one("rw-s", "/memfd:pool (deleted)"), Source::kSharedMemory);
  EXPECT_EQ(classify_one("rw-s", "/SYSV00000000 (deleted)"), Source::kSharedMemory);
  EXPECT_EQ(classify_one("rw-s", "/dev/zero (deleted)"), Source::kSharedMemory);
  EXPECT_EQ(classify_one("r-xp", "/memfd:ffi (deleted)"), Source::kJitCode);
}

TEST(ClassifyAddressSpace, TellsLibrariesFromOtherFiles) {
  EXPECT_EQ(classify_one("r--p", "/usr/lib/libc.so.6"), Source::kLibrary);
  EXPECT_EQ(classify_one("r--p", "/usr/lib/libfoo-1.2.so (deleted)"), Source::kLibrary);
  EXPECT_EQ(classify_one("r--p", "/data/list.socks"), Source::kFileMapping);
  EXPECT_EQ(classify_one("r--s", "/data/train.bin"), Source::kFileMapping);
  EXPECT_EQ(classify_one("rw-s", "/dev/nvidiactl"), Source::kFileMapping);
}

TEST(ClassifyAddressSpace, CountsAllOfAProgramAndItsBssAsLibrary) {
  EXPECT_EQ(
      classify({vma(0x400000, kMiB, "r--p", "/usr/bin/python3.11"),
                vma(0x500000, kMiB, "r-xp", "/usr/bin/python3.11"),
                vma(0x600000, kMiB, "rw-p", "/usr/bin/python3.11"), vma(0x700000, kMiB, "rw-p"),
                vma(0x800000, kMiB, "rw-p")},
               kPython311),
      (Sources{Source::kLibrary, Source::kLibrary, Source::kLibrary, Source::kLibrary, Source::kPythonArena}))
      << "a .bss of 1 MiB is no arena; a second mapping is no .bss";
}

TEST(ClassifyAddressSpace, BelievesAHeaderMoreThanThePlaceBehindALibrary) {
  EXPECT_EQ(classify({vma(kBase, kMiB, "rw-p", "/usr/lib/libc.so.6"),
                      vma(kBase + kMiB, kMiB, "rw-p", "", ChunkHeader::kPythonArena)},
                     kPython311),
            (Sources{Source::kLibrary, Source::kPythonArena}));
  EXPECT_EQ(classify({vma(kBase, kMiB, "rw-p", "/usr/lib/libc.so.6"),
                      vma(kBase + kMiB, kMiB, "rw-p", "", ChunkHeader::kMallocMmap)},
                     kPython311),
            (Sources{Source::kLibrary, Source::kMallocMmap}));
}

TEST(ClassifyAddressSpace, FindsThreadStacksBehindTheirGuards) {
  EXPECT_EQ(
      classify({vma(kBase + kPage, kPage, "---p"), vma(kBase + 2 * kPage, 8 * kMiB, "rw-p")}, kPython311),
      (Sources{Source::kThreadStack, Source::kThreadStack}));
  EXPECT_EQ(classify({vma(kBase + kPage, kMiB, "---p"), vma(kBase + kPage + kMiB, 9 * kMiB + kPage, "rw-p")}),
            (Sources{Source::kAnonOther, Source::kAnonOther}))
      << "too large for a guard";
  EXPECT_EQ(classify({vma(kBase + kPage, kPage, "---p"), vma(kBase + 3 * kPage, 8 * kMiB + kPage, "rw-p")}),
            (Sources{Source::kAnonOther, Source::kAnonOther}))
      << "not adjacent";
}

TEST(ClassifyAddressSpace, FindsGlibcHeapsByTheirAlignment) {
  EXPECT_EQ(
      classify({vma(kBase, 132 * kKiB, "rw-p"), vma(kBase + 132 * kKiB, 64 * kMiB - 132 * kKiB, "---p")}),
      (Sources{Source::kMallocArena, Source::kMallocArena}));
  EXPECT_EQ(classify({vma(kBase, 64 * kMiB, "rw-p")}), Sources{Source::kMallocArena}) << "a full one";
  EXPECT_EQ(classify({vma(kBase, 65 * kMiB, "rw-p"), vma(kBase + 65 * kMiB, 63 * kMiB, "---p")}),
            (Sources{Source::kMallocArena, Source::kMallocArena}))
      << "a full one merged with the next";
  EXPECT_EQ(classify({vma(kBase - kPage, kPage, "---p"), vma(kBase, 132 * kKiB, "rw-p"),
                      vma(kBase + 132 * kKiB, 64 * kMiB - 132 * kKiB, "---p")}),
            (Sources{Source::kAnonOther, Source::kMallocArena, Source::kMallocArena}))
      << "no stack, whatever lies before it";
  EXPECT_EQ(classify({vma(kBase, 132 * kKiB, "rw-p"), vma(kBase + 132 * kKiB, kMiB, "---p")}),
            (Sources{Source::kAnonOther, Source::kAnonOther}));
}

TEST(ClassifyAddressSpace, KnowsPythonArenasByProofOrElseBySize) {
  EXPECT_EQ(classify_anonymous(3 * kMiB, ChunkHeader::kPythonArena, {}), Source::kPythonArena);
  EXPECT_EQ(classify_anonymous(3 * kMiB, ChunkHeader::kUnread, kPython311), Source::kPythonArena);
  EXPECT_EQ(classify_anonymous(3 * kMiB, ChunkHeader::kOther, kPython311), Source::kAnonOther);
  EXPECT_EQ(classify_anonymous(3 * kMiB, ChunkHeader::kMallocMmap, kPython311), Source::kMallocMmap);
  EXPECT_EQ(classify_anonymous(3 * kMiB + kPage, ChunkHeader::kUnread, kPython311), Source::kAnonOther);
  EXPECT_EQ(classify_anonymous(3 * kMiB, ChunkHeader::kUnread, {}), Source::kAnonOther);
}

TEST(ClassifyAddressSpace, GivesTheRestToTheOtherAllocatorWhereThereIsOne) {
  EXPECT_EQ(classify_anonymous(3 * kMiB, ChunkHeader::kUnread, kJemalloc), Source::kOtherAllocator);
  EXPECT_EQ(classify({vma(kBase, kMiB, "rwxp")}, kJemalloc), Sources{Source::kJitCode});
}

TEST(ClassifyAddressSpace, AnswersForEveryMappingOfNone) {
  EXPECT_TRUE(classify({}).empty());
  EXPECT_EQ(classify({vma(kBase, kPage, "---p")}), Sources{Source::kAnonOther});
}

Source mapped(MmapFacts facts, const ProcessTraits& traits = kPython311) {
  return classify_mmap(facts, traits);
}

MmapFacts anonymous(std::uint64_t bytes, ChunkHeader chunk = ChunkHeader::kUnread) {
  MmapFacts facts;
  facts.address = kBase + kPage;
  facts.length = bytes;
  facts.protection = PROT_READ | PROT_WRITE;
  facts.flags = kPrivateAnonymous;
  facts.chunk = chunk;
  return facts;
}

MmapFacts file(std::string name, std::uint32_t flags, std::uint32_t filesystem,
               std::uint32_t protection = PROT_READ) {
  MmapFacts facts;
  facts.length = kMiB;
  facts.protection = protection;
  facts.flags = flags;
  facts.file_backed = true;
  facts.filesystem = filesystem;
  facts.name = std::move(name);
  return facts;
}

TEST(ClassifyMmap, ReadsAnonymousMemoryFromItsFlagsAndLength) {
  EXPECT_EQ(mapped(anonymous(kMiB)), Source::kPythonArena);
  EXPECT_EQ(mapped(anonymous(kMiB, ChunkHeader::kMallocMmap)), Source::kMallocMmap);
  EXPECT_EQ(mapped(anonymous(2 * kMiB)), Source::kMallocMmap);
  EXPECT_EQ(mapped(anonymous(2 * kMiB), kJemalloc), Source::kOtherAllocator);
  EXPECT_EQ(mapped(anonymous(2 * kMiB, ChunkHeader::kOther)), Source::kAnonOther);
  EXPECT_EQ(mapped(anonymous(2 * kMiB, ChunkHeader::kPythonArena)), Source::kPythonArena);
  EXPECT_EQ(mapped(anonymous(64 * kKiB)), Source::kAnonOther);

  MmapFacts stack = anonymous(8 * kMiB);
  stack.flags |= MAP_STACK;
  EXPECT_EQ(mapped(stack), Source::kThreadStack);
  MmapFacts shared = anonymous(8 * kMiB);
  shared.flags = MAP_SHARED | MAP_ANONYMOUS;
  EXPECT_EQ(mapped(shared), Source::kSharedMemory);
  MmapFacts code = anonymous(kMiB);
  code.protection |= PROT_EXEC;
  EXPECT_EQ(mapped(code), Source::kJitCode);
}

TEST(ClassifyMmap, TellsSharedMemoryByTheFileSystem) {
  constexpr std::uint32_t kTmpfs = 0x01021994;
  constexpr std::uint32_t kExt4 = 0xef53;
  EXPECT_EQ(mapped(file("torch_1_2_3", MAP_SHARED, kTmpfs)), Source::kSharedMemory);
  EXPECT_EQ(mapped(file("torch_1_2_3", MAP_PRIVATE, kTmpfs)), Source::kSharedMemory);
  EXPECT_EQ(mapped(file("train.bin", MAP_PRIVATE, kTmpfs)), Source::kFileMapping);
  EXPECT_EQ(mapped(file("pages", MAP_SHARED, 0x958458f6)), Source::kSharedMemory);
  EXPECT_EQ(mapped(file("train.bin", MAP_SHARED, kExt4)), Source::kFileMapping);
  EXPECT_EQ(mapped(file("libc10.so", MAP_PRIVATE, kExt4)), Source::kLibrary);
  EXPECT_EQ(mapped(file("python3.11", MAP_PRIVATE, kExt4, PROT_READ | PROT_EXEC)), Source::kLibrary);
}

TEST(ClassifyMmap, KnowsTheReservationOfAGlibcHeap) {
  MmapFacts heap = anonymous(64 * kMiB);
  heap.protection = PROT_NONE;
  heap.flags |= MAP_NORESERVE;
  EXPECT_EQ(mapped(heap), Source::kAnonOther) << "not aligned: glibc would give it back";
  heap.address = kBase;
  EXPECT_EQ(mapped(heap), Source::kMallocArena);
  heap.address = kBase + kPage;
  heap.length = 128 * kMiB;
  EXPECT_EQ(mapped(heap), Source::kMallocArena);
  heap.length = 96 * kMiB;
  EXPECT_EQ(mapped(heap), Source::kAnonOther);
}

TEST(ClassifyProtect, SettlesAnAlignedReservationOnceItIsWritable) {
  constexpr std::uint32_t kReadWrite = PROT_READ | PROT_WRITE;
  EXPECT_EQ(classify_protect(Source::kAnonOther, kBase, kReadWrite), Source::kMallocArena);
  EXPECT_EQ(classify_protect(Source::kAnonOther, kBase + kPage, kReadWrite), std::nullopt);
  EXPECT_EQ(classify_protect(Source::kAnonOther, kBase, PROT_NONE), std::nullopt);
  EXPECT_EQ(classify_protect(Source::kMallocArena, kBase + kPage, kReadWrite), std::nullopt)
      << "it stays one";
  EXPECT_EQ(classify_protect(Source::kThreadStack, kBase, kReadWrite), std::nullopt);
  EXPECT_EQ(classify_protect(Source::kAnonOther, kBase, PROT_READ | PROT_EXEC), Source::kJitCode);
  EXPECT_EQ(classify_protect(Source::kLibrary, kBase, PROT_READ | PROT_EXEC), std::nullopt);
}

}  // namespace
}  // namespace torchleak
