# SPDX-License-Identifier: Apache-2.0
"""Measures what tracing costs: CPU time per unit of work, with the tracer attached against without.

Each case is ONE long-running workload that does slices of work on request, while the tracer is attached and
detached between them, in the order base traced | traced base | base traced | …, so that both sides see the same
process, heap layout and mood of the machine, and a steady drift cancels:

    tracer      ____|‾‾‾‾‾‾‾‾‾|_________|‾‾‾‾‾‾‾‾‾|____
    slices       A    B    B    A    A    B    B    A
    pairs       (A    B)  (B    A)  (A    B)  (B    A)

A pair gives one ratio, traced over base. "ratio" is their median with its 95 % bootstrap confidence interval: all
costs, and all of the machine's noise. "quiet ratio" compares the quickest tenth of some 25 ms long chunks of either
side, which a busy neighbour disturbs far less; it sees what every unit pays, not what happens now and then.
Limits are held against "ratio". A last, longer capture gives the tracer's own cost.
"""
import argparse
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tracer import Tracer

HERE = Path(__file__).resolve().parent
RESAMPLES = 1000
WARM_UP_S = 0.5
CHUNK_S = 0.025
QUIET_QUANTILE = 0.1
SETTLING_CHUNKS = 4  # uncounted work after each attach and detach, for caches to warm up again
MIB = 1 << 20

# glibc moves its mmap and trim thresholds with what a program frees, and whether a training step returns the top of
# its heap to the kernel and faults it in again then depends on the heap's layout: 0 to 1,350 faults a step, from one
# start to the next. Setting the thresholds stops them from moving. These keep the heap in brk and trim it always,
# which is the mode with many faults, the harder one for a tracer: 1,000 to 1,850 a step, the layout still deciding
# how many, but the same number in every step of one process. Base and traced slices are of one process.
STEADY_FAULTS = {
    "MALLOC_MMAP_THRESHOLD_": str(32 * MIB), "MALLOC_TRIM_THRESHOLD_": "0", "MALLOC_TOP_PAD_": "0",
}
ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}


@dataclass
class Case:
    key: str
    name: str
    workload: list
    unit: str
    ratio_limit: float
    environment: dict = field(default_factory=dict)
    is_bystander: bool = False  # the tracer watches another, idle process
    tracer_share_limit: float | None = None
    lost_limit: int | None = None


def all_cases(storm):
    def python(script):
        return [sys.executable, str(HERE / script)]

    return [
        Case("a", "CPU training loop", python("training_loop.py"), "step", 1.01,
             environment=ONE_THREAD | STEADY_FAULTS, tracer_share_limit=0.03, lost_limit=0),
        Case("b", "DataLoader, 2 workers", python("dataloader_loop.py"), "batch", 1.01,
             environment=ONE_THREAD, lost_limit=0),
        Case("c", "page-fault storm", [storm, "faults"], "2048 faults", 1.10),
        Case("d", "mmap/munmap storm", [storm, "mappings"], "mmap+munmap", 1.20),
        Case("e", "fork/exit storm", [storm, "forks"], "fork+exit", 1.10),
        Case("f", "bystander's fault storm", [storm, "faults"], "2048 faults", 1.10, is_bystander=True),
    ]


