// SPDX-License-Identifier: Apache-2.0
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <span>
#include <utility>
#include <vector>

#include "torchleak/base/unique_fd.hpp"
#include "torchleak/procfs/chunk_walk.hpp"
#include "torchleak/procfs/process.hpp"

namespace torchleak::procfs {
namespace {

constexpr std::uint32_t kMaxReads = 8192;               // a few µs each
constexpr std::uint64_t kMaxCountedPages = 4ULL << 20;  // 16 GiB of 4 KiB pages, read as 32 MiB of pagemap
constexpr std::uint64_t kPagePresent = 1ULL << 63;
constexpr std::uint64_t kPageSwapped = 1ULL << 62;

struct PageCounts {
  std::uint64_t resident = 0;
  std::uint64_t swapped = 0;
};

// Memory of another process, read only where a page is there already.
class ResidentMemory {
 public:
  ResidentMemory(pid_t pid, std::uint64_t page_bytes)
      : pid_(pid),
        page_bytes_(page_bytes),
        pagemap_(::open(fmt::format("/proc/{}/pagemap", pid).c_str(), O_RDONLY | O_CLOEXEC)) {}

  explicit operator bool() const { return static_cast<bool>(pagemap_); }

  std::optional<PoolWords> read(std::uint64_t address) {
    if (reads_ >= kMaxReads || (page(address / page_bytes_) & kPagePresent) == 0) {
      return std::nullopt;
    }
    ++reads_;
    PoolWords words;
    const iovec local{words.data(), sizeof(words)};
    // NOLINTNEXTLINE(performance-no-int-to-ptr): an address in another process
    const iovec remote{reinterpret_cast<void*>(address), sizeof(words)};
    if (::process_vm_readv(pid_, &local, 1, &remote, 1, 0) != static_cast<ssize_t>(sizeof(words))) {
      return std::nullopt;
    }
    return words;
  }

  // Zeros once more pages were counted than the work is worth.
  PageCounts count(std::uint64_t begin, std::uint64_t end) {
    PageCounts counts;
    counted_ += (end - begin) / page_bytes_;
    if (counted_ > kMaxCountedPages) {
      return counts;
    }
    for (std::uint64_t number = begin / page_bytes_; number < end / page_bytes_; ++number) {
      const std::uint64_t state = page(number);
      counts.resident += (state & kPagePresent) != 0 ? 1 : 0;
      counts.swapped += (state & kPageSwapped) != 0 ? 1 : 0;
    }
    return counts;
  }

 private:
  std::uint64_t page(std::uint64_t number) {
    const std::uint64_t first = number / window_.size() * window_.size();
    if (!window_valid_ || first != window_first_) {
      const auto length = ::pread(pagemap_.get(), window_.data(), sizeof(window_),
                                  static_cast<off_t>(first * sizeof(window_[0])));
      const auto pages = length > 0 ? static_cast<std::size_t>(length) / sizeof(window_[0]) : 0;
      std::fill(window_.begin() + static_cast<std::ptrdiff_t>(pages), window_.end(), 0);
      window_first_ = first;
      window_valid_ = true;
    }
    return window_[number - first];
  }

  pid_t pid_;
  std::uint64_t page_bytes_;
  UniqueFd pagemap_;
  std::array<std::uint64_t, 512> window_{};
  std::uint64_t window_first_ = 0;
  bool window_valid_ = false;
  std::uint32_t reads_ = 0;
  std::uint64_t counted_ = 0;
};

bool may_hold_chunks(const VmaFacts& vma) {
  return vma.name.empty() && vma.readable && vma.writable && !vma.executable && !vma.shared;
}

// Hands out a total in proportion to weights, the rounding carried on so that the parts add up to it.
class Shares {
 public:
  Shares(std::uint64_t total, std::uint64_t weights) : total_(total), weights_(weights) {}
  std::uint64_t next(std::uint64_t weight) {
    weight_ += weight;
    __extension__ using Wide = unsigned __int128;
    const auto upto = weights_ == 0 ? 0 : static_cast<std::uint64_t>(Wide{total_} * weight_ / weights_);
    return upto - std::exchange(given_, upto);
  }

