#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds, and tests:
#   sudo ./scripts/test.sh                            everything: sanitizers, format, lint, then all tests
#   sudo ./scripts/test.sh unit|privileged|torch      the tests of one label
# Everything runs even after a failure; the exit status is that of the first one. The last lines are ctest's own.
# shellcheck disable=SC2317 # the steps are called through step()
set -euo pipefail
scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source-path=SCRIPTDIR source=common.sh
source "$scripts/common.sh"

first_failure=0
failed_steps=()

# step NAME COMMAND…: runs one step, remembers its failure and goes on.
step() {
  local name=$1 status=0
  shift
  say "== $name"
  "$@" || status=$?
  if ((status != 0)); then
    failed_steps+=("$name")
    if ((first_failure == 0)); then
      first_failure=$status
    fi
  fi
}

# Our C and C++ files that match the patterns, each ended by a NUL.
our_files() {
  cd "$repo_root" || return
  if [[ -e .git ]] && type -P git >/dev/null; then
    git -c safe.directory="$repo_root" ls-files -z -- "$@"
  else
    local patterns=() pattern
    for pattern in "$@"; do
      patterns+=(-o -path "$pattern")
    done
    find bpf include scripts tests userspace vmtests -type f \( "${patterns[@]:1}" \) -print0
  fi
}

sanitized_unit_tests() {
  build_tree "$repo_root/build-asan" unit_tests -DTORCHLEAK_SANITIZE=ON -DTORCHLEAK_TESTS=ON || return
  (cd "$repo_root/build-asan" && ctest -L unit --parallel "$(nproc)" --no-tests=error --output-on-failure)
}

# Another version formats differently, so only 14 may judge.
format_check() {
  if ! type -P clang-format-14 >/dev/null; then
    say "skipped: clang-format-14 is not installed"
    return
  fi
  cd "$repo_root" || return
  our_files '*.c' '*.h' '*.cpp' '*.hpp' | xargs -0 -r clang-format-14 --dry-run -Werror
}

# The linter below 19 does not see libstdc++'s <expected>.
lint() {
  if ! type -P clang-tidy-19 >/dev/null; then
    say "skipped: clang-tidy-19 is not installed"
    return
  fi
  cd "$repo_root" || return
  our_files 'userspace/*.cpp' | quietly xargs -0 -r -n 1 -P "$(nproc)" clang-tidy-19 --quiet -p build
}

all_tests() {
  local selection=()
  if [[ -n $label ]]; then
    selection=(-L "^$label\$")
  elif ! is_root; then
    selection=(-LE 'privileged|torch')
  fi
  cd "$repo_root/build" || return
  ctest "${selection[@]}" --no-tests=error --output-on-failure
}

label=${1:-}
case $label in
  '' | unit | privileged | torch) ;;
  *) die "usage: test.sh [unit|privileged|torch]" ;;
esac

"$scripts/dependencies.sh" test
step "build" build_tree "$repo_root/build" all -DTORCHLEAK_TESTS=ON
build_failure=$first_failure
if [[ -z $label ]]; then
  step "unit tests under ASan and UBSan" sanitized_unit_tests
  step "format" format_check
  step "lint" lint
fi
if ! is_root && [[ $label != unit ]]; then
  say "skipped: the privileged and torch tests load BPF programs and need root"
fi
if ! find_torch_python >/dev/null; then
  say "note: no Python with torch found, the torch tests cannot run"
fi
if ((${#failed_steps[@]})); then
  printf 'FAILED: %s\n' "${failed_steps[@]}" >&2
fi
if ((build_failure != 0)); then
  die "nothing to test, the build failed"
fi
step "tests" all_tests
exit "$first_failure"
