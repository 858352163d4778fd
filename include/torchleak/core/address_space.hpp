// SPDX-License-Identifier: Apache-2.0
// What one address space holds: its mappings, and the sampled pages that were touched since the capture began. A sampled
// page is live until an unmap, a move, an madvise, a smaller break, exec or exit removes it, so live bytes by source need
// no hook on malloc. Laws, tested for every order of events:
//   attributed - freed == live samples + baseline still there - baseline at the start
//   sum over sources of resident() == start + attributed - freed
#pragma once

#include <cstdint>
#include <map>

#include "torchleak/core/classify.hpp"
#include "torchleak/core/range_ledger.hpp"
#include "torchleak/core/source.hpp"

namespace torchleak {

enum class FaultClass : std::uint8_t { kFirstTouch, kCopyOnWrite, kFile, kShmem };

struct PageSample {
  std::uint64_t bytes = 0;  // what this page stands for
  std::uint64_t time_ns = 0;
  Source source = Source::kAnonOther;
  FaultClass fault = FaultClass::kFirstTouch;
  bool operator==(const PageSample&) const = default;
};

class AddressSpace {
 public:
  explicit AddressSpace(std::uint64_t page_bytes, std::size_t max_samples = 65536);

  void set_traits(const ProcessTraits& traits) { traits_ = traits; }
  const ProcessTraits& traits() const { return traits_; }

  // The state before the capture, one mapping at a time with its baseline_bytes.
  void add_baseline(Mapping mapping);

  void map(const MmapFacts& facts, std::uint64_t entered_ns, std::uint64_t now_ns);
  void unmap(std::uint64_t begin, std::uint64_t length, std::uint64_t entered_ns);
  void remap(std::uint64_t old_begin, std::uint64_t old_length, std::uint64_t new_begin, std::uint64_t new_length,
             std::uint64_t entered_ns, std::uint64_t now_ns);
  void protect(std::uint64_t begin, std::uint64_t length, std::uint32_t protection);
  // The break: the heap is [start, end). It grows, shrinks, or appears.
  void set_break(std::uint64_t start, std::uint64_t end, std::uint64_t entered_ns, std::uint64_t now_ns);
  // madvise: DONTNEED, REMOVE and (lazily, but counted at once where the kernel no longer keeps the data) FREE drop
  // pages and keep the mapping; DONTNEED on a shared mapping drops nothing that others still see, yet leaves this
  // process's RSS. Other advice changes nothing.
  void advise(std::uint64_t begin, std::uint64_t length, std::uint32_t advice, std::uint64_t entered_ns);

  // A sampled fault. `present`: the page was there before, so this is a write to a protected page. `page_bytes`: the size
  // of the page that was brought in (huge pages by their size); it counts for `weight` such pages. Returns its class.
  FaultClass touch(std::uint64_t address, std::uint64_t weight, std::uint64_t touched_page_bytes, bool present,
                   std::uint64_t now_ns);
  // A sampled page is no longer there although no event said so (reclaim of file pages, MADV_FREE completed).
  void drop_sample(std::uint64_t page_address);

  // The child's view right after fork: the same mappings, inherited; what was resident here is its baseline.
  AddressSpace forked() const;

  std::uint64_t start_bytes() const { return start_bytes_; }       // baseline as it was given
  std::uint64_t attributed_bytes() const { return attributed_; }   // sampled growth since, copy-on-write excluded
  std::uint64_t freed_bytes() const { return freed_; }             // baseline and samples removed since
  SourceBytes resident() const;                                    // baseline still there + live samples, by source
  SourceBytes copied_on_write() const { return copied_; }          // by source, since the start
  const RangeLedger& mappings() const { return mappings_; }
  const std::map<std::uint64_t, PageSample>& samples() const { return samples_; }
  std::uint64_t thinned_samples() const { return thinned_; }

 private:
  void drop_range(std::uint64_t begin, std::uint64_t end, std::uint64_t entered_ns);
  void forget(const std::vector<Mapping>& removed);
  void thin();

  std::uint64_t page_bytes_;
  std::size_t max_samples_;
  ProcessTraits traits_;
  RangeLedger mappings_;
  std::map<std::uint64_t, PageSample> samples_;  // page address -> sample
  SourceBytes copied_;
  std::uint64_t start_bytes_ = 0;
  std::uint64_t attributed_ = 0;
  std::uint64_t freed_ = 0;
  std::uint64_t thinned_ = 0;
};

}  // namespace torchleak