 private:
  std::uint64_t total_;
  std::uint64_t weights_;
  std::uint64_t weight_ = 0;
  std::uint64_t given_ = 0;
};

constexpr std::uint64_t SmapsEntry::*kResidentFields[] = {
    &SmapsEntry::rss,           &SmapsEntry::pss,
    &SmapsEntry::private_clean, &SmapsEntry::private_dirty,
    &SmapsEntry::shared_clean,  &SmapsEntry::shared_dirty,
    &SmapsEntry::anonymous,     &SmapsEntry::anon_huge_pages};

void share_out(const SmapsEntry& whole, std::span<SmapsEntry> pieces, std::uint64_t SmapsEntry::*field,
               const std::vector<std::uint64_t>& weights) {
  std::uint64_t sum = 0;
  for (const std::uint64_t weight : weights) {
    sum += weight;
  }
  Shares shares(whole.*field, sum);
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    pieces[i].*field = shares.next(sum == 0 ? 0 : weights[i]);
  }
  if (sum == 0) {  // nothing was counted: by length
    Shares by_length(whole.*field, whole.vma.end - whole.vma.begin);
    for (SmapsEntry& piece : pieces) {
      piece.*field = by_length.next(piece.vma.end - piece.vma.begin);
    }
  }
}

// Replaces the counts of pieces, each a copy of the whole's, by their shares.
void share_counts(const SmapsEntry& whole, std::span<SmapsEntry> pieces, ResidentMemory& memory) {
  std::vector<std::uint64_t> resident;
  std::vector<std::uint64_t> swapped;
  for (const SmapsEntry& piece : pieces) {
    const PageCounts counts = memory.count(piece.vma.begin, piece.vma.end);
    resident.push_back(counts.resident);
    swapped.push_back(counts.swapped);
  }
  for (const auto field : kResidentFields) {
    share_out(whole, pieces, field, resident);
  }
  share_out(whole, pieces, &SmapsEntry::swap, swapped);
}

// Appends the mappings of a run to `out`, cut where the spans that cover it say.
void append_cut(std::span<const SmapsEntry> run, std::span<const ChunkSpan> spans, ResidentMemory& memory,
                std::vector<SmapsEntry>& out) {
  auto span = spans.begin();
  for (const SmapsEntry& whole : run) {
    const std::size_t first = out.size();
    for (std::uint64_t at = whole.vma.begin; at < whole.vma.end; at = out.back().vma.end) {
      SmapsEntry& piece = out.emplace_back(whole);
      piece.vma.begin = at;
      piece.vma.end = std::min(span->end, whole.vma.end);
      piece.vma.chunk = span->chunk;
      span += span->end == piece.vma.end ? 1 : 0;
    }
    if (out.size() - first > 1) {
      share_counts(whole, std::span(out).subspan(first), memory);
    }
  }
}

// The length of the run of adjacent mappings that may hold chunks at the start of `entries`.
std::size_t run_length(std::span<const SmapsEntry> entries) {
  std::size_t length = 0;
  while (length < entries.size() && may_hold_chunks(entries[length].vma) &&
         (length == 0 || entries[length - 1].vma.end == entries[length].vma.begin)) {
    ++length;
  }
  return length;
}

// A run that takes more entries than it had.
struct Split {
  std::size_t first = 0;
  std::size_t count = 0;
  std::vector<SmapsEntry> pieces;
};

std::vector<SmapsEntry> with_splits(std::vector<SmapsEntry> entries, std::vector<Split> splits) {
  std::vector<SmapsEntry> all;
  std::size_t next = 0;
  const auto copy_until = [&](std::size_t end) {
    std::move(entries.begin() + static_cast<std::ptrdiff_t>(next),
              entries.begin() + static_cast<std::ptrdiff_t>(end), std::back_inserter(all));
  };
  for (Split& split : splits) {
    copy_until(split.first);
    std::ranges::move(split.pieces, std::back_inserter(all));
    next = split.first + split.count;
  }
  copy_until(entries.size());
  return all;
}

ProcessTraits traits_of_entries(const std::vector<SmapsEntry>& entries) {
  std::vector<VmaFacts> named;  // the others tell nothing of the process
  for (const SmapsEntry& entry : entries) {
    if (!entry.vma.name.empty()) {
      named.push_back(entry.vma);
    }
  }
  return traits_of(named);
}

}  // namespace

void probe_chunk_headers(pid_t pid, std::vector<SmapsEntry>& entries) {
  const auto page_bytes = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  ResidentMemory memory(pid, page_bytes);
  if (!memory) {
    return;
  }
  const ProcessTraits traits = traits_of_entries(entries);
  const ReadWords read = [&](std::uint64_t address) { return memory.read(address); };
  std::vector<Split> splits;
  for (std::size_t first = 0; first < entries.size();) {
    const auto left = std::span(entries).subspan(first);
    const auto run = left.first(std::max<std::size_t>(run_length(left), 1));
    std::vector<std::uint64_t> edges;
    bool resident = false;
    for (const SmapsEntry& entry : run) {
      edges.push_back(entry.vma.end);
      resident |= entry.rss > 0;
    }
    if (resident && may_hold_chunks(run.front().vma)) {
      std::vector<SmapsEntry> cut;
      append_cut(run, walk_chunks(run.front().vma.begin, edges, traits, page_bytes, read), memory, cut);
      if (cut.size() == run.size()) {
        std::ranges::move(cut, run.begin());
      } else {
        splits.push_back({first, run.size(), std::move(cut)});
      }
    }
    first += run.size();
  }
  if (!splits.empty()) {
    entries = with_splits(std::move(entries), std::move(splits));
  }
}

}  // namespace torchleak::procfs
