// SPDX-License-Identifier: Apache-2.0
// Mapped files, read and written to.
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <vector>

#include "stage.hpp"

namespace torchleak::workload {
namespace {

// A file of so many bytes whose pages are in the page cache; its name is gone already. `block`: bytes a
// write, which decides how large the pages of the cache are.
int cached_file(const Stage& stage, std::size_t bytes) {
  const std::string path = stage.text("path");
  const int fd = ::open(path.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  require(fd >= 0, path.c_str());
  require(::unlink(path.c_str()) == 0, "unlink");
  const std::vector<char> block(stage.number("block", 1 << 16), 'x');
  for (std::size_t at = 0; at < bytes; at += block.size()) {
    require(::write(fd, block.data(), block.size()) == static_cast<ssize_t>(block.size()), "write");
  }
  return fd;
}

void* map_file(std::size_t bytes, int protection, int fd) {
  void* memory = ::mmap(nullptr, bytes, protection, MAP_PRIVATE, fd, 0);
  require(memory != MAP_FAILED, "mmap");
  return memory;
}

int run_file_read(const Stage& stage) {
  const std::size_t bytes = stage.number("bytes");
  const int fd = cached_file(stage, bytes);
  stage.ready();
  look_at(map_file(bytes, PROT_READ, fd), bytes);
  stage.done({{"bytes", bytes}});
  return 0;
}

// Written through to the file, whose pages stay the page cache's.
int run_file_write_through(const Stage& stage) {
  const std::size_t bytes = stage.number("bytes");
  const int fd = cached_file(stage, bytes);
  stage.ready();
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  require(memory != MAP_FAILED, "mmap");
  touch(memory, bytes);
  stage.done({{"bytes", bytes}});
  return 0;
}

// `read_first`: the pages are mapped from the page cache before the tracer attaches, and copied when written.
int run_file_write(const Stage& stage) {
  const std::size_t bytes = stage.number("bytes");
  const int fd = cached_file(stage, bytes);
  void* memory = nullptr;
  if (stage.number("read_first") != 0) {
    memory = map_file(bytes, PROT_READ | PROT_WRITE, fd);
    look_at(memory, bytes);
    stage.ready();
  } else {
    stage.ready();
    memory = map_file(bytes, PROT_READ | PROT_WRITE, fd);
  }
  touch(memory, bytes);
  stage.done({{"bytes", bytes}});
  return 0;
}

}  // namespace

std::span<const Entry> file_workloads() {
  static constexpr std::array kEntries = {
      Entry{"file-read", run_file_read},
      Entry{"file-write", run_file_write},
      Entry{"file-write-through", run_file_write_through},
  };
  return kEntries;
}

}  // namespace torchleak::workload
