// SPDX-License-Identifier: Apache-2.0
#include "torchleak/core/decoder.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace torchleak {
namespace {

using Bytes = std::vector<std::byte>;

struct Kind {
  std::uint16_t kind;
  std::uint16_t size;
  std::size_t alternative;  // index in Event
};

constexpr Kind kKinds[] = {
    {TL_KIND_FORK, sizeof(tl_fork), 0},       {TL_KIND_EXEC, sizeof(tl_exec), 1},
    {TL_KIND_EXIT, sizeof(tl_exit), 2},       {TL_KIND_OOM_KILL, sizeof(tl_oom_kill), 3},
    {TL_KIND_RENAME, sizeof(tl_rename), 4},   {TL_KIND_MAP, sizeof(tl_map), 5},
    {TL_KIND_UNMAP, sizeof(tl_range), 6},     {TL_KIND_REMAP, sizeof(tl_remap), 7},
    {TL_KIND_PROTECT, sizeof(tl_range), 8},   {TL_KIND_BRK, sizeof(tl_brk), 9},
    {TL_KIND_ADVISE, sizeof(tl_range), 10},   {TL_KIND_ATTACH_SHM, sizeof(tl_shm), 11},
    {TL_KIND_DETACH_SHM, sizeof(tl_shm), 12}, {TL_KIND_FAULT, sizeof(tl_fault), 13},
};
static_assert(std::size(kKinds) == std::variant_size_v<Event>);

// A record of `length` bytes, every one of them 0xFF behind the header.
Bytes record(std::uint16_t kind, std::uint16_t size_field, std::size_t length) {
  Bytes bytes(std::max(length, sizeof(tl_header)), std::byte{0xFF});
  const tl_header header{.time_ns = 123, .tgid = 42, .kind = kind, .size = size_field};
  std::memcpy(bytes.data(), &header, sizeof(header));
  bytes.resize(length);
  bytes.shrink_to_fit();
  return bytes;
}

template <typename Record>
Bytes bytes_of(const Record& value) {
  Bytes bytes(sizeof(value));
  std::memcpy(bytes.data(), &value, sizeof(value));
  return bytes;
}

TEST(Decoder, EveryKindBecomesItsOwnAlternative) {
  Decoder decoder;
  for (const Kind& kind : kKinds) {
    const auto event = decoder.decode(record(kind.kind, kind.size, kind.size));
    ASSERT_TRUE(event) << kind.kind;
    EXPECT_EQ(event->index(), kind.alternative);
    EXPECT_EQ(header_of(*event).tgid, 42U);
    EXPECT_EQ(header_of(*event).time_ns, 123U);
    EXPECT_EQ(header_of(*event).kind, kind.kind);
  }
  EXPECT_EQ(decoder.unknown_kinds(), 0U);
  EXPECT_EQ(decoder.wrong_sizes(), 0U);
}

TEST(Decoder, FieldsSurviveUnchanged) {
  tl_map map{};
  map.header = {.time_ns = 7, .tgid = 8, .kind = TL_KIND_MAP, .size = sizeof(map)};
  map.address = 0x7f0000000000;
  map.length = 4097;
  map.fd = -1;
  std::strcpy(map.name, "torch_1_2");
  const auto event = Decoder().decode(bytes_of(map));
  ASSERT_TRUE(event);
  const auto& decoded = std::get<tl_map>(*event);
  EXPECT_EQ(std::memcmp(&decoded, &map, sizeof(map)), 0);
}

TEST(Decoder, AnAnonymousMapEndsBeforeTheNameAndHasAnEmptyOne) {
  Decoder decoder;
  const auto event = decoder.decode(record(TL_KIND_MAP, TL_MAP_ANONYMOUS_BYTES, TL_MAP_ANONYMOUS_BYTES));
  ASSERT_TRUE(event);
  EXPECT_EQ(std::get<tl_map>(*event).address, ~std::uint64_t{0});
  EXPECT_STREQ(std::get<tl_map>(*event).name, "");
  EXPECT_FALSE(decoder.decode(record(TL_KIND_MAP, TL_MAP_ANONYMOUS_BYTES, TL_MAP_ANONYMOUS_BYTES - 1)));
  EXPECT_FALSE(decoder.decode(record(TL_KIND_MAP, TL_MAP_ANONYMOUS_BYTES, sizeof(tl_map))));
  EXPECT_EQ(decoder.wrong_sizes(), 2U);
}

TEST(Decoder, EveryPrefixOfEveryKindIsRefusedAndCounted) {
  for (const Kind& kind : kKinds) {
    Decoder decoder;
    for (std::uint16_t length = 0; length < kind.size; ++length) {
      EXPECT_FALSE(decoder.decode(record(kind.kind, kind.size, length)));
    }
    EXPECT_EQ(decoder.wrong_sizes(), kind.size);
    EXPECT_EQ(decoder.unknown_kinds(), 0U);
  }
}

TEST(Decoder, OversizedRecordsAreRefusedAndCounted) {
  for (const Kind& kind : kKinds) {
    Decoder decoder;
    for (const int extra : {1, 8, 4096, 60000}) {
      const auto length = static_cast<std::uint16_t>(kind.size + extra);
      EXPECT_FALSE(decoder.decode(record(kind.kind, length, length)));
    }
    EXPECT_EQ(decoder.wrong_sizes(), 4U);
  }
}

TEST(Decoder, ASizeFieldThatLiesIsRefused) {
  for (const Kind& kind : kKinds) {
    Decoder decoder;
    for (const int size : {0, 1, kind.size - 1, kind.size + 1, 0xFFFF}) {
      EXPECT_FALSE(decoder.decode(record(kind.kind, static_cast<std::uint16_t>(size), kind.size)));
    }
    EXPECT_EQ(decoder.wrong_sizes(), 5U);
  }
}

TEST(Decoder, UnknownKindsAreCountedApartFromWrongSizes) {
  Decoder decoder;
  std::uint64_t unknown = 0;
  for (std::uint32_t kind = 0; kind <= 0xFFFF; ++kind) {
    if (kind == TL_KIND_INVALID || kind > TL_KIND_FAULT) {
      EXPECT_FALSE(decoder.decode(record(static_cast<std::uint16_t>(kind), 64, 64)));
      ++unknown;
    }
  }
  EXPECT_EQ(decoder.unknown_kinds(), unknown);
  EXPECT_EQ(decoder.wrong_sizes(), 0U);
}

TEST(Decoder, NamesWithoutAnEndAreTerminated) {
  Decoder decoder;
  for (const Kind& kind : kKinds) {
    const auto event = decoder.decode(record(kind.kind, kind.size, kind.size));
    ASSERT_TRUE(event);
    std::visit(
        [](const auto& decoded) {
          if constexpr (requires { decoded.comm; }) {
            EXPECT_EQ(std::string(decoded.comm), std::string(TL_COMM_BYTES - 1, '\xFF'));
          }
          if constexpr (requires { decoded.name; }) {
            EXPECT_EQ(std::string(decoded.name), std::string(TL_NAME_BYTES - 1, '\xFF'));
          }
        },
        *event);
  }
}

TEST(Decoder, AnUnalignedRecordIsReadAllTheSame) {
  Bytes shifted = record(TL_KIND_FAULT, sizeof(tl_fault), sizeof(tl_fault));
  shifted.insert(shifted.begin(), std::byte{0});
  EXPECT_TRUE(Decoder().decode(std::span(shifted).subspan(1)));
}

TEST(Decoder, TheThreadAndTheProcessAreKeptApart) {
  tl_fault fault{};
  fault.header = {.time_ns = 1, .tgid = 100, .kind = TL_KIND_FAULT, .size = sizeof(fault)};
  fault.tid = 101;
  const auto event = Decoder().decode(bytes_of(fault));
  ASSERT_TRUE(event);
  EXPECT_EQ(header_of(*event).tgid, 100U);
  EXPECT_EQ(std::get<tl_fault>(*event).tid, 101U);
}

}  // namespace
}  // namespace torchleak
