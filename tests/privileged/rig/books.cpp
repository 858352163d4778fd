// SPDX-License-Identifier: Apache-2.0
#include "books.hpp"

#include <unistd.h>

#include <algorithm>

namespace torchleak::rig {
namespace {

constexpr std::int64_t kAllowedBytes = 2 * static_cast<std::int64_t>(kMiB);

SourceRow row_of(const ProcessReport& process, Source source) {
  const auto row = std::ranges::find(process.sources, source, &SourceRow::source);
  return row == process.sources.end() ? SourceRow{.source = source} : *row;
}

std::int64_t distance(std::int64_t a, std::int64_t b) {
  return a > b ? a - b : b - a;
}

}  // namespace

std::int64_t start_of(const ProcessReport& process, Source source) {
  return row_of(process, source).start;
}

std::int64_t end_of(const ProcessReport& process, Source source) {
  return row_of(process, source).end;
}

std::int64_t growth_of(const ProcessReport& process, Source source) {
  return row_of(process, source).growth;
}

std::int64_t mapped_growth_of(const ProcessReport& process) {
  return growth_of(process, Source::kAnonOther) + growth_of(process, Source::kMallocMmap);
}

std::int64_t copied_in(const ProcessReport& process) {
  std::int64_t copied = 0;
  for (const SourceRow& row : process.sources) {
    copied += row.cow;
  }
  return copied;
}

void expect_exact(std::int64_t figure, std::uint64_t known_bytes, std::uint64_t mappings) {
  EXPECT_LE(distance(figure, static_cast<std::int64_t>(known_bytes)),
            static_cast<std::int64_t>(mappings) * ::getpagesize())
      << "told " << figure << ", known " << known_bytes;
}

void expect_sampled(std::int64_t figure, std::uint64_t known_bytes) {
  EXPECT_LE(distance(figure, static_cast<std::int64_t>(known_bytes)) * 20,
            static_cast<std::int64_t>(known_bytes))
      << "told " << figure << ", known " << known_bytes;
}

void expect_reconciled(const ProcessReport& process) {
  const Reconciliation& sum = process.reconciliation;
  EXPECT_EQ(sum.start + sum.attributed - sum.freed + sum.unexplained, sum.measured);
  const std::int64_t change = distance(sum.measured, sum.start);
  EXPECT_LE(distance(sum.unexplained, 0), std::max(change / 20, kAllowedBytes))
      << "process " << process.pid << ": start " << sum.start << " + attributed " << sum.attributed
      << " - freed " << sum.freed << " + unexplained " << sum.unexplained << " = " << sum.measured;
}

void expect_sources_sum_to(const ProcessReport& process, const Truth& truth) {
  std::int64_t sum = 0;
  for (const SourceRow& row : process.sources) {
    sum += row.end;
    EXPECT_EQ(row.end - row.start, row.growth) << source_name(row.source);
  }
  const auto kernel = static_cast<std::int64_t>(truth.rss + truth.swap);
  EXPECT_LE(distance(sum, kernel), std::max(kernel / 50, kAllowedBytes))
      << "sources sum up to " << sum << ", the kernel says " << kernel;
}

void expect_true_books(const Outcome& outcome) {
  EXPECT_EQ(outcome.report.capture.lost, Lost{});
  for (const char* layer : {"pages", "mappings"}) {
    EXPECT_EQ(outcome.report.capture.layers.at(layer).state, LayerState::kOn) << layer;
  }
  expect_sources_sum_to(outcome.process, outcome.truth);
  expect_reconciled(outcome.process);
}

}  // namespace torchleak::rig
