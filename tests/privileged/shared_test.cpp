// SPDX-License-Identifier: Apache-2.0
// Known bytes of memory that others may hold too, and of mapped files.
#include <unistd.h>

#include "rig/books.hpp"
#include "rig/machine.hpp"
#include "rig/scene.hpp"

namespace torchleak::rig {
namespace {

constexpr std::uint64_t kBytes = 64 * kMiB;
const auto kPages = kBytes / static_cast<std::uint64_t>(::getpagesize());

class EachKind : public PrivilegedTest, public testing::WithParamInterface<const char*> {};

INSTANTIATE_TEST_SUITE_P(SharedMemory, EachKind,
                         testing::Values("shared-anonymous", "dev-shm", "memfd", "sysv"),
                         [](const auto& kind) {
                           std::string name = kind.param;
                           std::erase(name, '-');
                           return name;
                         });

TEST_P(EachKind, OfSharedMemoryIsToldAsSuch) {
  const Outcome seen = trace({GetParam(), known("bytes", kBytes)});
  expect_exact(growth_of(seen.process, Source::kSharedMemory), kBytes);
  expect_sampled(static_cast<std::int64_t>(seen.process.faults.shmem), kPages);
  expect_exact(static_cast<std::int64_t>(seen.process.end.shmem - seen.process.start.shmem), kBytes);
  expect_true_books(seen);
}

class SharedMemory : public PrivilegedTest {};

TEST_F(SharedMemory, DetachingASegmentFreesIt) {
  Workload job({"sysv", known("bytes", kBytes)});
  Tracer tracer(job);
  job.go();
  const Outcome seen = watch(job, tracer);
  expect_exact(growth_of(seen.process, Source::kSharedMemory), 0);
  expect_sampled(seen.process.reconciliation.freed, kBytes);
  expect_true_books(seen);
}

class MappedFile : public PrivilegedTest {
 protected:
  TempDir directory_;
  std::string path_ = "path=" + (directory_ / "file");
};

TEST_F(MappedFile, ReadIsAFileMapping) {
  const Outcome seen = trace({"file-read", known("bytes", kBytes), path_});
  expect_exact(growth_of(seen.process, Source::kFileMapping), kBytes);
  EXPECT_GT(seen.process.faults.file, 0U);
  expect_true_books(seen);
}

// The kernel maps up to 16 pages of the cache at a fault: the books must count what came, not the faults.
TEST_F(MappedFile, ReadInSmallPagesIsAFileMapping) {
  const Outcome seen = trace({"file-read", known("bytes", kBytes), known("block", 4096), path_});
  expect_exact(growth_of(seen.process, Source::kFileMapping), kBytes);
  EXPECT_EQ(seen.process.faults.huge, 0U);
  expect_true_books(seen);
}

TEST_F(MappedFile, WrittenThroughIsAFileMapping) {
  const Outcome seen = trace({"file-write-through", known("bytes", kBytes), known("block", 4096), path_});
  expect_exact(growth_of(seen.process, Source::kFileMapping), kBytes);
  expect_true_books(seen);
}

TEST_F(MappedFile, WrittenToBecomesPrivateMemory) {
  const Outcome seen = trace({"file-write", known("bytes", kBytes), path_});
  expect_exact(growth_of(seen.process, Source::kFileMapping), kBytes);
  expect_sampled(static_cast<std::int64_t>(seen.process.end.anon - seen.process.start.anon), kBytes);
  expect_true_books(seen);
}

TEST_F(MappedFile, WrittenToAfterItWasReadIsCopied) {
  const Outcome seen = trace({"file-write", known("bytes", kBytes), known("read_first", 1), path_});
  expect_exact(growth_of(seen.process, Source::kFileMapping), 0);
  expect_sampled(copied_in(seen.process), kBytes);
  expect_sampled(static_cast<std::int64_t>(seen.process.faults.cow), kPages);
  expect_true_books(seen);
}

}  // namespace
}  // namespace torchleak::rig
