// SPDX-License-Identifier: Apache-2.0
// Expected failures are values. An Error's text is for a person: what could not be done and what to do next.
#pragma once

#include <expected>
#include <string>

namespace torchleak {

struct Error {
  std::string message;
};

template <typename T>
using Result = std::expected<T, Error>;

inline std::unexpected<Error> fail(std::string message) {
  return std::unexpected(Error{std::move(message)});
}

}  // namespace torchleak
