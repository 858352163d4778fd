#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# What does tracing cost? sudo ./scripts/bench.sh [--case a,b] [--pairs N] [--json FILE] [--tracer PATH] [--help]
# Builds the tracer (unless one is named) and the storms, then hands over to bench/bench.py.
set -euo pipefail
scripts=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source-path=SCRIPTDIR source=common.sh
source "$scripts/common.sh"

is_tracer_named=no
for argument in "$@"; do
  case $argument in
    --tracer | --tracer=*) is_tracer_named=yes ;;
  esac
done

"$scripts/dependencies.sh" build
python=$(find_torch_python) || die "the bench needs a Python with torch: install python3-torch, or set TORCHLEAK_PYTHON"
if [[ $is_tracer_named == no ]]; then
  tests=()
  if [[ ! -e $repo_root/build/CMakeCache.txt ]]; then
    tests=(-DTORCHLEAK_TESTS=OFF)
  fi
  build_tree "$repo_root/build" torchleak-trace "${tests[@]}" || die "the build failed, see above"
  set -- --tracer "$tracer" "$@"
fi
storm=$repo_root/build/bench/storm
mkdir -p "$(dirname "$storm")"
if [[ ! $storm -nt $scripts/bench/storm.cpp ]]; then
  quietly g++ -std=c++20 -O2 -Wall -Wextra -o "$storm" "$scripts/bench/storm.cpp" || die "could not build the storms"
fi
exec env PYTHONDONTWRITEBYTECODE=1 "$python" "$scripts/bench/bench.py" --storm "$storm" "$@"
