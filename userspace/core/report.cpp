// SPDX-License-Identifier: Apache-2.0
#include "torchleak/core/report.hpp"

#include <algorithm>
#include <array>
#include <cassert>

namespace torchleak {
namespace {

// Both in the order of their enumeration.
constexpr std::array<std::string_view, 6> kRoleNames = {
    "main", "dataloader_worker", "pin_memory_thread", "pool_worker", "subprocess", "helper"};
constexpr std::array<std::string_view, 3> kLayerStateNames = {"on", "off", "degraded"};
static_assert(static_cast<std::size_t>(Role::kHelper) + 1 == kRoleNames.size());
static_assert(static_cast<std::size_t>(LayerState::kDegraded) + 1 == kLayerStateNames.size());

template <typename Enum, std::size_t N>
std::string_view name_in(const std::array<std::string_view, N>& names, Enum value) {
  const auto index = static_cast<std::size_t>(value);
  assert(index < N);
  return names[index];
}

template <typename Enum, std::size_t N>
std::optional<Enum> value_in(const std::array<std::string_view, N>& names, std::string_view name) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) {
    return std::nullopt;
  }
  return static_cast<Enum>(found - names.begin());
}

}  // namespace

// Wraps instead of overflowing: the figures may come from a file that somebody has edited.
std::int64_t ProcessReport::growth_bytes() const {
  const auto own = [](const MemoryCounts& counts) { return counts.anon + counts.shmem + counts.swap; };
  std::uint64_t growth = own(end) - own(start);
  const auto file = static_cast<std::int64_t>(end.file - start.file);
  for (const SourceRow& row : sources) {
    growth += static_cast<std::uint64_t>(row.cow);
    // A file written to privately is anonymous memory, and counted so already.
    if (row.source == Source::kFileMapping) {
      const std::int64_t mapped = row.growth > 0 ? std::clamp<std::int64_t>(file, 0, row.growth)
                                                 : std::clamp<std::int64_t>(file, row.growth, 0);
      growth += static_cast<std::uint64_t>(mapped);
    }
  }
  return static_cast<std::int64_t>(growth);
}

std::string_view role_name(Role role) {
  return name_in(kRoleNames, role);
}
std::optional<Role> role_from_name(std::string_view name) {
  return value_in<Role>(kRoleNames, name);
}
std::string_view layer_state_name(LayerState state) {
  return name_in(kLayerStateNames, state);
}
std::optional<LayerState> layer_state_from_name(std::string_view name) {
  return value_in<LayerState>(kLayerStateNames, name);
}

}  // namespace torchleak
