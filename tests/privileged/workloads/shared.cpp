// SPDX-License-Identifier: Apache-2.0
// Memory that several processes may hold: shared anonymous, /dev/shm, memfd, System V.
#include <fcntl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

#include <array>

#include "stage.hpp"

namespace torchleak::workload {
namespace {

void* map_shared(std::size_t bytes, int fd) {
  const int flags = fd < 0 ? MAP_SHARED | MAP_ANONYMOUS : MAP_SHARED;
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
  require(memory != MAP_FAILED, "mmap");
  return memory;
}

int fill(const Stage& stage, std::size_t bytes, int fd) {
  require(fd < 0 || ::ftruncate(fd, static_cast<off_t>(bytes)) == 0, "ftruncate");
  void* memory = map_shared(bytes, fd);
  touch(memory, bytes);
  stage.done({{"bytes", bytes}});
  return 0;
}

int run_shared_anonymous(const Stage& stage) {
  stage.ready();
  return fill(stage, stage.number("bytes"), -1);
}

// As torch does it: the name is gone before the memory is used.
int run_dev_shm(const Stage& stage) {
  const std::string name = "/torchleak_test_" + std::to_string(::getpid());
  stage.ready();
  const int fd = ::shm_open(name.c_str(), O_RDWR | O_CREAT | O_EXCL, 0600);
  require(fd >= 0, "shm_open");
  require(::shm_unlink(name.c_str()) == 0, "shm_unlink");
  return fill(stage, stage.number("bytes"), fd);
}

int run_memfd(const Stage& stage) {
  stage.ready();
  const int fd = ::memfd_create("known_bytes", MFD_CLOEXEC);
  require(fd >= 0, "memfd_create");
  return fill(stage, stage.number("bytes"), fd);
}

int run_sysv(const Stage& stage) {
  const std::size_t bytes = stage.number("bytes");
  stage.ready();
  const int id = ::shmget(IPC_PRIVATE, bytes, IPC_CREAT | 0600);
  require(id >= 0, "shmget");
  void* memory = ::shmat(id, nullptr, 0);
  ::shmctl(id, IPC_RMID, nullptr);  // it goes with the last that detaches
  require(memory != reinterpret_cast<void*>(-1), "shmat");
  touch(memory, bytes);
  stage.done({{"bytes", bytes}});
  require(::shmdt(memory) == 0, "shmdt");
  stage.done({{"bytes", 0}});
  return 0;
}

}  // namespace

std::span<const Entry> shared_workloads() {
  static constexpr std::array kEntries = {
      Entry{"shared-anonymous", run_shared_anonymous},
      Entry{"dev-shm", run_dev_shm},
      Entry{"memfd", run_memfd},
      Entry{"sysv", run_sysv},
  };
  return kEntries;
}

}  // namespace torchleak::workload
