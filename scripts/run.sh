#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs what is missing, builds, and traces:
#   sudo ./scripts/run.sh                a built-in DataLoader job that leaks in its workers, for ten seconds
#   sudo ./scripts/run.sh -p PID …       whatever torchleak-trace can do: the arguments are its own
set -euo pipefail
scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source-path=SCRIPTDIR source=common.sh
source "$scripts/common.sh"

mount_if_missing() {
  local type=$1 place=$2
  if [[ -d $place ]] && ! mountpoint -q "$place"; then
    mount -t "$type" "$type" "$place" 2>/dev/null || say "note: could not mount $type on $place"
  fi
}

# Starts the built-in job and waits for its first training steps, so that its workers already run at attach.
start_demo_job() {
  local python
  python=$(find_torch_python) ||
    die "the built-in job needs PyTorch: install python3-torch, or name a Python that has it in TORCHLEAK_PYTHON"
  say "Starting a DataLoader job that leaks in its workers…"
  exec {job_output}< <(exec "$python" "$scripts/demo/leaky_dataloader.py" 2>"$job_log")
  job=$!
  if ! read -r -t 120 -u "$job_output" _; then
    cat "$job_log" >&2
    die "the built-in job did not start"
  fi
}

stop_demo_job() {
  if [[ -n ${job:-} ]]; then
    kill "$job" 2>/dev/null || true
    # The job closes its DataLoader on the way out; end of file says that job and workers are gone.
    timeout 10 cat <&"$job_output" >/dev/null || kill -KILL "$job" 2>/dev/null || true
  fi
  rm -f "$job_log"
}

trace_demo_job() {
  local status=0
  job_log=$(mktemp)
  trap stop_demo_job EXIT
  trap : INT # Ctrl-C ends the capture early; the report and the cleaning up still follow
  start_demo_job
  say "Tracing process $job and its workers for ${TORCHLEAK_DEMO_SECONDS:-10} seconds…"
  "$tracer" -p "$job" -d "${TORCHLEAK_DEMO_SECONDS:-10}" || status=$?
  say ""
  say "That was a built-in job. To trace your own: sudo $0 -p PID"
  return "$status"
}

"$scripts/dependencies.sh" build
tests=()
if [[ ! -e $repo_root/build/CMakeCache.txt ]]; then
  tests=(-DTORCHLEAK_TESTS=OFF) # test.sh turns them on, and they stay on
fi
build_tree "$repo_root/build" torchleak-trace "${tests[@]}" || die "the build failed, see above"
if is_root; then
  mount_if_missing tracefs /sys/kernel/tracing
  mount_if_missing bpf /sys/fs/bpf
fi

if (($#)); then
  exec "$tracer" "$@"
fi
is_root || die "tracing needs root; run: sudo $0"
trace_demo_job
