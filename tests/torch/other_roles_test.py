# SPDX-License-Identifier: Apache-2.0
"""Processes of a PyTorch job that are no DataLoader workers."""
import unittest

from harness import Capture, Job


class OtherRoles(unittest.TestCase):
    def check_pool(self, start, helpers):
        with Job("pool.py", start=start, workers=2) as job, Capture(job.pid) as capture:
            pids = job.ask("open")["pids"]
            job.ask("close")
            report = capture.stop()
        table = report.table()
        expected = {"helper": helpers, "main": 1, "pool_worker": 2}
        self.assertEqual(report.roles(), {role: count for role, count in expected.items() if count}, table)
        self.assertEqual(sorted(p["pid"] for p in report.with_role("pool_worker")), pids, table)
        self.assertEqual(sorted(report.of(pid)["worker"]["slot"] for pid in pids), [0, 1], table)

    def test_workers_of_a_forked_pool_are_pool_workers(self):
        self.check_pool("fork", helpers=0)

    def test_workers_of_a_spawned_pool_are_pool_workers(self):
        self.check_pool("spawn", helpers=1)

    def test_what_a_worker_runs_in_a_shell_is_a_subprocess(self):
        with Job("loader.py", workers=2, items=4, persistent=True, system="/bin/true; /bin/true; :") as job:
            with Capture(job.pid) as capture:
                workers = job.ask("epoch")["workers"]
                report = capture.stop()
        table = report.table()
        # eight items: for each a shell and its two programs
        self.assertEqual(report.roles(), {"dataloader_worker": 2, "main": 1, "subprocess": 24}, table)
        self.assertEqual({p["pid"] for p in report.with_role("dataloader_worker")}, set(workers.values()), table)
        for process in report.with_role("subprocess"):
            self.assertIsNone(process["worker"], table)

    def test_the_manager_of_shared_files_is_a_helper(self):
        with Job("loader.py", workers=2, persistent=True, sharing="file_system", tensor_bytes=1 << 16) as job:
            with Capture(job.pid) as capture:
                workers = job.ask("epoch")["workers"]
                report = capture.stop()
        table = report.table()
        managers = [p for p in report.processes if p["comm"].startswith("torch_shm_manag")]
        self.assertTrue(managers, table)
        self.assertEqual({p["role"] for p in managers}, {"helper"}, table)
        self.assertEqual({p["pid"] for p in report.with_role("dataloader_worker")}, set(workers.values()), table)


if __name__ == "__main__":
    unittest.main(verbosity=2)
