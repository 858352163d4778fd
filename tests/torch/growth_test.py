# SPDX-License-Identifier: Apache-2.0
"""Who grows, by how much, and in what."""
import unittest

from harness import MIB, Capture, Job, growth_of, own_growth_of, private_bytes, source_of

ITEMS = 48  # of each worker
STARTING_UP = 8 * MIB  # what a worker takes for itself in its first batches, 6 MiB as smaps has it


class Growth(unittest.TestCase):
    def check_reconciled(self, process, table):
        sums = process["reconciliation"]
        self.assertEqual(sums["start"] + sums["attributed"] - sums["freed"] + sums["unexplained"],
                         sums["measured"], table)

    def leak_in_workers(self, *, warm, leak_worker):
        """Each leaks 1 MiB an item. `warm`: they have run an epoch before the tracer comes."""
        with Job("loader.py", workers=3, items=ITEMS, persistent=True, leak_bytes=MIB,
                 leak_worker=leak_worker) as job:
            if warm:
                job.ask("epoch")
            with Capture(job.pid) as capture:
                workers = job.ask("epoch")["workers"]
                private = {pid: private_bytes(pid) for pid in workers.values()}
                report = capture.stop()
        table = report.table()
        for worker_id, pid in workers.items():
            process = report.of(pid)
            self.check_reconciled(process, table)
            leak = ITEMS * MIB if leak_worker in (None, int(worker_id)) else 0
            self.assertGreater(own_growth_of(process), leak - MIB, table)
            self.assertLess(own_growth_of(process), leak * 1.05 + STARTING_UP, table)
            if not warm:  # all that it has written is of this capture
                self.assertAlmostEqual(own_growth_of(process), private[pid], delta=private[pid] * 0.05 + 2 * MIB,
                                       msg=table)
        if leak_worker is not None:
            most = max(report.processes, key=growth_of)
            self.assertEqual(most["pid"], workers[str(leak_worker)], table)
        self.assertLess(own_growth_of(report.of(job.pid)), STARTING_UP, table)
        self.assertGreater(report.json["growth"]["bytes"], ITEMS * MIB, table)

    def test_every_worker_that_leaks_grows_by_its_leak(self):
        self.leak_in_workers(warm=False, leak_worker=None)

    def test_the_one_worker_that_leaks_is_the_one_that_grows(self):
        self.leak_in_workers(warm=False, leak_worker=1)

    def test_workers_that_ran_before_the_tracer_came_are_found_and_measured(self):
        self.leak_in_workers(warm=True, leak_worker=2)

    def test_a_leak_in_main_is_mains(self):
        with Job("loader.py", workers=0, items=ITEMS, leak_bytes=MIB) as job:
            job.ask("epoch")
            with Capture(job.pid) as capture:
                job.ask("epoch")
                report = capture.stop()
        main = report.of(job.pid)
        self.assertAlmostEqual(growth_of(main), ITEMS * MIB, delta=ITEMS * MIB * 0.05, msg=report.table())
        # bytes objects of 1 MiB and a header: each has a mapping of its own, or a place in the heap
        grown = source_of(main, "malloc_mmap")["growth"] + source_of(main, "malloc_heap")["growth"]
        self.assertAlmostEqual(grown, ITEMS * MIB, delta=ITEMS * MIB * 0.05, msg=main["sources"])

    def test_batches_that_main_keeps_are_shared_memory(self):
        with Job("loader.py", workers=2, items=16, persistent=True, tensor_bytes=MIB, keep=True) as job:
            with Capture(job.pid) as capture:
                kept = job.ask("epoch")["kept_bytes"]
                report = capture.stop()
        self.assertEqual(kept, 32 * MIB)
        main = report.of(job.pid)
        self.assertAlmostEqual(source_of(main, "shared_memory")["growth"], kept, delta=kept * 0.05,
                               msg=main["sources"])

    def test_a_healthy_loop_does_not_grow(self):
        with Job("loader.py", workers=2, items=32, persistent=True, tensor_bytes=MIB) as job:
            job.ask("epoch")
            with Capture(job.pid) as capture:
                for _ in range(6):
                    job.ask("epoch")
                report = capture.stop()
        for process in report.processes:
            self.assertLess(abs(growth_of(process)), 6 * MIB, report.table())
            self.check_reconciled(process, report.table())


if __name__ == "__main__":
    unittest.main(verbosity=2)
