// SPDX-License-Identifier: Apache-2.0
// data/ holds what the kernel (6.18) wrote for a DataLoader job under torch 1.13; torch_main.smaps keeps 61
// of its 1,710 mappings.
#include "torchleak/procfs/process.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <iterator>

#include "torchleak/procfs/machine.hpp"

namespace torchleak::procfs {
namespace {

std::string captured(const std::string& name) {
  std::ifstream file(std::string(TORCHLEAK_TEST_DATA) + "/" + name, std::ios::binary);
  EXPECT_TRUE(file) << name;
  return {std::istreambuf_iterator<char>(file), {}};
}

std::uint64_t kib(std::uint64_t count) {
  return count * 1024;
}

// A child that waits to be killed.
class Child {
 public:
  Child() : pid_(::fork()) {
    if (pid_ == 0) {
      for (;;) {
        ::pause();
      }
    }
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_;
};

TEST(ParseStat, ReadsATrainingProcess) {
  EXPECT_EQ(parse_stat(captured("main.stat")), (Stat{.comm = "python3",
                                                     .state = 'S',
                                                     .ppid = 6335,
                                                     .minor_faults = 46867,
                                                     .major_faults = 15,
                                                     .cpu_ticks = 84 + 31,
                                                     .threads = 3,
                                                     .start_ticks = 208953,
                                                     .stack_start = 140734846403424,
                                                     .kernel_thread = false}));
}

TEST(ParseStat, ReadsANameThatPretendsToBeTheRestOfTheLine) {
  const auto stat = parse_stat(captured("zombie.stat"));
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->comm, ") R 1\n(a b");
  EXPECT_EQ(stat->state, 'Z');
  EXPECT_EQ(stat->ppid, 15182U);
}

TEST(ParseStat, KnowsAKernelThread) {
  const auto stat = parse_stat(captured("kernel_thread.stat"));
  ASSERT_TRUE(stat);
  EXPECT_TRUE(stat->kernel_thread);
  EXPECT_EQ(stat->comm, "kthreadd");
}

TEST(ParseStat, RefusesNumbersThatDoNotFit) {
  EXPECT_FALSE(parse_stat("1 (a) S 99999999999 1 1 0 -1 0 0 0 0 0 0 0 0 0 0 0 1 0 1 0 0 0 0 0 0\n"));
  EXPECT_FALSE(parse_stat(") 1 ("));
}

TEST(HasExeced, TellsAForkFromAnotherProgramByThePlaceOfItsStack) {
  const auto main = parse_stat(captured("main.stat"));
  const auto forked = parse_stat(captured("loader_worker.stat"));
  const auto spawned = parse_stat(captured("spawned_worker.stat"));
  ASSERT_TRUE(main && forked && spawned);
  EXPECT_FALSE(has_execed(*forked, *main));
  EXPECT_TRUE(has_execed(*spawned, *main));
  const auto zombie = parse_stat(captured("zombie.stat"));
  ASSERT_TRUE(zombie);
  EXPECT_FALSE(has_execed(*zombie, *main)) << "a zombie shows no stack: nothing is known";
}

TEST(ParseStatus, ReadsATrainingProcess) {
  Status expected;
  expected.memory.rss = kib(286780);
  expected.memory.anon = kib(168448);
  expected.memory.file = kib(118308);
  expected.memory.shmem = kib(24);
  expected.peak_rss = kib(286780);
  expected.caught_signals = 0x100010000;
  expected.has_memory = true;
  EXPECT_EQ(parse_status(captured("main.status")), expected);
}

TEST(ParseStatus, SeesTheSignalsOfALoaderWorker) {
  const auto status = parse_status(captured("loader_worker.status"));
  ASSERT_TRUE(status);
  EXPECT_EQ(status->caught_signals, 0x1000044c0U);
}

TEST(ParseStatus, FindsNoMemoryInZombiesAndKernelThreads) {
  Status zombie;
  zombie.caught_signals = 2;  // Python's SIGINT: handlers outlive memory
  EXPECT_EQ(parse_status(captured("zombie.status")), zombie);
  EXPECT_EQ(parse_status(captured("kernel_thread.status")), Status{});
}

TEST(ParseStatus, RefusesNumbersThatDoNotFit) {
  EXPECT_FALSE(parse_status("VmRSS:\t18446744073709551615 kB\nSigCgt:\t0\n"));
  EXPECT_FALSE(parse_status("VmRSS:\t99999999999999999999 kB\nSigCgt:\t0\n"));
  EXPECT_FALSE(parse_status("SigCgt:\t10000000000000000\n"));
  EXPECT_FALSE(parse_status("VmRSS:\t1 MB\nSigCgt:\t0\n"));
}

TEST(ParseMapsLine, ReadsEveryColumn) {
  VmaFacts expected;
  expected.begin = 0x7f32f2530000;
  expected.end = 0x7f32f2531000;
  expected.readable = true;
  expected.writable = true;
  expected.shared = true;
  expected.offset = 0x1000;
  expected.inode = 15;
  expected.name = "/dev/shm/a b \xff (deleted)";
  EXPECT_EQ(
      parse_maps_line("7f32f2530000-7f32f2531000 rw-s 00001000 00:1b 15     /dev/shm/a b \xff (deleted)"),
      expected);
}

TEST(ParseMapsLine, RefusesWhatItDoesNotUnderstand) {
  for (const char* line : {"", "-", "Rss:   4 kB", "2000-1000 rw-p 0 00:00 0", "1000-1000 rw-p 0 00:00 0",
                           "1000-2000 rw 0 00:00 0", "10000000000000000-20000000000000000 rw-p 0 00:00 0",
                           "1000-2000 rw-p 0 00:00 99999999999999999999", "1000-2000 rw-p 0 0000 0",
                           "1000-2000 rw-p 0 00:00 0x"}) {
    EXPECT_FALSE(parse_maps_line(line)) << line;
  }
}

TEST(ParseSmaps, ReadsTheMappingsOfATrainingProcess) {
  const Smaps smaps = parse_smaps(captured("torch_main.smaps"));
  EXPECT_TRUE(smaps.complete);
  ASSERT_EQ(smaps.entries.size(), 61U);
  const auto merged =
      std::ranges::find(smaps.entries, 0x7f32d5fc7000U, [](const auto& e) { return e.vma.begin; });
  ASSERT_NE(merged, smaps.entries.end());
  EXPECT_EQ(merged->rss, kib(67404));
  EXPECT_EQ(merged->vma.name, "");
  EXPECT_EQ(smaps.entries.back().vma.name, "[vsyscall]");
}

TEST(ParseSmaps, ClassifiesTheMappingsOfATrainingProcess) {
  const Smaps smaps = parse_smaps(captured("torch_main.smaps"));
  std::vector<VmaFacts> vmas;
  for (const SmapsEntry& entry : smaps.entries) {
    vmas.push_back(entry.vma);
  }
  const ProcessTraits traits = traits_of(vmas);
  EXPECT_EQ(traits, (ProcessTraits{.python_arena_bytes = kib(1024), .other_allocator = false}));
  const auto sources = classify_address_space(vmas, traits);
  const auto count = [&](Source source) { return std::ranges::count(sources, source); };
  EXPECT_EQ(count(Source::kMallocHeap), 1);
  EXPECT_EQ(count(Source::kMallocArena), 4);
  EXPECT_EQ(count(Source::kThreadStack), 5);
  EXPECT_EQ(count(Source::kSharedMemory), 14);
  EXPECT_EQ(count(Source::kFileMapping), 1);
  EXPECT_EQ(count(Source::kJitCode), 0);
}

TEST(ParseSmaps, SurvivesACutAtEveryByte) {
  const std::string text = captured("torch_main.smaps").substr(0, 6000);
  const Smaps whole = parse_smaps(text);
  for (std::size_t length = 0; length < text.size(); ++length) {
    const Smaps cut = parse_smaps(std::string_view(text).substr(0, length));
    ASSERT_LE(cut.entries.size(), whole.entries.size());
    ASSERT_TRUE(std::equal(cut.entries.begin(), cut.entries.end(), whole.entries.begin())) << length;
    const std::string_view last_line =
        std::string_view(text).substr(0, length).substr(length < 2 ? 0 : text.rfind('\n', length - 2) + 1);
    ASSERT_EQ(cut.complete, length == 0 || (last_line.starts_with("VmFlags:") && last_line.ends_with('\n')))
        << length;
  }
}

TEST(ParseStatAndStatus, SurviveACutAtEveryByte) {
  const std::string stat = captured("main.stat");
  const std::string status = captured("main.status");
  for (std::size_t length = 0; length < stat.size(); ++length) {
    const auto cut = parse_stat(stat.substr(0, length));
    EXPECT_TRUE(!cut || cut == parse_stat(stat)) << length;
  }
  for (std::size_t length = 0; length < status.size(); ++length) {
    const auto cut = parse_status(status.substr(0, length));
    EXPECT_TRUE(!cut || cut == parse_status(status)) << length;
  }
}

TEST(ParseSmaps, StopsAtWhatItDoesNotUnderstand) {
  const std::string good = "1000-2000 rw-p 0 00:00 0 \nRss: 4 kB\nVmFlags: rd \n";
  EXPECT_EQ(parse_smaps(good + "garbage\n" + good).entries.size(), 1U);
  EXPECT_FALSE(parse_smaps(good + "garbage\n" + good).complete);
  EXPECT_FALSE(
      parse_smaps(good + "1000-2000 rw-p 0 00:00 0 \nRss: 18446744073709551615 kB\nVmFlags: rd \n").complete);
  EXPECT_FALSE(parse_smaps("1000-2000 rw-p 0 00:00 0 \n\nVmFlags: rd \n").complete);
  const std::string long_name(1 << 20, 'x');
  EXPECT_EQ(
      parse_smaps("1000-2000 rw-p 0 00:00 0 /" + long_name + "\nVmFlags: rd \n").entries.front().vma.name,
      "/" + long_name);
}

TEST(ReadProcess, ReadsItself) {
  const pid_t self = ::getpid();
  const auto stat = read_stat(self);
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->ppid, static_cast<std::uint32_t>(::getppid()));
  const auto status = read_status(self);
  ASSERT_TRUE(status);
  EXPECT_TRUE(status->has_memory);
  const auto smaps = read_smaps(self);
  ASSERT_TRUE(smaps);
  EXPECT_TRUE(smaps->complete);
  EXPECT_GT(smaps->entries.size(), 10U);
  EXPECT_FALSE(read_cmdline(self).empty());
}

TEST(ReadProcess, SaysWhatCouldNotBeReadOfAProcessThatIsGone) {
  constexpr pid_t kNobody = 0x7ffffff0;
  const auto stat = read_stat(kNobody);
  ASSERT_FALSE(stat);
  EXPECT_EQ(stat.error().message, "cannot open /proc/2147483632/stat: No such file or directory");
  EXPECT_FALSE(read_status(kNobody));
  EXPECT_FALSE(read_smaps(kNobody));
  EXPECT_TRUE(read_cmdline(kNobody).empty());
  EXPECT_TRUE(read_children(kNobody).empty());
}

TEST(ReadChildren, FindsAChildWithOrWithoutTheKernelsList) {
  const Child child;
  const auto children = read_children(::getpid());
  EXPECT_TRUE(std::ranges::find(children, child.pid()) != children.end());
}

// Three malloc blocks laid side by side, as malloc leaves them, and a page touched in the first and the last.
TEST(ProbeChunkHeaders, SplitsMergedBlocksAndFaultsNothingIn) {
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t block = 64 * page;
  void* const guarded = ::mmap(nullptr, 3 * block + 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(guarded, MAP_FAILED);
  auto* const memory = static_cast<char*>(guarded) + page;
  ASSERT_EQ(::mprotect(memory, 3 * block, PROT_READ | PROT_WRITE), 0);
  const auto begin = reinterpret_cast<std::uint64_t>(memory);
  for (std::size_t i = 0; i < 3; ++i) {
    reinterpret_cast<std::uint64_t*>(memory + i * block)[1] = block | 2;
  }
  memory[2 * block + page] = 1;

  auto smaps = read_smaps(::getpid());
  ASSERT_TRUE(smaps);
  std::erase_if(smaps->entries, [&](const SmapsEntry& entry) { return entry.vma.begin != begin; });
  ASSERT_EQ(smaps->entries.size(), 1U);
  const SmapsEntry whole = smaps->entries.front();
  probe_chunk_headers(::getpid(), smaps->entries);

  ASSERT_EQ(smaps->entries.size(), 3U);
  std::uint64_t rss = 0;
  for (std::size_t i = 0; i < 3; ++i) {
    const SmapsEntry& piece = smaps->entries[i];
    EXPECT_EQ(piece.vma.begin, begin + i * block);
    EXPECT_EQ(piece.vma.end, begin + (i + 1) * block);
    EXPECT_EQ(piece.vma.chunk, ChunkHeader::kMallocMmap);
    rss += piece.rss;
  }
  EXPECT_EQ(rss, whole.rss);
  EXPECT_GE(smaps->entries[2].rss, smaps->entries[0].rss);
  auto after = read_smaps(::getpid());
  ASSERT_TRUE(after);
  const auto again =
      std::ranges::find(after->entries, begin, [](const auto& entry) { return entry.vma.begin; });
  ASSERT_NE(again, after->entries.end());
  EXPECT_EQ(again->rss, whole.rss);
  ::munmap(guarded, 3 * block + 2 * page);
}

TEST(ProbeChunkHeaders, LeavesTheEntriesOfAProcessThatIsGone) {
  std::vector<SmapsEntry> entries = parse_smaps(captured("torch_main.smaps")).entries;
  const auto before = entries;
  probe_chunk_headers(0x7ffffff0, entries);
  EXPECT_EQ(entries, before);
}

TEST(ReadMachine, KnowsItsKernelAndMemory) {
  const Machine machine = read_machine();
  EXPECT_FALSE(machine.kernel.empty());
  EXPECT_FALSE(machine.architecture.empty());
  EXPECT_GT(machine.cpus, 0U);
  EXPECT_GT(machine.memory_bytes, 0U);
  EXPECT_GE(machine.page_bytes, 4096U);
}

}  // namespace
}  // namespace torchleak::procfs
