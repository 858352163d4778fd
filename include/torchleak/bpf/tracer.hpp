// SPDX-License-Identifier: Apache-2.0
// The one seam to libbpf: loads the programs, attaches each on its own, and hands out records and counters. A
// program that cannot be attached is a blind spot with its reason; only where nothing can be seen at all is
// that an error.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "torchleak/abi/event.h"
#include "torchleak/base/result.hpp"

namespace torchleak::bpf {

enum class Layer : std::uint8_t { kProcesses, kPages, kMappings, kSwap };

// A program that does not run, and why.
struct BlindSpot {
  Layer layer = Layer::kProcesses;
  std::string program;
  std::string why;
};

struct TracerOptions {
  bool follow_children = true;
};

struct ProgramCost {
  std::uint64_t run_ns = 0;
  std::uint64_t runs = 0;
  std::uint64_t machine_wide_ns = 0;  // of run_ns, in programs that every process's system calls pass through
};

class Tracer {
 public:
  using RecordHandler = std::function<void(std::span<const std::byte>)>;

  // Loads and attaches everything but the swap programs. No process is traced yet.
  static Result<Tracer> create(const TracerOptions& options);
  Tracer(Tracer&&) noexcept;
  Tracer& operator=(Tracer&&) noexcept;
  ~Tracer();

  Result<void> trace(std::uint32_t tgid, std::uint64_t swap_entries);
  std::optional<tl_process> counters(std::uint32_t tgid) const;

  // Hands over all records that wait. Returns how many.
  std::size_t drain(const RecordHandler& handler);

  // The swap programs cost on every fault of the machine; they are attached when there is a reason to.
  // Afterwards each process's count must be told by set_swap_entries.
  Result<void> attach_swap();
  bool swap_attached() const;
  void set_swap_entries(std::uint32_t tgid, std::uint64_t entries);

  // One sample in so many faults; 0 for none, when faults cost nothing. None at first.
  void sample_faults(std::uint64_t faults_a_sample);

  const std::vector<BlindSpot>& blind_spots() const;
  std::array<std::uint64_t, TL_LOSS_COUNT> losses() const;
  // Run time of all programs since the start. Counted only while `count_cost` is on, which itself costs a
  // little.
  ProgramCost cost() const;
  void count_cost(bool on);

 private:
  struct State;
  explicit Tracer(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace torchleak::bpf
