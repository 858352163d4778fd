// SPDX-License-Identifier: Apache-2.0
// What a child is born with.
#include <algorithm>
#include <array>
#include <cassert>
#include <limits>
#include <utility>

#include "torchleak/core/address_space.hpp"

namespace torchleak {
namespace {

constexpr std::uint64_t kForever = std::numeric_limits<std::uint64_t>::max();

std::uint64_t anonymous_bytes(const Mapping& mapping) {
  const double part = std::clamp<double>(mapping.anonymous_part, 0, 1);
  return static_cast<std::uint64_t>(part * static_cast<double>(mapping.baseline_bytes));
}

void set_anonymous_bytes(Mapping& mapping, std::uint64_t bytes) {
  if (mapping.baseline_bytes != 0) {
    mapping.anonymous_part =
        static_cast<float>(static_cast<double>(bytes) / static_cast<double>(mapping.baseline_bytes));
  }
}

}  // namespace

AddressSpace AddressSpace::forked() const {
  AddressSpace child(page_bytes_, max_samples_);
  child.traits_ = traits_;
  child.mappings_ = mappings_;
  child.heap_begin_ = heap_begin_;
  child.heap_end_ = heap_end_;
  auto sample = samples_.begin();
  std::vector<Mapping> unmapped;  // pages sampled in no known mapping
  const auto until = [&](std::uint64_t end, auto&& use) {
    for (; sample != samples_.end() && sample->first < end; ++sample) {
      use(sample->first, sample->second);
    }
  };
  const auto keep_page = [&](std::uint64_t page, const PageSample& lone) {
    unmapped.push_back({page, page + page_bytes_, lone.time_ns, lone.bytes, lone.source, false, true, {}});
  };
  child.mappings_.update(0, kForever, [&](Mapping& mapping) {
    mapping.inherited = true;
    until(mapping.begin, keep_page);
    std::uint64_t anonymous = anonymous_bytes(mapping);
    until(mapping.end, [&](std::uint64_t, const PageSample& here) {
      mapping.baseline_bytes += here.bytes;
      anonymous += here.fault == FaultClass::kFirstTouch ? here.bytes : 0;
    });
    set_anonymous_bytes(mapping, anonymous);
  });
  until(kForever, keep_page);
  for (Mapping& page : unmapped) {
    if (child.mappings_.size() < RangeLedger::kMaxPieces) {
      child.mappings_.insert(std::move(page));
    }
  }
  for (const auto& [begin, mapping] : child.mappings_.ranges()) {
    child.start_bytes_ += mapping.baseline_bytes;
    child.resident_.add(mapping.source, mapping.baseline_bytes);
  }
  return child;
}

void AddressSpace::fit_baseline(std::uint64_t anon_bytes, std::uint64_t file_bytes,
                                std::uint64_t shmem_bytes) {
  assert(samples_.empty() && freed_ == 0);
  using Kinds = std::array<std::uint64_t, 3>;  // anonymous, file, shared memory
  const auto kinds_of = [](const Mapping& mapping) {
    const std::uint64_t anonymous = anonymous_bytes(mapping);
    const std::uint64_t rest = mapping.baseline_bytes - anonymous;
    const bool shmem = mapping.source == Source::kSharedMemory;
    return Kinds{anonymous, shmem ? 0 : rest, shmem ? rest : 0};
  };
  Kinds have{};
  for (const auto& [begin, mapping] : mappings_.ranges()) {
    const Kinds kinds = kinds_of(mapping);
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      have[i] += kinds[i];
    }
  }
  start_bytes_ = 0;
  resident_ = {};
  // What each kind has still to be given; with what has still to be given to, the last one gets all that is
  // left.
  Kinds left = {anon_bytes, file_bytes, shmem_bytes};
  mappings_.update(0, kForever, [&](Mapping& mapping) {
    Kinds kinds = kinds_of(mapping);
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      const std::uint64_t before = kinds[i];
      kinds[i] = have[i] == 0 ? 0 : share(left[i], before, have[i]);
      left[i] -= kinds[i];
      have[i] -= before;
    }
    mapping.baseline_bytes = kinds[0] + kinds[1] + kinds[2];
    set_anonymous_bytes(mapping, kinds[0]);
    start_bytes_ += mapping.baseline_bytes;
    resident_.add(mapping.source, mapping.baseline_bytes);
  });
}

}  // namespace torchleak
