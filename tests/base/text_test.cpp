// SPDX-License-Identifier: Apache-2.0
#include "torchleak/base/text.hpp"

#include <gtest/gtest.h>

#include <limits>

namespace torchleak {
namespace {

constexpr std::int64_t kKiB = 1024;
constexpr std::int64_t kMiB = 1024 * kKiB;
constexpr std::int64_t kGiB = 1024 * kMiB;

TEST(Text, SizesReadAsPeopleWriteThem) {
  EXPECT_EQ(format_bytes(0), "0 B");
  EXPECT_EQ(format_bytes(1023), "1023 B");
  EXPECT_EQ(format_bytes(512 * kKiB), "512 KiB");
  EXPECT_EQ(format_bytes(kMiB + kMiB / 2), "1.5 MiB");
  EXPECT_EQ(format_bytes(12 * kGiB + 3 * kGiB / 10), "12.3 GiB");
  EXPECT_EQ(format_bytes(-kMiB - kMiB / 2), "-1.5 MiB");
  EXPECT_EQ(format_bytes(2048 * 1024 * kGiB), "2048 TiB");
}

TEST(Text, NoUnitBelowTheLargestReaches1024) {
  for (const std::int64_t unit : {kKiB, kMiB, kGiB}) {
    for (std::int64_t off = 1; off < unit; off += unit / 64) {
      EXPECT_FALSE(format_bytes(1024 * unit - off).starts_with("1024")) << 1024 * unit - off;
    }
  }
}

TEST(Text, TheExtremesHaveAText) {
  EXPECT_EQ(format_bytes(std::numeric_limits<std::int64_t>::min()), "-8388608 TiB");
  EXPECT_EQ(format_bytes(std::numeric_limits<std::int64_t>::max()), "8388608 TiB");
}

TEST(Text, GrowthBearsItsSign) {
  EXPECT_EQ(format_growth(kMiB), "+1 MiB");
  EXPECT_EQ(format_growth(0), "0 B");
  EXPECT_EQ(format_growth(-kKiB), "-1 KiB");
}

TEST(Text, SizesAreParsedWithAndWithoutUnits) {
  const std::pair<const char*, std::uint64_t> cases[] = {
      {"0", 0},          {"4096", 4096},       {"4096B", 4096},    {"64K", 64 << 10},
      {"64k", 64 << 10}, {"64KB", 64 << 10},   {"1M", 1 << 20},    {"1MiB", 1 << 20},
      {"1mb", 1 << 20},  {"2GiB", 2ULL << 30}, {"3T", 3ULL << 40}, {"18446744073709551615", ~0ULL},
  };
  for (const auto& [text, bytes] : cases) {
    const auto parsed = parse_bytes(text);
    ASSERT_TRUE(parsed) << text;
    EXPECT_EQ(*parsed, bytes) << text;
  }
}

TEST(Text, WhatIsNoSizeIsRefusedWithAnExample) {
  for (const char* text : {"", " 1", "-1", "K", "1X", "1KK", "64iB", "1KiBB", "1.5M", "0x10", "1 M",
                           "17179869184G", "18446744073709551616"}) {
    const auto parsed = parse_bytes(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_NE(parsed.error().message.find("64K"), std::string::npos);
  }
}

TEST(Text, ARefusalEscapesWhatWasTyped) {
  EXPECT_EQ(parse_bytes("\x1b[31m").error().message.find('\x1b'), std::string::npos);
}

TEST(Text, ControlCharactersAndBrokenUtf8AreEscaped) {
  EXPECT_EQ(printable("train.py"), "train.py");
  EXPECT_EQ(printable("a\tb\n\x7f"), "a\\x09b\\x0a\\x7f");
  EXPECT_EQ(printable("\x1b[2J"), "\\x1b[2J");
  EXPECT_EQ(printable(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(printable("\xc2\x9b"), "\\xc2\\x9b");  // C1: an escape sequence in one character
  EXPECT_EQ(printable("\xc3\xa9\xe4\xb8\xad\xf0\x9f\x94\xa5"), "\xc3\xa9\xe4\xb8\xad\xf0\x9f\x94\xa5");
  EXPECT_EQ(printable("\xff\xc3"), "\\xff\\xc3");                    // not UTF-8; cut off
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf");                    // overlong
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");           // surrogate
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");  // beyond Unicode
}

TEST(Text, EveryPairOfBytesBecomesPrintable) {
  for (int first = 0; first < 256; ++first) {
    for (int second = 0; second < 256; ++second) {
      const std::string text = {static_cast<char>(first), static_cast<char>(second)};
      const std::string shown = printable(text);
      EXPECT_EQ(printable(shown), shown);
    }
  }
}

TEST(Text, SplittingKeepsEmptyParts) {
  using Parts = std::vector<std::string_view>;
  EXPECT_EQ(split("a,b", ','), (Parts{"a", "b"}));
  EXPECT_EQ(split("", ','), (Parts{""}));
  EXPECT_EQ(split(",a,,", ','), (Parts{"", "a", "", ""}));
}

}  // namespace
}  // namespace torchleak