class Workload:
    """A process that does units of work on request; see slices.py."""

    def __init__(self, command, environment):
        self._process = subprocess.Popen(
            command, env=os.environ | environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self._process.pid

    def run(self, chunks, units):
        """Does `chunks` times `units` units."""
        self._process.stdin.write(f"{chunks} {units}\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            sys.exit(f"error: the workload ended: {' '.join(self._process.args)}")
        spent = json.loads(answer)
        return Slice(
            cpu_s=spent["cpu_ns"] / 1e9 / (chunks * units),
            faults=spent["faults"] / (chunks * units),
            chunks_cpu_s=[chunk_ns / 1e9 / units for chunk_ns in spent["chunks_ns"]],
        )

    def units_in(self, seconds):
        """How many units fill that time; found by doing ever more of them, which also warms up."""
        units = 1
        while True:
            started = time.monotonic()
            self.run(1, units)
            elapsed = time.monotonic() - started
            if elapsed >= max(seconds, WARM_UP_S):
                return max(1, round(units * seconds / elapsed))
            units *= 2

    def close(self):
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


@dataclass
class Slice:
    """Figures of one slice, all per unit."""

    cpu_s: float
    faults: float
    chunks_cpu_s: list


@dataclass
class Result:
    key: str
    name: str
    unit: str
    environment: dict
    base_cpu_s: float
    traced_cpu_s: float
    base_faults: float
    traced_faults: float
    ratio: float
    ratio_low: float
    ratio_high: float
    ratio_limit: float
    quiet_ratio: float
    quiet_ratio_low: float
    quiet_ratio_high: float
    ratios: list
    tracer: dict
    checks: list


def measure_pairs(workload, traced_pid, program, options):
    """Base and traced slices in ABBA order, as two lists of equal length."""
    units = workload.units_in(CHUNK_S)
    chunks = max(1, round(options.slice / CHUNK_S))
    base, traced = [], []

    def slices(into, count):
        workload.run(SETTLING_CHUNKS, units)
        into.extend(workload.run(chunks, units) for _ in range(count))

    slices(base, 1)
    while len(traced) < options.pairs:
        tracer = Tracer(program, traced_pid)
        slices(traced, 2)
        tracer.stop()
        slices(base, 2 if len(traced) < options.pairs else 1)
        show_progress(len(traced), options.pairs)
    return base, traced


def measure_tracer(workload, traced_pid, program, seconds):
    """One longer capture of the workload at full speed."""
    units = workload.units_in(10 * CHUNK_S)
    tracer = Tracer(program, traced_pid)
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        workload.run(1, units)
    return tracer.stop()


def with_interval(statistic, pairs):
    """The statistic of (base, traced) pairs, and its 95 % bootstrap confidence interval."""
    random_source = random.Random(1)
    resampled = sorted(statistic(random_source.choices(pairs, k=len(pairs))) for _ in range(RESAMPLES))
    return statistic(pairs), resampled[int(0.025 * RESAMPLES)], resampled[int(0.975 * RESAMPLES)]


def ratios_of(pairs):
    return [traced.cpu_s / base.cpu_s for base, traced in pairs]


def median_ratio(pairs):
    return statistics.median(ratios_of(pairs))


def quiet_ratio(pairs):
    def quiet(slices):
        chunks = sorted(chunk for one in slices for chunk in one.chunks_cpu_s)
        return chunks[int(QUIET_QUANTILE * len(chunks))]

    return quiet(traced for _, traced in pairs) / quiet(base for base, _ in pairs)


def verdict(figure, limit, low=None, high=None):
    """pass or miss; with a question mark where the confidence interval holds the limit."""
    if figure is None:
        return "no figure"
    word = "pass" if figure <= limit else "miss"
    is_unsure = low is not None and low <= limit < high
    return word + "?" if is_unsure else word


def check(what, figure, limit, low=None, high=None):
    return {"what": what, "figure": figure, "limit": limit, "verdict": verdict(figure, limit, low, high)}


def checks_of(case, interval, run):
    ratio, low, high = interval
    checks = [
        check("ratio", ratio, case.ratio_limit, low, high),
        check("peak_rss_bytes", run.peak_rss_bytes, 64 * MIB),
        check("first_data_s", run.first_data_s, 1.0),
    ]
    if case.tracer_share_limit is not None:
        checks.append(check("capture_cpu_share", run.capture_cpu_share, case.tracer_share_limit))
    if case.lost_limit is not None:
        checks.append(check("lost", run.lost, case.lost_limit))
    return checks


def run_case(case, storm, options):
    with Workload(case.workload, case.environment) as workload, Workload([storm, "idle"], {}) as idle:
        traced_pid = idle.pid if case.is_bystander else workload.pid
        base, traced = measure_pairs(workload, traced_pid, options.tracer, options)
        run = measure_tracer(workload, traced_pid, options.tracer, options.capture)
    pairs = list(zip(base, traced))
    interval = with_interval(median_ratio, pairs)
    quiet_interval = with_interval(quiet_ratio, pairs)
    return Result(
        key=case.key, name=case.name, unit=case.unit, environment=case.environment,
        base_cpu_s=statistics.median(s.cpu_s for s in base),
        traced_cpu_s=statistics.median(s.cpu_s for s in traced),
        base_faults=statistics.median(s.faults for s in base),
        traced_faults=statistics.median(s.faults for s in traced),
        ratio=interval[0], ratio_low=interval[1], ratio_high=interval[2],
        ratio_limit=case.ratio_limit,
        quiet_ratio=quiet_interval[0], quiet_ratio_low=quiet_interval[1], quiet_ratio_high=quiet_interval[2],
        ratios=ratios_of(pairs), tracer=asdict(run), checks=checks_of(case, interval, run),
    )


def duration(seconds):
    for unit, scale in (("s", 1), ("ms", 1e3), ("µs", 1e6)):
        if seconds * scale >= 1:
            break
    return f"{seconds * scale:.2f} {unit}"


def beside_limit(result, what, form):
    """A figure of the tracer, with its limit and verdict if this case has one."""
    figure = result.tracer[what]
    text = "—" if figure is None else form(figure)
    for one in result.checks:
        if one["what"] == what:
            text += f" (≤ {form(one['limit'])} {one['verdict']})"
    return text


def ratio_row(result):
    return [
        f"{result.key} {result.name}", result.unit, duration(result.base_cpu_s), duration(result.traced_cpu_s),
        f"{result.base_faults:.1f} / {result.traced_faults:.1f}", f"{result.ratio:.4f}",
        f"{result.ratio_low:.4f}–{result.ratio_high:.4f}", f"≤ {result.ratio_limit:.2f}",
        result.checks[0]["verdict"],
        f"{result.quiet_ratio:.4f}", f"{result.quiet_ratio_low:.4f}–{result.quiet_ratio_high:.4f}",
    ]


def tracer_row(result):
    return [
        f"{result.key} {result.name}",
        beside_limit(result, "capture_cpu_share", lambda share: f"{100 * share:.2f} %"),
        f"{result.tracer['total_cpu_s']:.2f} s",
        beside_limit(result, "peak_rss_bytes", lambda size: f"{size / MIB:.1f} MiB"),
        f"{result.tracer['ready_s']:.2f} s",
        beside_limit(result, "first_data_s", lambda seconds: f"{seconds:.2f} s"),
        beside_limit(result, "lost", str),
    ]


def print_table(rows):
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip())


def print_results(results, options):
    print(f"CPU time per unit of work, {options.pairs} interleaved pairs of {options.slice:g} s slices")
    print_table([["case", "unit", "base", "traced", "faults/unit", "ratio", "95 % interval", "limit", "", "quiet ratio", "95 % interval"]]
                + [ratio_row(result) for result in results])
    print(f"\nThe tracer, one capture of {options.capture:g} s (CPU: of one core while capturing; total: with start and report)")
    print_table([["case", "CPU", "total", "peak RSS", "attached", "first data", "lost records"]]
                + [tracer_row(result) for result in results])
    for result in results:
        if result.environment:
            settings = " ".join(f"{name}={value}" for name, value in result.environment.items())
            print(f"\n{result.key}, both sides: {settings}", end="")
    print()


def save_json(results, options):
    document = {
        "schema": "torchleak.bench/1",
        "machine": {"kernel": platform.release(), "architecture": platform.machine(), "cpus": os.cpu_count()},
        "pairs": options.pairs, "slice_s": options.slice, "capture_s": options.capture,
        "cases": [asdict(result) for result in results],
    }
    Path(options.json).write_text(json.dumps(document, indent=1) + "\n")


def show_progress(done, of):
    if sys.stderr.isatty():
        print(f"\r  pair {done} of {of}", end="" if done < of else "\n", file=sys.stderr, flush=True)


def parse_options():
    parser = argparse.ArgumentParser(prog="bench.sh", description="What does tracing cost? See scripts/bench/bench.py.")
    parser.add_argument("--case", default="a,b,c,d,e,f", help="cases to run, e.g. a,c (default: all)")
    parser.add_argument("--pairs", type=int, default=60, help="base/traced pairs a case (default: 60)")
    parser.add_argument("--slice", type=float, default=0.5, metavar="SECONDS", help="length of a slice (default: 0.5)")
    parser.add_argument("--capture", type=float, default=10, metavar="SECONDS",
                        help="length of the capture that measures the tracer itself (default: 10)")
    parser.add_argument("--json", metavar="FILE", help="write all figures there too")
    parser.add_argument("--check", action="store_true", help="exit 1 when a limit is missed")
    parser.add_argument("--tracer", required=True, help="the torchleak-trace program")
    parser.add_argument("--storm", required=True, help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.pairs += options.pairs % 2  # a capture holds two traced slices
    options.case = options.case.split(",")
    unknown = set(options.case) - {case.key for case in all_cases("")}
    if unknown:
        parser.error(f"no such case: {', '.join(sorted(unknown))}")
    if options.pairs < 2 or options.slice <= 0 or options.capture <= 0:
        parser.error("--pairs, --slice and --capture must be positive")
    if not os.access(options.tracer, os.X_OK):
        parser.error(f"{options.tracer} is no program")
    if options.json and not os.access(Path(options.json).absolute().parent, os.W_OK):
        parser.error(f"cannot write {options.json}")
    return options


def main():
    options = parse_options()
    results = []
    for case in all_cases(options.storm):
        if case.key in options.case:
            print(f"{case.key} {case.name}…", file=sys.stderr, flush=True)
            results.append(run_case(case, options.storm, options))
    print_results(results, options)
    if options.json:
        save_json(results, options)
    is_missed = any(one["verdict"] == "miss" for result in results for one in result.checks)
    sys.exit(1 if options.check and is_missed else 0)


if __name__ == "__main__":
    main()
