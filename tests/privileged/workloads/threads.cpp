// SPDX-License-Identifier: Apache-2.0
// Threads: their stacks, and many of them faulting at once.
#include <alloca.h>
#include <pthread.h>

#include <array>
#include <atomic>
#include <barrier>
#include <thread>
#include <vector>

#include "stage.hpp"

namespace torchleak::workload {
namespace {

// Bytes from the lowest page this thread has touched to the top of its stack.
std::uint64_t touch_stack(std::size_t bytes) {
  auto* lowest = static_cast<std::byte*>(alloca(bytes));
  touch(lowest, bytes);
  pthread_attr_t attributes;
  void* bottom = nullptr;
  std::size_t length = 0;
  require(::pthread_getattr_np(::pthread_self(), &attributes) == 0, "pthread_getattr_np");
  require(::pthread_attr_getstack(&attributes, &bottom, &length) == 0, "pthread_attr_getstack");
  ::pthread_attr_destroy(&attributes);
  const auto page = reinterpret_cast<std::uintptr_t>(lowest) / page_bytes() * page_bytes();
  return reinterpret_cast<std::uintptr_t>(bottom) + length - page;
}

int run_stacks(const Stage& stage) {
  const auto count = static_cast<std::ptrdiff_t>(stage.number("count"));
  const std::size_t bytes = stage.number("bytes");
  std::atomic<std::uint64_t> total = 0;
  std::barrier touched(count + 1);
  std::barrier finished(count + 1);
  stage.ready();
  std::vector<std::jthread> threads;
  for (std::ptrdiff_t i = 0; i < count; ++i) {
    threads.emplace_back([&] {
      total += touch_stack(bytes);
      touched.arrive_and_wait();
      finished.arrive_and_wait();
    });
  }
  touched.arrive_and_wait();
  stage.done({{"bytes", total}});
  finished.arrive_and_wait();
  return 0;
}

int run_parallel_faults(const Stage& stage) {
  const std::size_t count = stage.number("count");
  const std::size_t bytes = stage.number("bytes");
  stage.ready();
  std::byte* memory = map_private(count * bytes);
  std::barrier together(static_cast<std::ptrdiff_t>(count));
  {
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < count; ++i) {
      threads.emplace_back([&, i] {
        together.arrive_and_wait();
        touch(memory + i * bytes, bytes);
      });
    }
  }
  stage.done({{"bytes", count * bytes}});
  return 0;
}

}  // namespace

std::span<const Entry> thread_workloads() {
  static constexpr std::array kEntries = {
      Entry{"stacks", run_stacks},
      Entry{"parallel-faults", run_parallel_faults},
  };
  return kEntries;
}

}  // namespace torchleak::workload
