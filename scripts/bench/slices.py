# SPDX-License-Identifier: Apache-2.0
"""The workload's side of the bench: does slices of work on request and says what each one cost.

The driver writes a line "CHUNKS UNITS"; the workload does CHUNKS times UNITS units of work and answers with a line
of JSON: {"cpu_ns": CPU time of the slice, "faults": its minor page faults, "chunks_ns": [CPU time of each chunk]}.
End of file ends the workload.
"""
import json
import resource
import sys
import time

CPUCLOCK_SCHED = 2  # a process's CPU clock is ~pid << 3 | 2: to the nanosecond, /proc/PID/stat counts in ticks of 10 ms


def cpu_ns_of(pid):
    return time.clock_gettime_ns(~pid << 3 | CPUCLOCK_SCHED)


def faults_of(pid):
    with open(f"/proc/{pid}/stat") as stat:
        return int(stat.read().rsplit(")", 1)[1].split()[7])


def wait_until_idle(pids):
    """Returns once the processes have used no CPU for some milliseconds: all that was asked of them is done."""
    if not pids:
        return
    quiet, before = 0, None
    while quiet < 3:
        time.sleep(0.003)
        now = [cpu_ns_of(pid) for pid in pids]
        quiet = quiet + 1 if now == before else 0
        before = now


def serve(step, workers=()):
    """Answers requests; `workers` are further processes whose CPU time and faults count as this one's."""

    def cpu_ns():
        return time.process_time_ns() + sum(cpu_ns_of(pid) for pid in workers)

    def faults():
        return resource.getrusage(resource.RUSAGE_SELF).ru_minflt + sum(faults_of(pid) for pid in workers)

    for line in sys.stdin:
        chunks, units = map(int, line.split())
        wait_until_idle(workers)
        faults_before, marks = faults(), [cpu_ns()]
        for _ in range(chunks):
            for _ in range(units):
                step()
            marks.append(cpu_ns())
        wait_until_idle(workers)
        answer = {
            "cpu_ns": cpu_ns() - marks[0],
            "faults": faults() - faults_before,
            "chunks_ns": [after - before for before, after in zip(marks, marks[1:])],
        }
        print(json.dumps(answer), flush=True)
