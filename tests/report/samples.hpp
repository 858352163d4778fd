// SPDX-License-Identifier: Apache-2.0
// Reports for tests: realistic ones, and random ones from a seed.
#pragma once

#include <random>

#include "torchleak/core/report.hpp"

namespace torchleak::samples {

Report nothing_grew();    // one process, all layers on
Report leaking_worker();  // main, four workers of which one grows, a pool, subprocesses that came and went
Report of_processes(std::size_t count);
Report random_report(std::mt19937_64& random);  // any value in any field, strings of any code points

}  // namespace torchleak::samples
