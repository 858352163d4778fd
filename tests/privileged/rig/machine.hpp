// SPDX-License-Identifier: Apache-2.0
// What the tests need of the machine, and changes to it that are undone when the test ends.
#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <cstdint>
#include <string>

namespace torchleak::rig {

// Skips, with the reason, where BPF cannot be loaded.
class PrivilegedTest : public testing::Test {
 protected:
  void SetUp() override;
};

// A line of a /proc or /sys file; empty where it cannot be read.
std::string read_line(const std::string& path);
bool write_line(const std::string& path, const std::string& text);

// A setting below /proc/sys, given back at the end.
class Setting {
 public:
  Setting(const std::string& path, const std::string& value);
  Setting(const Setting&) = delete;
  Setting& operator=(const Setting&) = delete;
  ~Setting();
  explicit operator bool() const { return changed_; }

 private:
  std::string path_;
  std::string before_;
  bool changed_;
};

// A memory cgroup with a limit, version 1 or 2. The processes in it must have ended before it goes.
class MemoryLimit {
 public:
  explicit MemoryLimit(std::uint64_t bytes);
  MemoryLimit(const MemoryLimit&) = delete;
  MemoryLimit& operator=(const MemoryLimit&) = delete;
  ~MemoryLimit();
  explicit operator bool() const { return limited_; }
  bool take_in(pid_t pid) const;
  bool forbid_swap() const;

 private:
  std::string path_;
  bool second_version_ = false;
  bool limited_ = false;
};

// A zram device of its own, in use as swap.
class ZramSwap {
 public:
  explicit ZramSwap(std::uint64_t bytes);
  ZramSwap(const ZramSwap&) = delete;
  ZramSwap& operator=(const ZramSwap&) = delete;
  ~ZramSwap();
  explicit operator bool() const { return swapping_; }

 private:
  std::string number_;
  bool swapping_ = false;
};

}  // namespace torchleak::rig
