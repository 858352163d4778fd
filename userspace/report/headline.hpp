// SPDX-License-Identifier: Apache-2.0
// The answer: who grew most, by how much, in what kind of memory. Never "nothing grew" where something went
// unseen.
#pragma once

#include <string>
#include <vector>

#include "layout.hpp"
#include "torchleak/core/report.hpp"

namespace torchleak {

struct Sentence {
  std::string text;
  Ink ink = Ink::kPlain;
};

std::vector<Sentence> headline(const Report& report);

}  // namespace torchleak
