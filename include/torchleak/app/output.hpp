// SPDX-License-Identifier: Apache-2.0
// Where reports go. Files are opened before the capture begins, so that a path that cannot be written costs
// nobody a capture; they are filled when it has ended.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "torchleak/app/options.hpp"
#include "torchleak/base/result.hpp"
#include "torchleak/base/unique_fd.hpp"
#include "torchleak/core/report.hpp"

namespace torchleak::app {

std::optional<Format> format_of_file(std::string_view path);

class Outputs {
 public:
  static Result<Outputs> open(const OutputOptions& options);
  // To every file, and to stdout where it is wanted. All are tried; the error names those that failed.
  Result<void> write(const Report& report);

 private:
  struct File {
    std::string path;
    UniqueFd fd;
  };
  explicit Outputs(const OutputOptions& options) : options_(options) {}
  std::string render(const Report& report, Format format, bool to_terminal) const;

  OutputOptions options_;
  std::vector<File> files_;
};

}  // namespace torchleak::app
