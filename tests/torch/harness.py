# SPDX-License-Identifier: Apache-2.0
"""A job that is told what to do line by line, and a capture of it.

    test                     job
     |--- {"do": "epoch"} --->|      one JSON object a line on its stdin
     |<-- {"workers": {...}} -|      and one for an answer on its stdout

Nothing here sleeps for a fixed time: the job is ready when it answers, the tracer when it writes to --ready-fd.
"""
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TRACER = os.environ["TORCHLEAK_TRACER"]
JOBS = Path(__file__).resolve().parent / "jobs"
DEADLINE_S = 60
MIB = 1 << 20


class Job:
    """A job under jobs/, from its start to its end; kills what is left of it."""

    def __init__(self, name, *, under=(), **options):
        arguments = [str(JOBS / name), json.dumps(options)]
        self.process = subprocess.Popen(
            [*under, sys.executable, "-Wignore", *arguments],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
        self._unread = b""
        self.pid = self._answer()["pid"]  # not Popen's, which may be the tracer's

    def ask(self, what, **details):
        self.process.stdin.write(json.dumps({"do": what, **details}).encode() + b"\n")
        self.process.stdin.flush()
        return self._answer()

    def leave(self):
        """Ends it in good order; the exit status."""
        self.process.stdin.close()
        return self.process.wait(DEADLINE_S)

    def _answer(self):
        deadline = time.monotonic() + DEADLINE_S
        while b"\n" not in self._unread:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                raise TimeoutError("the job does not answer")
            chunk = os.read(self.process.stdout.fileno(), 65536)
            if not chunk:
                raise EOFError(f"the job ended with {self.process.wait(DEADLINE_S)}")
            self._unread += chunk
        line, self._unread = self._unread.split(b"\n", 1)
        return json.loads(line)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            if self.process.poll() is None:
                self.leave()
        except (subprocess.TimeoutExpired, BrokenPipeError):
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.process.stdout.close()


class Capture:
    """torchleak-trace on a running job, attached when the constructor returns."""

    def __init__(self, pid, *options):
        self._directory = tempfile.TemporaryDirectory(prefix="torchleak-torch-")
        self._file = Path(self._directory.name) / "report.json"
        ready, told = os.pipe()
        self._process = subprocess.Popen(
            [TRACER, "-q", "-p", str(pid), "--ready-fd", str(told), "-o", str(self._file), *options],
            pass_fds=[told], stderr=subprocess.PIPE, start_new_session=True)
        os.close(told)
        with os.fdopen(ready, "rb") as pipe:
            attached = select.select([pipe], [], [], DEADLINE_S)[0] and pipe.read(1)
        if not attached:
            self._process.kill()
            raise RuntimeError(f"not attached: {self._process.communicate()[1].decode()}")

    def stop(self):
        """As Ctrl-C does; the report."""
        self._process.send_signal(signal.SIGINT)
        return self.wait()

    def wait(self):
        """Until it ends by itself; the report."""
        errors = self._process.communicate(timeout=DEADLINE_S)[1].decode()
        if self._process.returncode != 0:
            raise RuntimeError(f"the tracer ended with {self._process.returncode}: {errors}")
        return Report(json.loads(self._file.read_text()))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()
        self._process.stderr.close()
        self._directory.cleanup()


class Report:
    def __init__(self, json_report):
        self.json = json_report
        self.processes = json_report["processes"]

    def of(self, pid):
        (process,) = [p for p in self.processes if p["pid"] == pid]
        return process

    def with_role(self, role):
        return [p for p in self.processes if p["role"] == role]

    def roles(self):
        """{role: how many}, for messages and for comparison."""
        return {role: len(self.with_role(role)) for role in sorted({p["role"] for p in self.processes})}

    def table(self):
        """What a failed test shows."""
        return "\n" + "\n".join(
            f'{p["pid"]} of {p["ppid"]} {p["comm"]} {p["role"]} {p.get("worker")} {growth_of(p) / MIB:.1f} MiB '
            f'{p["started_s"]:.2f}..{p["ended_s"]} {" ".join(p["cmdline"])[:90]}' for p in self.processes)


def growth_of(process):
    """RSS and swap, and what was copied on write."""
    end, start = process["memory"]["end"], process["memory"]["start"]
    copied = sum(row["cow"] for row in process["sources"])
    return end["rss"] + end["swap"] - start["rss"] - start["swap"] + copied


def own_growth_of(process):
    """Without file pages: fork does not copy their page tables, so a forked child's RSS grows by libraries that it maps
    anew and shares with its parent. They are in growth_of()."""
    end, start = process["memory"]["end"], process["memory"]["start"]
    files = end["file"] - start["file"]
    return growth_of(process) - files


def private_bytes(pid):
    """The kernel's own count of what is this process's alone and written."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as rollup:
        (line,) = [line for line in rollup if line.startswith("Private_Dirty:")]
    return int(line.split()[1]) * 1024


def source_of(process, name):
    rows = [row for row in process["sources"] if row["source"] == name]
    return rows[0] if rows else {"source": name, "start": 0, "end": 0, "growth": 0, "cow": 0}
