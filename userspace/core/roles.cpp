// SPDX-License-Identifier: Apache-2.0
#include "torchleak/core/roles.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <ranges>
#include <string_view>
#include <utility>

namespace torchleak {
namespace {

constexpr std::uint64_t signal_bit(unsigned number) {
  return 1ULL << (number - 1);
}

// torch's _set_worker_signal_handlers installs exactly these: SIGBUS, SIGFPE, SIGSEGV, SIGTERM. faulthandler
// leaves SIGTERM alone, and no other worker of multiprocessing catches any.
constexpr std::uint64_t kTorchWorkerSignals = signal_bit(7) | signal_bit(8) | signal_bit(11) | signal_bit(15);

constexpr std::uint64_t kShortLifeNs = 1'000'000'000;

bool mentions(const ProcessFacts& process, std::string_view text) {
  return std::ranges::any_of(process.cmdline,
                             [&](const std::string& word) { return word.find(text) != std::string::npos; });
}

bool is_torch_comm(const ProcessFacts& process) {
  return process.comm.starts_with("pt_");  // pt_main_thread, pt_data_worker, as torch 2 names its threads
}

bool is_python(const ProcessFacts& process) {
  if (is_torch_comm(process) || process.comm.find("python") != std::string::npos) {
    return true;
  }
  return !process.cmdline.empty() && process.cmdline.front().find("python") != std::string::npos;
}

bool is_forkserver(const ProcessFacts& process) {
  return mentions(process, "multiprocessing.forkserver");
}

bool is_helper_program(const ProcessFacts& process) {
  return process.comm.starts_with("torch_shm_manag") ||
         mentions(process, "multiprocessing.resource_tracker") ||
         mentions(process, "multiprocessing.semaphore_tracker") || is_forkserver(process);
}

bool looks_like_loader_worker(const ProcessFacts& process) {
  return process.comm.starts_with("pt_data_worker") ||
         (process.caught_signals & kTorchWorkerSignals) == kTorchWorkerSignals;
}

class RoleAssignment {
 public:
  explicit RoleAssignment(std::span<const ProcessFacts> processes)
      : processes_(processes), roles_(processes.size()) {}

  std::vector<RoleOf> run() {
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      settle(i);
    }
    name_short_lives();
    std::vector<RoleOf> answers(processes_.size());
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      answers[i].role = roles_[i].value_or(Role::kSubprocess);
    }
    give_slots(answers);
    return answers;
  }

 private:
  std::optional<std::size_t> parent_of(std::size_t i) const {
    const auto parent = processes_[i].parent;
    return parent && *parent < processes_.size() && *parent != i ? parent : std::nullopt;
  }

  // A role depends on the parent's, so the line of ancestors is settled from its far end. A line that closes
  // on itself is broken where it does.
  void settle(std::size_t i) {
    std::vector<std::size_t> line;
    for (std::optional<std::size_t> at = i; at && !roles_[*at] && line.size() <= processes_.size();
         at = parent_of(*at)) {
      line.push_back(*at);
    }
    for (const std::size_t at : std::views::reverse(line)) {
      roles_[at] = role_of(at);
    }
  }

  Role role_of(std::size_t i) const {
    const ProcessFacts& process = processes_[i];
    if (process.target) {
      return Role::kMain;
    }
    const auto parent = parent_of(i);
    const bool forked = parent && !process.execed;
    return forked ? role_of_fork(process, processes_[*parent], roles_[*parent]) : role_of_program(process);
  }

  static Role role_of_program(const ProcessFacts& process) {
    if (process.comm.starts_with("pt_data_worker")) {
      return Role::kDataLoaderWorker;
    }
    if (mentions(process, "--multiprocessing-fork")) {
      return looks_like_loader_worker(process) ? Role::kDataLoaderWorker : Role::kPoolWorker;
    }
    // An orphan of the forkserver has the forkserver's command line; its signals tell it apart.
    if (is_forkserver(process) && !process.execed && looks_like_loader_worker(process)) {
      return Role::kDataLoaderWorker;
    }
    return is_helper_program(process) ? Role::kHelper : Role::kSubprocess;
  }

