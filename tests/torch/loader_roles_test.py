# SPDX-License-Identifier: Apache-2.0
"""Roles, slots and generations of DataLoader workers, however they are started."""
import unittest

from harness import Capture, Job

# Torch 1.13 does not name its workers; they are known by the signals they catch, which are read four times a second.
EPOCH_S = 0.6


class LoaderRoles(unittest.TestCase):
    def run_epochs(self, *, start, workers, persistent, epochs):
        """The report, and the truth: for each epoch {worker id: pid}."""
        with Job("loader.py", start=start, workers=workers, persistent=persistent, epoch_s=EPOCH_S) as job:
            with Capture(job.pid) as capture:
                truth = [job.ask("epoch")["workers"] for _ in range(epochs)]
                return job.pid, capture.stop(), [{int(k): pid for k, pid in one.items()} for one in truth]

    def check(self, *, start, workers, persistent, epochs, helpers=0):
        main, report, truth = self.run_epochs(start=start, workers=workers, persistent=persistent, epochs=epochs)
        table = report.table()
        self.assertEqual(report.of(main)["role"], "main", table)
        generations = 1 if persistent else epochs
        expected = {"main": 1, "dataloader_worker": workers * generations, "helper": helpers}
        self.assertEqual(report.roles(), {role: count for role, count in expected.items() if count}, table)
        for epoch, by_id in enumerate(truth):
            self.assertEqual(sorted(by_id), list(range(workers)))
            generation = 0 if persistent else epoch
            for worker_id, pid in by_id.items():
                worker = report.of(pid)["worker"]
                self.assertEqual((worker["slot"], worker["generation"]), (worker_id, generation), table)

    def test_without_workers_there_is_main_alone(self):
        with Job("loader.py", workers=0) as job, Capture(job.pid) as capture:
            job.ask("epoch")
            job.ask("epoch")
            report = capture.stop()
        self.assertEqual(report.roles(), {"main": 1}, report.table())
        self.assertIsNone(report.of(job.pid)["worker"])

    def test_forked_workers_are_a_new_generation_each_epoch(self):
        for workers in (2, 8):
            with self.subTest(workers=workers):
                self.check(start="fork", workers=workers, persistent=False, epochs=3)

    def test_forked_workers_that_persist_stay_generation_0(self):
        for workers in (2, 8):
            with self.subTest(workers=workers):
                self.check(start="fork", workers=workers, persistent=True, epochs=3)

    # The resource tracker is the one helper of spawn; forkserver has its server beside it.
    def test_spawned_workers_are_a_new_generation_each_epoch(self):
        self.check(start="spawn", workers=2, persistent=False, epochs=2, helpers=1)

    def test_spawned_workers_that_persist_stay_generation_0(self):
        self.check(start="spawn", workers=8, persistent=True, epochs=2, helpers=1)

    def test_forkserver_workers_are_a_new_generation_each_epoch(self):
        for workers in (2, 8):
            with self.subTest(workers=workers):
                self.check(start="forkserver", workers=workers, persistent=False, epochs=3, helpers=2)

    def test_forkserver_workers_that_persist_stay_generation_0(self):
        self.check(start="forkserver", workers=2, persistent=True, epochs=3, helpers=2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
