# SPDX-License-Identifier: Apache-2.0
"""A DataLoader that is run epoch by epoch.

Options: start (fork, spawn, forkserver), workers, persistent, items (a worker and epoch), tensor_bytes, leak_bytes
(an item), leak_worker (None: all), system (a shell command an item), keep (batches), sharing (strategy), epoch_s (how
long an epoch lasts at least, as one does that trains).
"""
import json
import multiprocessing
import os
import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset, get_worker_info

import protocol

LEAK = []


class Items(Dataset):
    def __init__(self, options):
        self.options = options
        self.count = options.get("items", 4) * max(1, options["workers"])

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        info = get_worker_info()
        worker = info.id if info else -1
        leak_bytes = self.options.get("leak_bytes", 0)
        if leak_bytes and self.options.get("leak_worker") in (None, worker):
            LEAK.append(b"x" * leak_bytes)
        if self.options.get("system"):
            os.system(self.options["system"])
        return torch.ones(self.options.get("tensor_bytes", 64) // 4), worker, os.getpid()


class Loop:
    def __init__(self, options):
        self.workers = {}
        self.iterator = None
        self.kept = []
        self.keep = options.get("keep", False)
        self.epoch_s = options.get("epoch_s", 0)
        self.began = 0
        count = options["workers"]
        self.loader = DataLoader(
            Items(options), batch_size=1, num_workers=count,
            persistent_workers=bool(options.get("persistent")),
            multiprocessing_context=options.get("start", "fork") if count else None)

    def begin(self):
        """Starts an epoch and takes a batch of each worker: all of them run and are at work."""
        self.workers = {}
        self.iterator = iter(self.loader)
        for _ in range(max(1, self.loader.num_workers)):
            self._take(next(self.iterator))
        self.began = time.monotonic()
        return {"workers": self.workers}

    def finish(self):
        time.sleep(max(0, self.began + self.epoch_s - time.monotonic()))  # the step, while the workers wait
        for batch in self.iterator:
            self._take(batch)
        self.iterator = None
        return {"workers": self.workers, "kept_bytes": sum(t.numel() * t.element_size() for t in self.kept)}

    def epoch(self):
        self.begin()
        return self.finish()

    def _take(self, batch):
        tensor, worker, pid = batch
        self.workers[int(worker)] = int(pid)
        tensor.sum()
        if self.keep:
            self.kept.append(tensor)


def main():
    options = json.loads(sys.argv[1])
    torch.set_num_threads(1)
    if "sharing" in options:
        torch.multiprocessing.set_sharing_strategy(options["sharing"])
    multiprocessing.set_forkserver_preload(["torch"])  # as who values his time does
    loop = Loop(options)
    protocol.serve({"begin": loop.begin, "finish": loop.finish, "epoch": loop.epoch})


if __name__ == "__main__":
    main()
