// SPDX-License-Identifier: Apache-2.0
// The masks and command lines are those of torch 1.13 under CPython 3.11.
#include "torchleak/core/roles.hpp"

#include <gtest/gtest.h>

namespace torchleak {
namespace {

constexpr std::uint64_t kLoaderSignals = 0x1000044c0;  // SIGBUS, SIGFPE, SIGSEGV, SIGTERM and a glibc signal
constexpr std::uint64_t kFaulthandlerSignals = 0x4e8;  // SIGILL, SIGABRT, SIGBUS, SIGFPE, SIGSEGV

ProcessFacts process(std::string comm, std::vector<std::string> cmdline) {
  ProcessFacts facts;
  facts.comm = std::move(comm);
  facts.cmdline = std::move(cmdline);
  return facts;
}

// A tree in the making; each call adds a process, started a second after the last, and returns its index.
class Tree {
 public:
  std::size_t target() {
    ProcessFacts facts = process("python3", {"/usr/bin/python3", "train.py"});
    facts.target = true;
    facts.execed = true;
    return add(facts, std::nullopt);
  }
  std::size_t fork(std::size_t parent, std::uint64_t signals = 0) {
    ProcessFacts facts = process(processes_[parent].comm, processes_[parent].cmdline);
    facts.caught_signals = signals;
    return add(facts, parent);
  }
  std::size_t exec(std::size_t parent, std::string comm, std::vector<std::string> cmdline,
                   std::uint64_t signals = 0) {
    ProcessFacts facts = process(std::move(comm), std::move(cmdline));
    facts.execed = true;
    facts.caught_signals = signals;
    return add(facts, parent);
  }
  std::size_t spawn(std::size_t parent, std::uint64_t signals) {
    return exec(
        parent, "python3",
        {"/usr/bin/python3", "-c", "from multiprocessing.spawn import spawn_main; spawn_main(tracker_fd=6)",
         "--multiprocessing-fork"},
        signals);
  }
  void end(std::size_t index) { processes_[index].ended_ns = ++now_s_ * 1'000'000'000; }
  ProcessFacts& operator[](std::size_t index) { return processes_[index]; }

  RoleOf role(std::size_t index) const { return assign_roles(processes_)[index]; }

 private:
  std::size_t add(ProcessFacts facts, std::optional<std::size_t> parent) {
    facts.pid = static_cast<std::uint32_t>(100 + processes_.size());
    facts.start_ns = ++now_s_ * 1'000'000'000;
    facts.parent = parent;
    processes_.push_back(std::move(facts));
    return processes_.size() - 1;
  }

  std::vector<ProcessFacts> processes_;
  std::uint64_t now_s_ = 0;
};

RoleOf loader_worker(std::uint32_t slot, std::uint32_t generation = 0) {
  return {Role::kDataLoaderWorker, Worker{slot, generation, ""}};
}

RoleOf pool_worker(std::uint32_t slot, std::uint32_t generation = 0) {
  return {Role::kPoolWorker, Worker{slot, generation, ""}};
}

const RoleOf kMainRole{Role::kMain, std::nullopt};
const RoleOf kHelperRole{Role::kHelper, std::nullopt};
const RoleOf kSubprocessRole{Role::kSubprocess, std::nullopt};

TEST(AssignRoles, KnowsForkedLoaderWorkersByTheirSignals) {
  Tree tree;
  const auto main = tree.target();
  const auto first = tree.fork(main, kLoaderSignals);
  const auto second = tree.fork(main, kLoaderSignals);
  EXPECT_EQ(tree.role(main), kMainRole);
  EXPECT_EQ(tree.role(first), loader_worker(0));
  EXPECT_EQ(tree.role(second), loader_worker(1));
}

TEST(AssignRoles, KnowsLoaderWorkersByTheNameThatNewTorchGives) {
  Tree tree;
  const auto worker = tree.fork(tree.target());
  tree[worker].comm = "pt_data_worker";
  EXPECT_EQ(tree.role(worker), loader_worker(0));
}

TEST(AssignRoles, DoesNotTakeFaulthandlerForALoaderWorker) {
  Tree tree;
  const auto worker = tree.fork(tree.target(), kFaulthandlerSignals);
  EXPECT_EQ(tree.role(worker), pool_worker(0));
}

TEST(AssignRoles, TellsSpawnedWorkersApartByTheirSignals) {
  Tree tree;
  const auto main = tree.target();
  const auto tracker =
      tree.exec(main, "python3",
                {"/usr/bin/python3", "-c", "from multiprocessing.resource_tracker import main;main(5)"});
  const auto loader = tree.spawn(main, kLoaderSignals);
  const auto pool = tree.spawn(main, 0);
  EXPECT_EQ(tree.role(tracker), kHelperRole);
  EXPECT_EQ(tree.role(loader), loader_worker(0));
  EXPECT_EQ(tree.role(pool), pool_worker(0)) << "the two kinds number their slots apart";
}

TEST(AssignRoles, GivesTheForkserversChildrenToItsParent) {
  Tree tree;
  const auto main = tree.target();
  const auto forked = tree.fork(main, kLoaderSignals);
  const auto server = tree.exec(
      main, "python3", {"/usr/bin/python3", "-c", "from multiprocessing.forkserver import main; main(8, 9)"},
      0x10000);
  const auto loader = tree.fork(server, kLoaderSignals);
  const auto pool = tree.fork(server);
  EXPECT_EQ(tree.role(server), kHelperRole);
  EXPECT_EQ(tree.role(forked), loader_worker(0));
  EXPECT_EQ(tree.role(loader), loader_worker(1)) << "one row of slots for the main process";
  EXPECT_EQ(tree.role(pool), pool_worker(0));
}

TEST(AssignRoles, CallsTorchsShmManagerAHelper) {
  Tree tree;
  const auto manager = tree.exec(tree.target(), "torch_shm_manag", {"/usr/lib/torch/bin/torch_shm_manager"});
  const auto forked = tree.fork(manager);
  EXPECT_EQ(tree.role(manager), kHelperRole);
  EXPECT_EQ(tree.role(forked), kHelperRole);
}

TEST(AssignRoles, CallsOtherProgramsAndTheirForksSubprocesses) {
  Tree tree;
  const auto shell = tree.exec(tree.target(), "sh", {"sh", "-c", "nvidia-smi | head"});
  const auto forked = tree.fork(shell);
  EXPECT_EQ(tree.role(shell), kSubprocessRole);
  EXPECT_EQ(tree.role(forked), kSubprocessRole);
}

TEST(AssignRoles, FindsTheWorkersOfALaunchedRank) {
  Tree tree;
  const auto rank = tree.exec(tree.target(), "python3", {"/usr/bin/python3", "rank.py"}, kLoaderSignals);
  const auto worker = tree.fork(rank, kLoaderSignals);
  EXPECT_EQ(tree.role(rank), kSubprocessRole);
  EXPECT_EQ(tree.role(worker), loader_worker(0));
}

TEST(AssignRoles, DoesNotTakeWhatAForkInheritedForItsOwn) {
  Tree tree;
  const auto worker = tree.fork(tree.target(), kLoaderSignals);
  tree[worker].comm = "pt_data_worker";
  const auto nested = tree.fork(worker, kLoaderSignals);
  EXPECT_EQ(tree.role(nested), pool_worker(0));
}

TEST(AssignRoles, CallsAForkNeverLookedAtAPoolWorkerOnlyUnderPython) {
  Tree tree;
  const auto main = tree.target();
  const auto gone = tree.fork(main);
  tree[gone].cmdline.clear();
  tree[gone].comm.clear();
  tree.end(gone);
  EXPECT_EQ(tree.role(gone), pool_worker(0));
  tree[main].comm = "launcher";
  tree[main].cmdline = {"/opt/launcher"};
  EXPECT_EQ(tree.role(gone), kSubprocessRole);
}

TEST(AssignRoles, ContinuesASlotAsANewGeneration) {
  Tree tree;
  const auto main = tree.target();
  const auto a = tree.fork(main, kLoaderSignals);
  const auto b = tree.fork(main, kLoaderSignals);
  tree.end(a);
  const auto c = tree.fork(main, kLoaderSignals);
  tree.end(b);
  tree.end(c);
  const auto d = tree.fork(main, kLoaderSignals);
  const auto e = tree.fork(main, kLoaderSignals);
  const auto f = tree.fork(main, kLoaderSignals);
  EXPECT_EQ(tree.role(a), loader_worker(0, 0));
  EXPECT_EQ(tree.role(b), loader_worker(1, 0));
  EXPECT_EQ(tree.role(c), loader_worker(0, 1));
  EXPECT_EQ(tree.role(d), loader_worker(0, 2));
  EXPECT_EQ(tree.role(e), loader_worker(1, 1));
  EXPECT_EQ(tree.role(f), loader_worker(2, 0));
}

TEST(AssignRoles, NumbersBySmallerPidWhereStartsAreEqual) {
  Tree tree;
  const auto main = tree.target();
  const auto late = tree.fork(main, kLoaderSignals);
  const auto early = tree.fork(main, kLoaderSignals);
  tree[late].pid = 900;
  tree[early].start_ns = tree[late].start_ns;
  EXPECT_EQ(tree.role(early), loader_worker(0));
  EXPECT_EQ(tree.role(late), loader_worker(1));
}

TEST(AssignRoles, TakesAShortLifeForWhatTheOthersAre) {
  Tree tree;
  const auto main = tree.target();
  const auto seen = tree.fork(main, kLoaderSignals);
  tree.end(seen);
  const auto missed = tree.fork(main);  // ended before its signals were read, or had any
  tree[missed].ended_ns = tree[missed].start_ns + 50'000'000;
  EXPECT_EQ(tree.role(seen), loader_worker(0));
  EXPECT_EQ(tree.role(missed), loader_worker(0, 1));
  const auto pool = tree.fork(main);  // lives on without the signals: there is a pool beside the loader
  EXPECT_EQ(tree.role(pool).role, Role::kPoolWorker);
  EXPECT_EQ(tree.role(missed).role, Role::kPoolWorker);
}

TEST(AssignRoles, SurvivesParentsThatAreAbsentOrCircular) {
  Tree tree;
  const auto main = tree.target();
  const auto a = tree.fork(main, kLoaderSignals);
  const auto b = tree.fork(a, kLoaderSignals);
  tree[a].parent = b;
  EXPECT_TRUE(tree.role(a).worker.has_value());
  EXPECT_TRUE(tree.role(b).worker.has_value());
  tree[a].parent = 4711;
  EXPECT_EQ(tree.role(a), kSubprocessRole);
  tree[a].parent = a;
  EXPECT_EQ(tree.role(a), kSubprocessRole);
  EXPECT_TRUE(assign_roles({}).empty());
}

}  // namespace
}  // namespace torchleak