  // A fork has its parent's command line, name and handlers until it changes them.
  static Role role_of_fork(const ProcessFacts& process, const ProcessFacts& parent,
                           std::optional<Role> parent_role) {
    if (process.comm.starts_with("torch_shm_manag")) {
      return Role::kHelper;
    }
    if (parent_role == Role::kHelper && !is_forkserver(parent)) {
      return Role::kHelper;
    }
    if (!is_python(parent) && !looks_like_loader_worker(process)) {
      return Role::kSubprocess;
    }
    const bool inherited = parent_role == Role::kDataLoaderWorker;
    return looks_like_loader_worker(process) && !inherited ? Role::kDataLoaderWorker : Role::kPoolWorker;
  }

  // Whose worker it is: its parent's, or where the forkserver forked it, that of the process which started
  // the server.
  std::optional<std::size_t> owner_of(std::size_t i) const {
    const auto parent = parent_of(i);
    if (parent && roles_[*parent] == Role::kHelper && is_forkserver(processes_[*parent])) {
      const auto owner = parent_of(*parent);
      return owner ? owner : parent;
    }
    return parent;
  }

  bool is_short_life(std::size_t i) const {
    const ProcessFacts& process = processes_[i];
    return process.ended_ns && *process.ended_ns < process.start_ns + kShortLifeNs;
  }

  // Signals are read a few times a second. A worker of a short epoch may have ended before it was looked at,
  // or was looked at before it installed its handlers; it is then what the others of its owner are.
  void name_short_lives() {
    struct Others {
      bool loader_workers = false;
      bool pool_workers = false;
    };
    std::map<std::optional<std::size_t>, Others> others_of;
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      Others& others = others_of[owner_of(i)];
      others.loader_workers |= roles_[i] == Role::kDataLoaderWorker;
      others.pool_workers |= roles_[i] == Role::kPoolWorker && !is_short_life(i);
    }
    for (std::size_t i = 0; i < processes_.size(); ++i) {
      const Others& others = others_of[owner_of(i)];
      if (roles_[i] == Role::kPoolWorker && is_short_life(i) && others.loader_workers &&
          !others.pool_workers) {
        roles_[i] = Role::kDataLoaderWorker;
      }
    }
  }

  void give_slots(std::vector<RoleOf>& answers) const {
    std::vector<std::size_t> by_start(processes_.size());
    std::iota(by_start.begin(), by_start.end(), 0U);
    std::ranges::stable_sort(
        by_start, {}, [&](std::size_t i) { return std::pair(processes_[i].start_ns, processes_[i].pid); });
    struct Slot {
      std::optional<std::uint64_t> held_until;
      std::uint32_t holders = 0;
    };
    std::map<std::pair<std::optional<std::size_t>, Role>, std::vector<Slot>> slots_of;
    for (const std::size_t i : by_start) {
      const Role role = answers[i].role;
      if (role != Role::kDataLoaderWorker && role != Role::kPoolWorker) {
        continue;
      }
      std::vector<Slot>& slots = slots_of[{owner_of(i), role}];
      auto slot = std::ranges::find_if(slots, [&](const Slot& other) {
        return other.held_until && *other.held_until <= processes_[i].start_ns;
      });
      if (slot == slots.end()) {
        slot = slots.insert(slot, Slot{});
      }
      answers[i].worker = Worker{static_cast<std::uint32_t>(slot - slots.begin()), slot->holders, ""};
      slot->held_until = processes_[i].ended_ns;
      ++slot->holders;
    }
  }

  std::span<const ProcessFacts> processes_;
  std::vector<std::optional<Role>> roles_;
};

}  // namespace

std::vector<RoleOf> assign_roles(std::span<const ProcessFacts> processes) {
  return RoleAssignment(processes).run();
}

}  // namespace torchleak
