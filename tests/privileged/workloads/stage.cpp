// SPDX-License-Identifier: Apache-2.0
#include "stage.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace torchleak::workload {
namespace {

void await_line() {
  char byte = 0;
  do {
    if (::read(STDIN_FILENO, &byte, 1) != 1) {
      std::_Exit(0);  // the test is gone
    }
  } while (byte != '\n');
}

}  // namespace

std::string Stage::text(std::string_view key) const {
  for (const std::string_view word : words_) {
    if (word.starts_with(key) && word.substr(key.size()).starts_with('=')) {
      return std::string(word.substr(key.size() + 1));
    }
  }
  return {};
}

std::uint64_t Stage::number(std::string_view key, std::uint64_t otherwise) const {
  const std::string word = text(key);
  return word.empty() ? otherwise : std::strtoull(word.c_str(), nullptr, 10);
}

void Stage::ready() const {
  ::dprintf(STDOUT_FILENO, "ready\n");
  await_line();
}

void Stage::done(std::initializer_list<Fact> facts) const {
  ::dprintf(STDOUT_FILENO, "done");
  for (const Fact& fact : facts) {
    ::dprintf(STDOUT_FILENO, " %s=%llu", fact.name, static_cast<unsigned long long>(fact.value));
  }
  ::dprintf(STDOUT_FILENO, "\n");
  await_line();
}

void require(bool ok, const char* what) {
  if (!ok) {
    ::dprintf(STDERR_FILENO, "workload: %s: %s\n", what, std::strerror(errno));
    std::_Exit(1);
  }
}

std::size_t page_bytes() {
  static const auto bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  return bytes;
}

std::byte* map_private(std::size_t bytes) {
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  require(memory != MAP_FAILED, "mmap");
  return static_cast<std::byte*>(memory);
}

void touch(void* memory, std::size_t bytes) {
  volatile auto* byte = static_cast<volatile unsigned char*>(memory);
  for (std::size_t at = 0; at < bytes; at += page_bytes()) {
    byte[at] = 1;  // no read before it: that would bring in the zero page first
  }
}

void look_at(const void* memory, std::size_t bytes) {
  const volatile auto* byte = static_cast<const volatile unsigned char*>(memory);
  for (std::size_t at = 0; at < bytes; at += page_bytes()) {
    (void)byte[at];
  }
}

}  // namespace torchleak::workload
