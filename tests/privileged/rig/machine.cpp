// SPDX-License-Identifier: Apache-2.0
#include "machine.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/swap.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include "torchleak/base/unique_fd.hpp"

namespace torchleak::rig {
namespace {

constexpr const char* kZramControl = "/sys/class/zram-control/";

// What mkswap writes: a first page with the version, the last page and the signature at its end.
bool format_swap(const std::string& device, std::uint64_t bytes) {
  const auto page = static_cast<std::size_t>(::getpagesize());
  std::vector<char> header(page);
  const std::array<std::uint32_t, 2> version_and_last = {1, static_cast<std::uint32_t>(bytes / page - 1)};
  std::memcpy(header.data() + 1024, version_and_last.data(), sizeof(version_and_last));
  std::memcpy(header.data() + page - 10, "SWAPSPACE2", 10);
  const UniqueFd fd(::open(device.c_str(), O_WRONLY | O_CLOEXEC));
  return fd && ::write(fd.get(), header.data(), page) == static_cast<ssize_t>(page);
}

}  // namespace

void PrivilegedTest::SetUp() {
  if (::geteuid() != 0) {
    GTEST_SKIP() << "needs root to load BPF";
  }
  if (::access("/sys/kernel/btf/vmlinux", R_OK) != 0) {
    GTEST_SKIP() << "this kernel has no BTF (/sys/kernel/btf/vmlinux)";
  }
}

std::string read_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

bool write_line(const std::string& path, const std::string& text) {
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
  return fd && ::write(fd.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
}

Setting::Setting(const std::string& path, const std::string& value)
    : path_(path), before_(read_line(path)), changed_(!before_.empty() && write_line(path, value)) {}

Setting::~Setting() {
  if (changed_) {
    write_line(path_, before_);
  }
}

MemoryLimit::MemoryLimit(std::uint64_t bytes) {
  const std::string name = "/torchleak_test_" + std::to_string(::getpid());
  const std::string limit = std::to_string(bytes);
  if (std::filesystem::exists("/sys/fs/cgroup/memory/memory.limit_in_bytes")) {
    path_ = "/sys/fs/cgroup/memory" + name;
    limited_ = ::mkdir(path_.c_str(), 0755) == 0 && write_line(path_ + "/memory.limit_in_bytes", limit);
  } else {
    second_version_ = true;
    path_ = "/sys/fs/cgroup" + name;
    write_line("/sys/fs/cgroup/cgroup.subtree_control", "+memory");
    limited_ = ::mkdir(path_.c_str(), 0755) == 0 && write_line(path_ + "/memory.max", limit);
  }
}

MemoryLimit::~MemoryLimit() {
  ::rmdir(path_.c_str());
}

bool MemoryLimit::take_in(pid_t pid) const {
  return write_line(path_ + "/cgroup.procs", std::to_string(pid));
}

// On version 1 swappiness 0 keeps anonymous memory where it is.
bool MemoryLimit::forbid_swap() const {
  return second_version_ ? write_line(path_ + "/memory.swap.max", "0") || read_line("/proc/swaps").empty()
                         : write_line(path_ + "/memory.swappiness", "0");
}

ZramSwap::ZramSwap(std::uint64_t bytes) : number_(read_line(std::string(kZramControl) + "hot_add")) {
  if (number_.empty()) {
    return;
  }
  const std::string device = "/dev/zram" + number_;
  swapping_ = write_line("/sys/block/zram" + number_ + "/disksize", std::to_string(bytes)) &&
              format_swap(device, bytes) && ::swapon(device.c_str(), 0) == 0;
}

ZramSwap::~ZramSwap() {
  if (number_.empty()) {
    return;
  }
  if (swapping_) {
    ::swapoff(("/dev/zram" + number_).c_str());
  }
  write_line("/sys/block/zram" + number_ + "/reset", "1");
  write_line(std::string(kZramControl) + "hot_remove", number_);
}

}  // namespace torchleak::rig
