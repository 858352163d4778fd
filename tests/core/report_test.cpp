// SPDX-License-Identifier: Apache-2.0
#include "torchleak/core/report.hpp"

#include <gtest/gtest.h>

namespace torchleak {
namespace {

TEST(Report, EveryRoleNameLeadsBack) {
  for (const Role role : {Role::kMain, Role::kDataLoaderWorker, Role::kPinMemoryThread, Role::kPoolWorker,
                          Role::kSubprocess, Role::kHelper}) {
    EXPECT_EQ(role_from_name(role_name(role)), role);
  }
  EXPECT_EQ(role_name(Role::kDataLoaderWorker), "dataloader_worker");
  EXPECT_EQ(role_from_name("worker"), std::nullopt);
  EXPECT_EQ(role_from_name(""), std::nullopt);
}

TEST(Report, EveryLayerStateNameLeadsBack) {
  for (const LayerState state : {LayerState::kOn, LayerState::kOff, LayerState::kDegraded}) {
    EXPECT_EQ(layer_state_from_name(layer_state_name(state)), state);
  }
  EXPECT_EQ(layer_state_from_name("ON"), std::nullopt);
}

TEST(ProcessReport, GrowthIsRssAndSwapAndWhatWasCopied) {
  ProcessReport process;
  process.start.anon = 1000;
  process.start.swap = 50;
  process.end.anon = 1400;
  process.end.shmem = 100;
  process.end.swap = 20;
  EXPECT_EQ(process.growth_bytes(), 470);
  process.sources = {{.source = Source::kMallocHeap, .cow = 7}, {.source = Source::kPythonArena, .cow = 30}};
  EXPECT_EQ(process.growth_bytes(), 507);
}

TEST(ProcessReport, PagesOfLibrariesAreNoGrowth) {
  ProcessReport process;
  process.end.file = 900;
  process.sources = {{.source = Source::kLibrary, .end = 900, .growth = 900, .cow = 5}};
  EXPECT_EQ(process.growth_bytes(), 5);
}

TEST(ProcessReport, PagesOfMappedFilesAreGrowthOnce) {
  ProcessReport read;
  read.end.file = 1000;
  read.sources = {{.source = Source::kFileMapping, .end = 700, .growth = 700}};
  EXPECT_EQ(read.growth_bytes(), 700);
  ProcessReport written_privately;
  written_privately.end.anon = 700;
  written_privately.sources = {{.source = Source::kFileMapping, .end = 700, .growth = 700}};
  EXPECT_EQ(written_privately.growth_bytes(), 700);
  ProcessReport unmapped;
  unmapped.start.file = 700;
  unmapped.sources = {{.source = Source::kFileMapping, .start = 700, .growth = -700}};
  EXPECT_EQ(unmapped.growth_bytes(), -700);
}

TEST(ProcessReport, AProcessThatShrankGrewByLessThanNothing) {
  ProcessReport process;
  process.start.anon = 1000;
  process.end.anon = 400;
  EXPECT_EQ(process.growth_bytes(), -600);
}

TEST(ProcessReport, PssAndUssAreNoGrowth) {
  ProcessReport process;
  process.end.pss = 10;
  process.end.uss = 10;
  EXPECT_EQ(process.growth_bytes(), 0);
}

}  // namespace
}  // namespace torchleak
