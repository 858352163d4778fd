// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "torchleak/base/result.hpp"
#include "torchleak/core/report.hpp"

namespace torchleak {

// The report as torchleak.report/1. Ends with a newline. Invalid UTF-8 from the target is replaced, never
// thrown on.
std::string to_json(const Report& report);

// Reads back what to_json wrote. The error says whether the text is cut off, not JSON, of another schema, or
// which field is missing or of the wrong type. Fields it does not know are ignored (a newer tool may add
// some).
Result<Report> from_json(std::string_view text);

}  // namespace torchleak
