// SPDX-License-Identifier: Apache-2.0
#include "torchleak/core/address_space.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <iterator>
#include <limits>
#include <optional>
#include <utility>

namespace torchleak {
namespace {

constexpr std::uint64_t kForever = std::numeric_limits<std::uint64_t>::max();
// No page stands for more than all of a process's address space, nor is any page larger than 1 GiB.
constexpr std::uint64_t kMaxSampleBytes = std::uint64_t{1} << 47;
constexpr std::uint64_t kMaxPageBytes = std::uint64_t{1} << 30;
// Younger than the headers the tool may be built with: Linux 5.18 and 6.13.
constexpr std::uint32_t kDontNeedLocked = 24;
constexpr std::uint32_t kGuardInstall = 102;

struct Range {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  bool empty() const { return begin >= end; }
  std::uint64_t length() const { return end - begin; }
};

std::uint64_t round_down(std::uint64_t address, std::uint64_t page_bytes) {
  return address & ~(page_bytes - 1);
}

// Up to the last page boundary there is.
std::uint64_t round_up(std::uint64_t address, std::uint64_t page_bytes) {
  const std::uint64_t last = round_down(kForever, page_bytes);
  return address > last ? last : round_down(address + (page_bytes - 1), page_bytes);
}

// The whole pages that hold [begin, begin + length), as the kernel rounds a length; empty where the length is
// 0.
Range pages_of(std::uint64_t begin, std::uint64_t length, std::uint64_t page_bytes) {
  const std::uint64_t first = round_down(begin, page_bytes);
  if (length == 0) {
    return {first, first};
  }
  return {first, round_up(begin + std::min(length, kForever - begin), page_bytes)};
}

// A page that was not there. A library's .bss is anonymous memory that bears no file's name.
FaultClass class_in(const Mapping* mapping) {
  if (mapping == nullptr) {
    return FaultClass::kFirstTouch;
  }
  const bool file = mapping->source == Source::kFileMapping ||
                    (mapping->source == Source::kLibrary && !mapping->name.empty());
  if (file) {
    return FaultClass::kFile;
  }
  const bool shmem = mapping->source == Source::kSharedMemory || mapping->shared;
  return shmem ? FaultClass::kShmem : FaultClass::kFirstTouch;
}

bool drops_pages(std::uint32_t advice) {
  return advice == MADV_DONTNEED || advice == MADV_REMOVE || advice == kDontNeedLocked ||
         advice == kGuardInstall;
}

bool is_heap(const Mapping* mapping) {
  return mapping != nullptr && mapping->source == Source::kMallocHeap;
}

}  // namespace

AddressSpace::AddressSpace(std::uint64_t page_bytes, std::size_t max_samples)
    : page_bytes_(page_bytes), max_samples_(std::max(max_samples, 2 * kSourceCount)) {
  assert(std::has_single_bit(page_bytes));
}

void AddressSpace::add_baseline(Mapping mapping) {
  if (mapping.begin >= mapping.end) {
    return;
  }
  if (mapping.source == Source::kMallocHeap) {
    heap_end_ = 0;  // looked for again at the next set_break
  }
  start_bytes_ += mapping.baseline_bytes;
  resident_.add(mapping.source, mapping.baseline_bytes);
  for (const Mapping& former : mappings_.insert(std::move(mapping))) {
    start_bytes_ -= former.baseline_bytes;
    resident_.take(former.source, former.baseline_bytes);
  }
}

void AddressSpace::map(const MmapFacts& facts, std::uint64_t entered_ns, std::uint64_t now_ns) {
  const Range range = pages_of(facts.address, facts.length, page_bytes_);
  if (range.empty()) {
    return;
  }
  if (mappings_.size() >= RangeLedger::kMaxPieces) {
    ++refused_;
    drop_range(range.begin, range.end, entered_ns);
    return;
  }
  Mapping mapping;
  mapping.begin = range.begin;
  mapping.end = range.end;
  mapping.created_ns = now_ns;
  mapping.source = classify_mmap(facts, traits_);
  mapping.shared = (facts.flags & MAP_SHARED) != 0;  // MAP_SHARED_VALIDATE has the bit too
  mapping.name = facts.file_backed ? facts.name : std::string();
  place(std::move(mapping));
  settle(range.begin, range.end, now_ns);
}

void AddressSpace::unmap(std::uint64_t begin, std::uint64_t length, std::uint64_t entered_ns) {
  const Range range = pages_of(begin, length, page_bytes_);
  drop_range(range.begin, range.end, entered_ns);
}

void AddressSpace::remap(std::uint64_t old_begin, std::uint64_t old_length, std::uint64_t new_begin,
                         std::uint64_t new_length, std::uint64_t entered_ns, std::uint64_t now_ns) {
  const Range from = pages_of(old_begin, old_length, page_bytes_);
  const Range to = pages_of(new_begin, new_length, page_bytes_);
  if (to.empty()) {
    return;
  }
  const std::uint64_t kept_end = from.begin + std::min(from.length(), to.length());
  drop_range(kept_end, from.end, entered_ns);

  std::vector<std::pair<std::uint64_t, PageSample>> moving;
  for (auto it = samples_.lower_bound(from.begin); it != samples_.end() && it->first < kept_end;) {
    if (outlives(it->first, entered_ns)) {
      ++it;
    } else {
      moving.emplace_back(it->first - from.begin + to.begin, it->second);
      it = samples_.erase(it);
    }
  }
  forget(mappings_.move(from.begin, kept_end - from.begin, to.begin, to.length(), entered_ns, now_ns));
  settle(to.begin, to.end, now_ns);
  for (const auto& [page, sample] : moving) {
    if (!samples_.try_emplace(page, sample).second) {
      resident_.take(sample.source, sample.bytes);
      freed_ += sample.bytes;
    }
  }
}

void AddressSpace::protect(std::uint64_t begin, std::uint64_t length, std::uint32_t protection) {
  const Mapping* mapping = mappings_.find(begin);
  if (length == 0 || mapping == nullptr) {
    return;
  }
  const std::optional<Source> source = classify_protect(mapping->source, mapping->begin, protection);
  if (!source || *source == mapping->source) {
    return;
  }
  mappings_.update(mapping->begin, mapping->end, [this, &source](Mapping& whole) {
    resident_.take(whole.source, whole.baseline_bytes);
    resident_.add(*source, whole.baseline_bytes);
    whole.source = *source;
    rename_samples(whole.begin, whole.end);
  });
}

void AddressSpace::set_break(std::uint64_t start, std::uint64_t end, std::uint64_t entered_ns,
                             std::uint64_t now_ns) {
  const std::uint64_t begin = round_up(start, page_bytes_);
  const std::uint64_t new_end = std::max(begin, round_up(end, page_bytes_));
  if (heap_begin_ != begin || heap_end_ == 0) {
    find_heap(begin);
  }
  const std::uint64_t old_end = heap_end_;
  if (new_end < old_end) {
    drop_range(new_end, old_end, entered_ns);
    heap_end_ = is_heap(mappings_.find(new_end)) ? old_end : new_end;
  } else if (new_end > old_end) {
    const Mapping* last = old_end > begin ? mappings_.find(old_end - 1) : nullptr;
    if (is_heap(last) && last->end == old_end && last->baseline_bytes == 0 && !last->inherited) {
      const std::uint64_t first = last->begin;
      forget(mappings_.move(first, old_end - first, first, new_end - first, kForever, now_ns));
    } else {
      Mapping growth;
      growth.begin = old_end;
      growth.end = new_end;
      growth.created_ns = now_ns;
      growth.source = Source::kMallocHeap;
      growth.name = "[heap]";
      place(std::move(growth));
    }
    settle(old_end, new_end, now_ns);
    heap_end_ = new_end;
  }
}

void AddressSpace::advise(std::uint64_t begin, std::uint64_t length, std::uint32_t advice,
                          std::uint64_t entered_ns) {
  if (!drops_pages(advice)) {
    return;
  }
  const Range range = pages_of(begin, length, page_bytes_);
  for (auto it = samples_.lower_bound(range.begin); it != samples_.end() && it->first < range.end;) {
    it = it->second.time_ns >= entered_ns || outlives(it->first, entered_ns) ? std::next(it) : drop(it);
  }
  forget(mappings_.discard(range.begin, range.end, entered_ns));
}

FaultClass AddressSpace::touch(std::uint64_t address, std::uint64_t weight, std::uint64_t touched_page_bytes,
                               bool present, std::uint64_t now_ns) {
  const bool plausible = std::has_single_bit(touched_page_bytes) && touched_page_bytes >= page_bytes_ &&
                         touched_page_bytes <= kMaxPageBytes;
  const std::uint64_t size = plausible ? touched_page_bytes : page_bytes_;
  const std::uint64_t bytes = weight > kMaxSampleBytes / size ? kMaxSampleBytes : weight * size;
  const Mapping* mapping = mappings_.find(address);
  const Source source = mapping != nullptr ? mapping->source : Source::kAnonOther;
  const FaultClass fault = class_in(mapping);
  if (present) {
    if (mapping != nullptr && mapping->shared) {
      return fault;
    }
    copied_.add(source, bytes);
    return FaultClass::kCopyOnWrite;
  }
  if (bytes > 0) {
    // A huge page lies within its mapping; one that would not is known by the small page that was touched.
    const std::uint64_t huge = round_down(address, size);
    const bool fits = mapping == nullptr || huge >= mapping->begin;
    add(fits ? huge : round_down(address, page_bytes_), {bytes, now_ns, source, fault});
  }
  return fault;
}

void AddressSpace::drop_sample(std::uint64_t page_address) {
  if (const auto it = samples_.find(round_down(page_address, page_bytes_)); it != samples_.end()) {
    drop(it);
  }
}

void AddressSpace::close() {
  mappings_.clear();
  samples_.clear();
}

void AddressSpace::place(Mapping mapping) {
  forget(mappings_.insert(std::move(mapping)));
}

// Whether the page is of a mapping that was made while the call was under way, and so is not the call's to
// remove.
bool AddressSpace::outlives(std::uint64_t page, std::uint64_t entered_ns) const {
  const Mapping* mapping = mappings_.find(page);
  return mapping != nullptr && mapping->created_ns >= entered_ns;
}

void AddressSpace::drop_range(std::uint64_t begin, std::uint64_t end, std::uint64_t entered_ns) {
  if (begin >= end) {
    return;
  }
  for (auto it = samples_.lower_bound(begin); it != samples_.end() && it->first < end;) {
    it = outlives(it->first, entered_ns) ? std::next(it) : drop(it);
  }
  forget(mappings_.erase(begin, end, entered_ns));
}

// [begin, end) has just been mapped. Nobody had its address before `now_ns`, so older samples are of what lay
// there.
void AddressSpace::settle(std::uint64_t begin, std::uint64_t end, std::uint64_t now_ns) {
  for (auto it = samples_.lower_bound(begin); it != samples_.end() && it->first < end;) {
    it = it->second.time_ns >= now_ns ? std::next(it) : drop(it);
  }
  rename_samples(begin, end);
}

// Samples in [begin, end) take the source of the mapping they are in.
void AddressSpace::rename_samples(std::uint64_t begin, std::uint64_t end) {
  for (auto it = samples_.lower_bound(begin); it != samples_.end() && it->first < end; ++it) {
    PageSample& sample = it->second;
    if (const Mapping* mapping = mappings_.find(it->first)) {
      resident_.take(sample.source, sample.bytes);
      resident_.add(mapping->source, sample.bytes);
      sample.source = mapping->source;
      sample.fault = class_in(mapping);
    }
  }
}

// The heap as the baseline knows it: the run of heap mappings from `start` on, which may have holes.
void AddressSpace::find_heap(std::uint64_t start) {
  heap_begin_ = start;
  heap_end_ = start;
  const auto& ranges = mappings_.ranges();
  if (const Mapping* first = mappings_.find(start); is_heap(first)) {
    heap_end_ = first->end;
  }
  for (auto it = ranges.lower_bound(start); it != ranges.end() && is_heap(&it->second); ++it) {
    heap_end_ = it->second.end;
  }
}

AddressSpace::Samples::iterator AddressSpace::drop(Samples::iterator sample) {
  freed_ += sample->second.bytes;
  resident_.take(sample->second.source, sample->second.bytes);
  return samples_.erase(sample);
}

void AddressSpace::add(std::uint64_t page, const PageSample& sample) {
  if (const auto former = samples_.find(page); former != samples_.end()) {
    returned_ += std::min(former->second.bytes, sample.bytes);
    drop(former);
  }
  samples_.emplace(page, sample);
  attributed_ += sample.bytes;
  resident_.add(sample.source, sample.bytes);
  if (samples_.size() > max_samples_) {
    thin();
  }
}

void AddressSpace::forget(const std::vector<Mapping>& removed) {
  for (const Mapping& mapping : removed) {
    freed_ += mapping.baseline_bytes;
    resident_.take(mapping.source, mapping.baseline_bytes);
  }
}

// Every second sample of each source goes and the one before it stands for both: half the memory, the same
// totals.
void AddressSpace::thin() {
  std::array<PageSample*, kSourceCount> waiting{};
  for (auto it = samples_.begin(); it != samples_.end();) {
    PageSample*& partner = waiting[static_cast<std::size_t>(it->second.source)];
    if (partner == nullptr) {
      partner = &it->second;
      ++it;
    } else {
      partner->bytes += it->second.bytes;
      partner = nullptr;
      ++thinned_;
      it = samples_.erase(it);
    }
  }
}

}  // namespace torchleak
