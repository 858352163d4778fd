// SPDX-License-Identifier: Apache-2.0
#include "torchleak/app/preflight.hpp"

#include <fmt/format.h>
#include <linux/capability.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>

namespace torchleak::app {
namespace {

constexpr const char* kBtf = "/sys/kernel/btf/vmlinux";
constexpr const char* kTracefs = "/sys/kernel/tracing";

struct NeededCapability {
  unsigned bit;
  const char* name;
};
// CAP_SYS_ADMIN includes the first two. Reading another user's smaps takes the third.
constexpr std::array kNeeded = {NeededCapability{CAP_BPF, "CAP_BPF"},
                                NeededCapability{CAP_PERFMON, "CAP_PERFMON"},
                                NeededCapability{CAP_SYS_PTRACE, "CAP_SYS_PTRACE"}};

std::uint64_t effective_capabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  std::array<__user_cap_data_struct, 2> data{};
  if (::syscall(SYS_capget, &header, data.data()) != 0) {
    return 0;
  }
  return (std::uint64_t{data[1].effective} << 32) | data[0].effective;
}

std::string missing_capabilities() {
  const std::uint64_t have = effective_capabilities();
  const bool admin = (have >> CAP_SYS_ADMIN & 1) != 0;
  std::string missing;
  for (const auto& [bit, name] : kNeeded) {
    const bool included = admin && bit != CAP_SYS_PTRACE;
    if (!included && (have >> bit & 1) == 0) {
      missing += fmt::format("{}{}", missing.empty() ? "" : ", ", name);
    }
  }
  return missing;
}

bool locked_down_for_secrets() {
  std::ifstream file("/sys/kernel/security/lockdown");
  std::string text;
  std::getline(file, text);
  return text.find("[confidentiality]") != std::string::npos;
}

// The programs see the pids of the whole machine; in a namespace of its own the tracer would not know whose
// they are.
bool sees_all_pids() {
  constexpr ino_t kInitialPidNamespace = 0xEFFFFFFC;  // PROC_PID_INIT_INO
  struct stat status {};
  return ::stat("/proc/self/ns/pid", &status) != 0 || status.st_ino == kInitialPidNamespace;
}

// The classic tracepoints are reached through tracefs.
void provide_tracefs(Preflight& result) {
  if (std::filesystem::exists(std::string(kTracefs) + "/events")) {
    return;
  }
  if (::mount("tracefs", kTracefs, "tracefs", 0, nullptr) == 0) {
    result.notes.emplace_back("tracefs was not mounted; mounted it at /sys/kernel/tracing");
    return;
  }
  result.notes.push_back(
      fmt::format("tracefs is not mounted and cannot be ({}): OOM kills and exact swap counts are not seen",
                  std::strerror(errno)));
}

}  // namespace

Preflight check_machine() {
  Preflight result;
  if (const std::string missing = missing_capabilities(); !missing.empty()) {
    result.status = 1;
    result.message = fmt::format("not allowed to trace: {} missing; run it with sudo", missing);
    return result;
  }
  if (!sees_all_pids()) {
    result.status = 77;
    result.message =
        "this is a container with process ids of its own; run the tracer on the host, with the job's pid "
        "there, or in a "
        "container that shares the host's (--pid=host)";
    return result;
  }
  if (::access(kBtf, R_OK) != 0) {
    result.status = 77;
    result.message = fmt::format(
        "this kernel gives no type information ({}: {}); it needs CONFIG_DEBUG_INFO_BTF=y, as "
        "the distributions' kernels from 5.10 on have",
        kBtf, std::strerror(errno));
    return result;
  }
  if (locked_down_for_secrets()) {
    result.status = 77;
    result.message =
        "the kernel is locked down (confidentiality) and refuses BPF that reads memory; boot without "
        "lockdown=confidentiality";
    return result;
  }
  provide_tracefs(result);
  return result;
}

}  // namespace torchleak::app
