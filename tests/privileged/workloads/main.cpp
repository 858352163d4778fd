// SPDX-License-Identifier: Apache-2.0
// workload NAME [key=value …]: takes a known number of bytes in a known way, when it is told to.
#include <unistd.h>

#include <cstdio>
#include <string_view>

#include "stage.hpp"

using namespace torchleak::workload;

int main(int argc, char** argv) {
  const std::string_view name = argc > 1 ? argv[1] : "";
  const Stage stage(argc > 2 ? std::span<char* const>(argv + 2, argv + argc) : std::span<char* const>());
  for (const auto& family : {anonymous_workloads(), malloc_workloads(), thread_workloads(),
                             shared_workloads(), file_workloads(), process_workloads(), family_workloads()}) {
    for (const Entry& entry : family) {
      if (entry.name == name) {
        return entry.run(stage);
      }
    }
  }
  ::dprintf(STDERR_FILENO, "workload: no workload '%s'\n", argc > 1 ? argv[1] : "");
  return 2;
}
