# SPDX-License-Identifier: Apache-2.0
"""The tracer as the bench sees it: attached to a process, later ended, with what it cost and what it reported."""
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass

from slices import cpu_ns_of

ATTACH_DEADLINE_S = 60
REPORT_DEADLINE_S = 60


@dataclass
class Run:
    """One capture. What is None was not in the report."""

    ready_s: float  # from start to everything attached
    capture_cpu_share: float  # of one core, between attached and told to stop
    total_cpu_s: float  # with loading and reporting
    peak_rss_bytes: int
    first_data_s: float | None
    target_share_percent: float | None
    lost: int | None


def peak_rss_bytes_of(pid):
    """0 once the process has ended. Not wait4's ru_maxrss: that remembers this driver's size from before the exec."""
    try:
        with open(f"/proc/{pid}/status") as status:
            return next((int(line.split()[1]) * 1024 for line in status if line.startswith("VmHWM:")), 0)
    except OSError:
        return 0


class Tracer:
    def __init__(self, program, pid):
        self._report = tempfile.NamedTemporaryFile(prefix="torchleak-bench-", suffix=".json")
        self._messages = tempfile.TemporaryFile()
        ready, ready_end = os.pipe()
        started = time.monotonic()
        command = [program, "-q", "-p", str(pid), "-o", self._report.name, "--ready-fd", str(ready_end)]
        self._process = subprocess.Popen(
            command, pass_fds=[ready_end], stdout=self._messages, stderr=self._messages)
        os.close(ready_end)
        is_readable, _, _ = select.select([ready], [], [], ATTACH_DEADLINE_S)
        is_ready = bool(is_readable) and os.read(ready, 1) != b""
        os.close(ready)
        if not is_ready:
            self._give_up("did not attach")
        self._ready_at = time.monotonic()
        self._ready_s = self._ready_at - started
        self._cpu_ns_at_ready = cpu_ns_of(self._process.pid)

    def stop(self):
        try:
            capture_cpu_ns = cpu_ns_of(self._process.pid) - self._cpu_ns_at_ready
        except OSError:
            self._give_up("ended during the capture")
        capture_s = time.monotonic() - self._ready_at
        self._process.send_signal(signal.SIGINT)
        status, usage, peak_rss_bytes = self._wait()
        if status != 0:
            self._give_up(f"ended with status {status}")
        capture = self._read_capture()
        cost, lost = capture.get("cost", {}), capture.get("lost")
        return Run(
            ready_s=self._ready_s,
            capture_cpu_share=capture_cpu_ns / 1e9 / capture_s,
            total_cpu_s=usage.ru_utime + usage.ru_stime,
            peak_rss_bytes=peak_rss_bytes,
            first_data_s=cost.get("first_data_s"),
            target_share_percent=cost.get("target_share_percent"),
            lost=None if lost is None else sum(lost.values()),
        )

    def _wait(self):
        deadline = time.monotonic() + REPORT_DEADLINE_S
        peak_rss_bytes = 0
        while time.monotonic() < deadline:
            peak_rss_bytes = max(peak_rss_bytes, peak_rss_bytes_of(self._process.pid))
            pid, status, usage = os.wait4(self._process.pid, os.WNOHANG)
            if pid:
                self._process.returncode = os.waitstatus_to_exitcode(status)
                return self._process.returncode, usage, peak_rss_bytes
            time.sleep(0.002)
        self._give_up("did not end when asked")

    def _read_capture(self):
        with open(self._report.name) as report:
            try:
                return json.load(report)["capture"]
            except (ValueError, KeyError) as error:
                self._give_up(f"wrote no proper report ({error!r})")

    def _give_up(self, what):
        if self._process.returncode is None:
            self._process.kill()
            self._process.wait()
        self._messages.seek(0)
        sys.stderr.write(self._messages.read().decode(errors="replace"))
        sys.exit(f"error: the tracer {what}")
