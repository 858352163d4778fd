#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# run.sh TRACER TEST.py [unittest arguments]: runs the test with a Python that has torch, or says why it cannot (77).
tracer=$1
test=$2
shift 2
here=$(cd "$(dirname "$0")" && pwd) || exit 1

if [ "$(id -u)" != 0 ]; then
  echo "skipped: the tracer loads BPF programs, which needs root"
  exit 77
fi
for python in "${TORCHLEAK_PYTHON:-}" /usr/bin/python3 python3 "$here/../../build/venv/bin/python3"; do
  if [ -n "$python" ] && "$python" -c 'import torch' 2>/dev/null; then
    TORCHLEAK_TRACER=$tracer PYTHONDONTWRITEBYTECODE=1 exec "$python" "$here/$test" "$@"
  fi
done
echo "skipped: no Python that can import torch (looked at TORCHLEAK_PYTHON, /usr/bin/python3, python3)"
exit 77
