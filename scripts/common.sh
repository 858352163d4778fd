# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
# What the scripts share; sourced, never run. Messages go to stderr, so that stdout holds results only.

repo_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck disable=SC2034 # for those who source this
tracer=$repo_root/build/userspace/app/torchleak-trace

say() { printf '%s\n' "$*" >&2; }
die() {
  say "error: $*"
  exit 1
}
is_root() { [[ $EUID -eq 0 ]]; }

# The real bpftool. Ubuntu's /usr/sbin/bpftool is a wrapper that refuses to start when the tools of exactly the
# running kernel are not installed (always so in a container); any version will do for generating a skeleton.
find_bpftool() {
  local candidate
  for candidate in "$(type -P bpftool || true)" /usr/sbin/bpftool /usr/lib/linux-tools*/*/bpftool /usr/lib/linux-tools*/bpftool; do
    if [[ -x $candidate ]] && "$candidate" version >/dev/null 2>&1; then
      printf '%s\n' "$candidate"
      return
    fi
  done
  return 1
}

# The Python that has torch: the distribution's first, since `python3` may be a pyenv or conda one without it.
find_torch_python() {
  local candidate
  for candidate in "${TORCHLEAK_PYTHON:-}" /usr/bin/python3 python3 "$repo_root/build/venv/bin/python3"; do
    if [[ -n $candidate ]] && "$candidate" -c 'import torch' >/dev/null 2>&1; then
      printf '%s\n' "$candidate"
      return
    fi
  done
  return 1
}

# Runs a command silently; its output is shown only when it fails.
quietly() {
  local log status=0
  log=$(mktemp)
  "$@" >"$log" 2>&1 || status=$?
  if ((status != 0)); then
    cat "$log" >&2
    say "failed: $*"
  fi
  rm -f "$log"
  return "$status"
}

# build_tree DIRECTORY TARGET [CMAKE-OPTION…]: configures and builds; a second time this takes a second or two.
build_tree() {
  local directory=$1 target=$2 bpftool generator=()
  shift 2
  if bpftool=$(find_bpftool); then
    set -- "-DTORCHLEAK_BPFTOOL=$bpftool" "$@"
  fi
  if [[ ! -e $directory/CMakeCache.txt ]]; then
    if type -P ninja >/dev/null; then
      generator=(-G Ninja)
    fi
    say "Building in ${directory#"$repo_root"/} (the first time takes a minute or two)…"
  fi
  quietly cmake -S "$repo_root" -B "$directory" "${generator[@]}" "$@" &&
    quietly cmake --build "$directory" --target "$target" --parallel "$(nproc)"
}
