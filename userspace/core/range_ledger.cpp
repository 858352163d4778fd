// SPDX-License-Identifier: Apache-2.0
#include "torchleak/core/range_ledger.hpp"

#include <algorithm>
#include <iterator>
#include <limits>
#include <utility>

namespace torchleak {
namespace {

__extension__ using Wide = unsigned __int128;

std::uint64_t end_of(std::uint64_t begin, std::uint64_t length) {
  return begin + std::min(length, std::numeric_limits<std::uint64_t>::max() - begin);
}

bool joinable(const Mapping& left, const Mapping& right) {
  return left.end == right.begin && left.baseline_bytes == 0 && right.baseline_bytes == 0 &&
         left.created_ns == right.created_ns && left.source == right.source && left.shared == right.shared &&
         left.inherited == right.inherited && left.name == right.name;
}

}  // namespace

std::uint64_t share(std::uint64_t bytes, std::uint64_t part, std::uint64_t whole) {
  return static_cast<std::uint64_t>(static_cast<Wide>(bytes) * part / whole);
}

std::vector<Mapping> RangeLedger::insert(Mapping mapping) {
  std::vector<Mapping> displaced;
  if (mapping.begin < mapping.end) {
    take(mapping.begin, mapping.end, std::nullopt, displaced);
    put(std::move(mapping));
  }
  return displaced;
}

std::vector<Mapping> RangeLedger::erase(std::uint64_t begin, std::uint64_t end, std::uint64_t entered_ns) {
  std::vector<Mapping> removed;
  take(begin, end, entered_ns, removed);
  return removed;
}

std::vector<Mapping> RangeLedger::move(std::uint64_t old_begin, std::uint64_t old_length,
                                       std::uint64_t new_begin, std::uint64_t new_length,
                                       std::uint64_t entered_ns, std::uint64_t now_ns) {
  const std::uint64_t old_end = end_of(old_begin, old_length);
  const std::uint64_t new_end = end_of(new_begin, new_length);
  if (new_begin == new_end) {
    return {};
  }
  const std::uint64_t kept = std::min(old_end - old_begin, new_end - new_begin);
  const Mapping* original = kept == 0 ? find(old_begin) : nullptr;
  Mapping fresh = original != nullptr ? *original : Mapping{};

  std::vector<Mapping> removed;
  std::vector<Mapping> moved;
  take(old_begin + kept, old_end, entered_ns, removed);
  take(old_begin, old_begin + kept, entered_ns, moved);
  take(new_begin, new_end, std::nullopt, removed);

  for (Mapping& piece : moved) {
    piece.begin = piece.begin - old_begin + new_begin;
    piece.end = piece.end - old_begin + new_begin;
  }
  const std::uint64_t kept_end = new_begin + kept;
  if (!moved.empty() && moved.back().end == kept_end && moved.back().baseline_bytes == 0) {
    moved.back().end = new_end;
  } else if (moved.empty() || kept_end < new_end) {
    if (!moved.empty()) {
      fresh = moved.back();
    }
    fresh.begin = moved.empty() ? new_begin : kept_end;
    fresh.end = new_end;
    fresh.baseline_bytes = 0;
    moved.push_back(std::move(fresh));
  }
  for (Mapping& piece : moved) {
    piece.created_ns = now_ns;
    put(std::move(piece));
  }
  return removed;
}

std::vector<Mapping> RangeLedger::discard(std::uint64_t begin, std::uint64_t end, std::uint64_t entered_ns) {
  std::vector<Mapping> emptied;
  if (begin >= end) {
    return emptied;
  }
  for (auto it = first_reaching(begin); it != ranges_.end() && it->first < end; ++it) {
    if (it->second.created_ns >= entered_ns || it->second.baseline_bytes == 0) {
      continue;
    }
    if (ranges_.size() < kMaxPieces) {
      it = narrow(it, begin, end);
      emptied.push_back(it->second);
      it->second.baseline_bytes = 0;
      it = join(it);
    } else {
      Mapping part = it->second;
      part.begin = std::max(part.begin, begin);
      part.end = std::min(part.end, end);
      part.baseline_bytes = share(part.baseline_bytes, part.length(), it->second.length());
      it->second.baseline_bytes -= part.baseline_bytes;
      emptied.push_back(std::move(part));
    }
  }
  return emptied;
}

const Mapping* RangeLedger::find(std::uint64_t address) const {
  auto it = ranges_.upper_bound(address);
  if (it == ranges_.begin()) {
    return nullptr;
  }
  --it;
  return address < it->second.end ? &it->second : nullptr;
}

// The first mapping that ends behind `address`.
RangeLedger::Iterator RangeLedger::first_reaching(std::uint64_t address) {
  auto it = ranges_.upper_bound(address);
  if (it != ranges_.begin() && std::prev(it)->second.end > address) {
    --it;
  }
  return it;
}

// Cuts `piece` at an address strictly inside it; returns the right part.
RangeLedger::Iterator RangeLedger::split(Iterator piece, std::uint64_t address) {
  Mapping right = piece->second;
  Mapping& left = piece->second;
  left.baseline_bytes = share(left.baseline_bytes, address - left.begin, left.length());
  left.end = address;
  right.baseline_bytes -= left.baseline_bytes;
  right.begin = address;
  return ranges_.emplace_hint(std::next(piece), address, std::move(right));
}

void RangeLedger::split_at(std::uint64_t address) {
  const auto it = first_reaching(address);
  if (it != ranges_.end() && it->first < address) {
    split(it, address);
  }
}

// The part of `piece` inside [begin, end), which it overlaps, as a piece of its own.
RangeLedger::Iterator RangeLedger::narrow(Iterator piece, std::uint64_t begin, std::uint64_t end) {
  if (piece->first < begin) {
    piece = split(piece, begin);
  }
  if (piece->second.end > end) {
    split(piece, end);
  }
  return piece;
}

// Moves [begin, end) out of the ledger; with `entered_ns`, only what was created before it.
void RangeLedger::take(std::uint64_t begin, std::uint64_t end, std::optional<std::uint64_t> entered_ns,
                       std::vector<Mapping>& into) {
  if (begin >= end) {
    return;
  }
  auto it = first_reaching(begin);
  while (it != ranges_.end() && it->first < end) {
    if (entered_ns && it->second.created_ns >= *entered_ns) {
      ++it;
      continue;
    }
    it = narrow(it, begin, end);
    into.push_back(std::move(it->second));
    it = ranges_.erase(it);
  }
}

void RangeLedger::put(Mapping mapping) {
  const std::uint64_t begin = mapping.begin;
  ranges_.insert_or_assign(begin, std::move(mapping));
}

// Joins `piece` with its neighbours where nothing tells them apart; returns the result.
RangeLedger::Iterator RangeLedger::join(Iterator piece) {
  if (piece != ranges_.begin() && joinable(std::prev(piece)->second, piece->second)) {
    const auto left = std::prev(piece);
    left->second.end = piece->second.end;
    ranges_.erase(piece);
    piece = left;
  }
  if (const auto right = std::next(piece); right != ranges_.end() && joinable(piece->second, right->second)) {
    piece->second.end = right->second.end;
    ranges_.erase(right);
  }
  return piece;
}

}  // namespace torchleak
