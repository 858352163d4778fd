// SPDX-License-Identifier: Apache-2.0
// What a workload and its test say to each other, a line each:
//   workload            test
//   "ready"      ---->  (attaches the tracer)
//                <----  "go"
//   "done k=v …" ---->  (looks at the truth, ends the tracer)
//                <----  any line, or the end of the pipe
// Every step is an event; nobody sleeps. Nothing here touches the heap between ready() and done().
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

namespace torchleak::workload {

struct Fact {
  const char* name;
  std::uint64_t value;
};

class Stage {
 public:
  // The words after the workload's name, "key=value" each.
  explicit Stage(std::span<char* const> words) : words_(words) {}

  std::uint64_t number(std::string_view key, std::uint64_t otherwise = 0) const;
  std::string text(std::string_view key) const;

  // Both wait for the test's next line, and end the workload where there will be none.
  void ready() const;
  void done(std::initializer_list<Fact> facts) const;

 private:
  std::span<char* const> words_;
};

struct Entry {
  const char* name;
  int (*run)(const Stage& stage);  // what main returns
};

std::span<const Entry> anonymous_workloads();
std::span<const Entry> malloc_workloads();
std::span<const Entry> thread_workloads();
std::span<const Entry> shared_workloads();
std::span<const Entry> file_workloads();
std::span<const Entry> process_workloads();
std::span<const Entry> family_workloads();

// Leaves with the reason on stderr where a call failed.
void require(bool ok, const char* what);

std::size_t page_bytes();
// Private anonymous memory, untouched.
std::byte* map_private(std::size_t bytes);
// Writes a byte to every page.
void touch(void* memory, std::size_t bytes);
// Reads a byte of every page.
void look_at(const void* memory, std::size_t bytes);

}  // namespace torchleak::workload
