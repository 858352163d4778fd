// SPDX-License-Identifier: Apache-2.0
// The storms of the bench: storm faults|mappings|forks|idle. Speaks the protocol of slices.py.
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <string_view>
#include <vector>

namespace {

constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kStormBytes = 4 << 20;
constexpr std::size_t kMappingBytes = 1 << 20;

[[noreturn]] void fail(const char* what) {
  std::perror(what);
  std::exit(1);
}

char* map_anonymous(std::size_t bytes) {
  void* start = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) fail("mmap");
  return static_cast<char*>(start);
}

void touch_each_page(char* start, std::size_t bytes) {
  for (std::size_t offset = 0; offset < bytes; offset += kPageBytes) {
    static_cast<volatile char*>(start)[offset] = 1;
  }
}

// A unit is 2048 faults: a mapping touched, given back with madvise, touched again, unmapped.
void fault_storm() {
  char* start = map_anonymous(kStormBytes);
  madvise(start, kStormBytes, MADV_NOHUGEPAGE);
  touch_each_page(start, kStormBytes);
  madvise(start, kStormBytes, MADV_DONTNEED);
  touch_each_page(start, kStormBytes);
  munmap(start, kStormBytes);
}

// A unit is one mmap and one munmap, never touched between.
void mapping_storm() {
  munmap(map_anonymous(kMappingBytes), kMappingBytes);
}

// A unit is one child that exits at once.
void fork_storm() {
  const pid_t child = fork();
  if (child < 0) fail("fork");
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
}

void idle() {}

std::int64_t child_cpu_ns() {
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1'000'000'000LL +
         (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1'000LL;
}

// Own CPU time and that of children waited for.
std::int64_t cpu_ns() {
  timespec own{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own);
  return own.tv_sec * 1'000'000'000LL + own.tv_nsec + child_cpu_ns();
}

std::int64_t faults() {
  rusage own{};
  rusage children{};
  getrusage(RUSAGE_SELF, &own);
  getrusage(RUSAGE_CHILDREN, &children);
  return own.ru_minflt + children.ru_minflt;
}

using Unit = void (*)();

Unit unit_named(std::string_view name) {
  if (name == "faults") return fault_storm;
  if (name == "mappings") return mapping_storm;
  if (name == "forks") return fork_storm;
  if (name == "idle") return idle;
  return nullptr;
}

void answer(Unit unit, int chunks, long units) {
  const std::int64_t faults_before = faults();
  std::vector<std::int64_t> marks{cpu_ns()};
  for (int chunk = 0; chunk < chunks; ++chunk) {
    for (long i = 0; i < units; ++i) unit();
    marks.push_back(cpu_ns());
  }
  std::printf("{\"cpu_ns\": %" PRId64 ", \"faults\": %" PRId64 ", \"chunks_ns\": [",
              marks.back() - marks.front(), faults() - faults_before);
  for (std::size_t i = 1; i < marks.size(); ++i) {
    std::printf("%s%" PRId64, i == 1 ? "" : ", ", marks[i] - marks[i - 1]);
  }
  std::puts("]}");
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const Unit unit = argc == 2 ? unit_named(argv[1]) : nullptr;
  if (unit == nullptr) {
    std::fputs("usage: storm faults|mappings|forks|idle\n", stderr);
    return 2;
  }
  int chunks = 0;
  long units = 0;
  while (std::scanf("%d %ld", &chunks, &units) == 2) {
    answer(unit, chunks, units);
  }
  return 0;
}
