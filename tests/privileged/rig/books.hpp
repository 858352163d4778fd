// SPDX-License-Identifier: Apache-2.0
// What every report must fulfil, whatever the workload, and the figures by source.
#pragma once

#include <cstdint>

#include "scene.hpp"

namespace torchleak::rig {

std::int64_t start_of(const ProcessReport& process, Source source);
std::int64_t end_of(const ProcessReport& process, Source source);
std::int64_t growth_of(const ProcessReport& process, Source source);
// Of a process that has ended: whether a mapping was made by malloc is seen in its first bytes, if they can
// still be read.
std::int64_t mapped_growth_of(const ProcessReport& process);
std::int64_t copied_in(const ProcessReport& process);

// The kernel's own count of a mapping: right to the page.
void expect_exact(std::int64_t figure, std::uint64_t known_bytes, std::uint64_t mappings = 1);
// A sampled figure: within 5 %.
void expect_sampled(std::int64_t figure, std::uint64_t known_bytes);

// start + attributed - freed + unexplained == measured, and what is unexplained is within 5 % of the change
// or 2 MiB.
void expect_reconciled(const ProcessReport& process);
// The sources sum up to what the kernel says, within 2 % or 2 MiB.
void expect_sources_sum_to(const ProcessReport& process, const Truth& truth);
// Nothing was lost, all layers work, and both of the above.
void expect_true_books(const Outcome& outcome);

}  // namespace torchleak::rig
