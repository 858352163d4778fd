// SPDX-License-Identifier: Apache-2.0
#include "torchleak/app/progress.hpp"

#include <gtest/gtest.h>

#include <sstream>

namespace torchleak::app {
namespace {

constexpr std::int64_t kMiB = 1 << 20;

TEST(Progress, ElsewhereThanOnATerminalItIsALineAnInterval) {
  std::ostringstream out;
  Progress progress(out, false, false, 2.0);
  for (int tenths = 0; tenths <= 50; ++tenths) {
    progress.update(tenths / 10.0, 30.0, 3, kMiB);
  }
  progress.finish();
  EXPECT_EQ(out.str(), "2 of 30 s · 3 processes · +1 MiB\n4 of 30 s · 3 processes · +1 MiB\n");
}

TEST(Progress, WithoutADurationItSaysHowToEnd) {
  std::ostringstream out;
  Progress progress(out, false, false, 1.0);
  progress.update(1, std::nullopt, 1, -kMiB);
  EXPECT_EQ(out.str(), "1 s, Ctrl-C for the report · 1 process · -1 MiB\n");
}

TEST(Progress, OnATerminalOneLineRenewsItselfAndIsClearedAtTheEnd) {
  std::ostringstream out;
  Progress progress(out, false, true, std::nullopt);
  progress.update(0, 9.0, 2, 0);
  progress.update(0.5, 9.0, 2, 0);
  progress.update(1, 9.0, 2, kMiB);
  EXPECT_EQ(out.str().find('\n'), std::string::npos);
  EXPECT_EQ(out.str(), "\r\x1b[K0 of 9 s · 2 processes · 0 B\r\x1b[K1 of 9 s · 2 processes · +1 MiB");
  out.str("");
  progress.finish();
  progress.finish();
  EXPECT_EQ(out.str(), "\r\x1b[K");
}

TEST(Progress, WhatIsSaidStandsOnALineOfItsOwn) {
  std::ostringstream out;
  Progress progress(out, false, true, std::nullopt);
  progress.update(0, 9.0, 2, 0);
  out.str("");
  progress.say("tracing process 42");
  EXPECT_EQ(out.str(), "\r\x1b[Ktracing process 42\n");
}

TEST(Progress, QuietSaysNothing) {
  std::ostringstream out;
  Progress progress(out, true, true, std::nullopt);
  progress.say("tracing");
  progress.update(5, std::nullopt, 2, kMiB);
  progress.finish();
  EXPECT_EQ(out.str(), "");
}

}  // namespace
}  // namespace torchleak::app
