# SPDX-License-Identifier: Apache-2.0
"""The job and the tracer come and go in any order."""
import json
import tempfile
import unittest
from pathlib import Path

from harness import DEADLINE_S, TRACER, Capture, Job, Report


class Life(unittest.TestCase):
    def test_workers_that_run_already_are_found_with_their_slots(self):
        for start in ("fork", "forkserver"):
            with self.subTest(start=start), Job("loader.py", start=start, workers=4) as job:
                workers = job.ask("begin")["workers"]
                with Capture(job.pid) as capture:
                    report = capture.stop()
                job.ask("finish")
            table = report.table()
            self.assertEqual(len(report.with_role("dataloader_worker")), 4, table)
            for worker_id, pid in workers.items():
                process = report.of(pid)
                self.assertEqual(process["role"], "dataloader_worker", table)
                self.assertEqual(process["worker"]["slot"], int(worker_id), table)
                self.assertEqual(process["started_s"], 0, table)

    def test_workers_of_the_next_epoch_continue_the_slots_of_those_found(self):
        with Job("loader.py", workers=2) as job:
            found = job.ask("begin")["workers"]
            with Capture(job.pid) as capture:
                job.ask("finish")
                born = job.ask("epoch")["workers"]
                report = capture.stop()
        table = report.table()
        for generation, workers in enumerate((found, born)):
            for worker_id, pid in workers.items():
                worker = report.of(pid)["worker"]
                self.assertIsNotNone(worker, table)
                self.assertEqual((worker["slot"], worker["generation"]), (int(worker_id), generation), table)

    def test_a_worker_may_be_the_target(self):
        with Job("loader.py", workers=2) as job:
            workers = job.ask("begin")["workers"]
            with Capture(workers["1"]) as capture:
                report = capture.stop()
        self.assertEqual([p["pid"] for p in report.processes], [workers["1"]], report.table())

    def test_a_job_that_ends_ends_the_capture_and_loses_nothing(self):
        with Job("loader.py", workers=2) as job:
            with Capture(job.pid) as capture:
                workers = job.ask("epoch")["workers"]
                self.assertEqual(job.leave(), 0)
                report = capture.wait()
        table = report.table()
        self.assertEqual(report.of(job.pid)["exit"], {"code": 0, "signal": 0, "oom_killed": False}, table)
        for pid in workers.values():
            self.assertEqual(report.of(pid)["exit"], {"code": 0, "signal": 0, "oom_killed": False}, table)
            self.assertIsNotNone(report.of(pid)["ended_s"], table)

    def test_a_job_is_traced_from_its_first_instruction(self):
        with tempfile.TemporaryDirectory(prefix="torchleak-torch-") as directory:
            file = Path(directory) / "report.json"
            with Job("loader.py", under=[TRACER, "-q", "-o", str(file), "--"], workers=2,
                     epoch_s=0.6) as job:
                workers = job.ask("epoch")["workers"]
                job.process.stdin.close()
                self.assertEqual(job.process.wait(DEADLINE_S), 0)
            report = Report(json.loads(file.read_text()))
        table = report.table()
        main = report.of(job.pid)
        self.assertEqual((main["role"], main["exit"]["code"]), ("main", 0), table)
        self.assertEqual({p["pid"] for p in report.with_role("dataloader_worker")}, set(workers.values()), table)


if __name__ == "__main__":
    unittest.main(verbosity=2)
