# SPDX-License-Identifier: Apache-2.0
"""A multiprocessing Pool in a job that uses torch. Options: start, workers."""
import json
import multiprocessing
import os
import sys

import torch

import protocol


def work(barrier_seconds):
    torch.ones(16).sum()
    BARRIER.wait(barrier_seconds)  # so that every worker gets one
    return os.getpid()


def set_up(barrier):
    global BARRIER
    BARRIER = barrier


class Pools:
    def __init__(self, options):
        self.context = multiprocessing.get_context(options["start"])
        self.count = options["workers"]
        self.pool = None

    def open(self):
        self.pool = self.context.Pool(self.count, set_up, [self.context.Barrier(self.count)])
        return {"pids": sorted(self.pool.map(work, [60] * self.count, chunksize=1))}

    def close(self):
        self.pool.close()
        self.pool.join()


def main():
    pools = Pools(json.loads(sys.argv[1]))
    protocol.serve({"open": pools.open, "close": pools.close})


if __name__ == "__main__":
    main()
