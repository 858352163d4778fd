// SPDX-License-Identifier: Apache-2.0
// What one address space holds: its mappings, and the sampled pages that were touched since the capture
// began. A sampled page is live until an unmap, a move, an madvise, a smaller break, exec or exit removes it,
// so live bytes by source need no hook on malloc. Laws, tested for every order of events:
//   attributed - freed == live samples + baseline still there - baseline at the start
//   sum over sources of resident() == start + attributed - freed
//
// Addresses, lengths and weights come from the target and are believed by nobody: ranges are widened to whole
// pages and cut off at the end of the address space, empty ones are ignored, and arithmetic wraps without
// breaking the laws.
//
// Records are written when a call returns, so two threads may be heard of in the wrong order:
//   thread A   munmap(R) enters t1 ---------------------- returns t4, record
//   thread B                mmap() = R returns t3, record; touches R
// A mapping created at or after t1 is therefore not A's to remove, and neither are the pages in it. The
// kernel writes B's record before B can touch R, so every other sample in R, whatever its time, is of the old
// owner's pages and goes. Only madvise, which keeps the mapping, goes by the time of the sample: a page that
// faulted after the call was entered was most likely thrown out by it and has come back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

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
  // `page_bytes` is a power of two. Where there are more than `max_samples` (at least twice the number of
  // sources), every second one is merged into its neighbour of the same source.
  explicit AddressSpace(std::uint64_t page_bytes, std::size_t max_samples = 65536);

  void set_traits(const ProcessTraits& traits) { traits_ = traits; }
  const ProcessTraits& traits() const { return traits_; }

  // The state before the capture, one mapping at a time with its baseline_bytes. One that is given again
  // replaces the former, in start_bytes() too.
  void add_baseline(Mapping mapping);

  void map(const MmapFacts& facts, std::uint64_t entered_ns, std::uint64_t now_ns);
  void unmap(std::uint64_t begin, std::uint64_t length, std::uint64_t entered_ns);
  void remap(std::uint64_t old_begin, std::uint64_t old_length, std::uint64_t new_begin,
             std::uint64_t new_length, std::uint64_t entered_ns, std::uint64_t now_ns);
  // glibc reserves an arena without access and makes a prefix of it writable: what the prefix tells is true
  // of the whole mapping and of the pages in it.
  void protect(std::uint64_t begin, std::uint64_t length, std::uint32_t protection);
  // The break: the heap is [start, end). It grows, shrinks, or appears. Growth joins the heap's last mapping
  // unless that holds baseline bytes: trimming the growth off again must take none of them.
  void set_break(std::uint64_t start, std::uint64_t end, std::uint64_t entered_ns, std::uint64_t now_ns);
  // madvise: DONTNEED, DONTNEED_LOCKED, REMOVE and GUARD_INSTALL drop pages and keep the mapping; DONTNEED on
  // a shared mapping drops nothing that others still see, yet leaves this process's RSS. FREE drops nothing
  // here: the kernel counts the pages in RSS until it reclaims them (drop_sample() then), and RSS is the
  // truth the books are held to. PAGEOUT moves pages to swap, which counts as memory. Other advice changes
  // nothing.
  void advise(std::uint64_t begin, std::uint64_t length, std::uint32_t advice, std::uint64_t entered_ns);

  // A sampled fault. `present`: the page was there before, so this is a write to a protected page: a copy in
  // a private mapping, which adds to copied_on_write() and not to RSS, and nothing in a shared one.
  // `touched_page_bytes`: the size of the page that was brought in (huge pages by their size); it counts for
  // `weight` such pages. Returns its class. A page touched again replaces its sample: it had gone without an
  // event. An address in no known mapping is kAnonOther.
  FaultClass touch(std::uint64_t address, std::uint64_t weight, std::uint64_t touched_page_bytes,
                   bool present, std::uint64_t now_ns);
  // A sampled page is no longer there although no event said so (reclaim of file pages, MADV_FREE completed).
  void drop_sample(std::uint64_t page_address);

  // The child's view right after fork: the same mappings, inherited; what was resident here is its baseline.
  // fork does not in truth copy the page tables of shared and untouched file mappings; those bytes are in the
  // child's baseline all the same, because its first reads of them are no growth of its own either.
  AddressSpace forked() const;
  // Brings the baseline of anonymous, file-backed and shared memory each to what the kernel counted, sharing
  // the difference out over the mappings in proportion. For a forked child, right after forked().
  void fit_baseline(std::uint64_t anon_bytes, std::uint64_t file_bytes, std::uint64_t shmem_bytes);

  // The process has ended: its totals stay, what they were made of is let go.
  void close();

  std::uint64_t start_bytes() const { return start_bytes_; }  // baseline as it was given
  std::uint64_t attributed_bytes() const {
    return attributed_;
  }                                                     // sampled growth since, copy-on-write excluded
  std::uint64_t freed_bytes() const { return freed_; }  // baseline and samples removed since
  // Of both, pages that were known and came back: from swap, or after the kernel had taken them.
  std::uint64_t returned_bytes() const { return returned_; }
  SourceBytes resident() const { return resident_; }       // baseline still there + live samples, by source
  SourceBytes copied_on_write() const { return copied_; }  // by source, since the start
  const RangeLedger& mappings() const { return mappings_; }
  const std::map<std::uint64_t, PageSample>& samples() const { return samples_; }
  std::uint64_t thinned_samples() const { return thinned_; }
  std::uint64_t refused_mappings() const { return refused_; }  // beyond RangeLedger::kMaxPieces

 private:
  using Samples = std::map<std::uint64_t, PageSample>;

  void place(Mapping mapping);
  bool outlives(std::uint64_t page, std::uint64_t entered_ns) const;
  void drop_range(std::uint64_t begin, std::uint64_t end, std::uint64_t entered_ns);
  void settle(std::uint64_t begin, std::uint64_t end, std::uint64_t now_ns);
  void rename_samples(std::uint64_t begin, std::uint64_t end);
  void find_heap(std::uint64_t start);
  Samples::iterator drop(Samples::iterator sample);
  void add(std::uint64_t page, const PageSample& sample);
  void forget(const std::vector<Mapping>& removed);
  void thin();

  std::uint64_t page_bytes_;
  std::size_t max_samples_;
  ProcessTraits traits_;
  RangeLedger mappings_;
  Samples samples_;  // page address -> sample
  SourceBytes resident_;
  SourceBytes copied_;
  std::uint64_t heap_begin_ = 0;  // [heap_begin_, heap_end_) as the last set_break left it
  std::uint64_t heap_end_ = 0;
  std::uint64_t start_bytes_ = 0;
  std::uint64_t attributed_ = 0;
  std::uint64_t freed_ = 0;
  std::uint64_t returned_ = 0;
  std::uint64_t thinned_ = 0;
  std::uint64_t refused_ = 0;
};

}  // namespace torchleak
