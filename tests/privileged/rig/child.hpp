// SPDX-License-Identifier: Apache-2.0
// A program under test: started, spoken to, and ended at the latest when its test ends. Every wait has a
// deadline; what fails is thrown, and GoogleTest shows it as the failure of the test.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "torchleak/base/unique_fd.hpp"

namespace torchleak::rig {

inline constexpr std::chrono::seconds kDeadline{60};

struct ChildSetup {
  bool speaks = false;    // its stdin and stdout are ours to write and to read; else stdout is kept
  uid_t uid = 0;          // whom it runs as
  int inherited_fd = -1;  // one more that it gets
};

class Child {
 public:
  explicit Child(const std::vector<std::string>& words, const ChildSetup& setup = {});
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child();

  pid_t pid() const { return pid_; }
  void say(std::string_view line);
  // Its next line, without the newline.
  std::string hear();
  void kill(int signal) const;
  // What waitpid() gives, once it has ended.
  int wait();
  // The exit status; throws where a signal ended it.
  int exit_status();

  // What it has written so far.
  std::string out() const;
  std::string err() const;

 private:
  [[noreturn]] void become(const std::vector<std::string>& words, const ChildSetup& setup, int in,
                           int out) const;
  std::string name_;
  UniqueFd out_file_;
  UniqueFd err_file_;
  UniqueFd to_;
  UniqueFd from_;
  UniqueFd pidfd_;
  pid_t pid_ = -1;
  int status_ = 0;
  bool ended_ = false;
  std::string heard_;  // beyond the last line
};

// Waits until there is something to read, or the other end is closed.
void await_readable(int fd, const std::string& what);

}  // namespace torchleak::rig
