# SPDX-License-Identifier: Apache-2.0
"""Case b: a DataLoader with two forked workers over a dataset of Python objects; a unit is one batch.

A slice begins and ends with all prefetched batches ready (slices.py waits for the workers to fall idle), so that
the CPU time of main and workers is that of the batches consumed.
"""
import torch
from torch.utils.data import DataLoader, Dataset

import slices

ROWS = 50_000
LENGTH = 10**12  # the bench never comes to an end of it


class Rows(Dataset):
    def __init__(self):
        self.rows = [{"name": f"row-{i}", "value": float(i)} for i in range(ROWS)]

    def __len__(self):
        return LENGTH

    def __getitem__(self, index):
        row = self.rows[index % ROWS]
        return torch.full((1024,), row["value"]), index % 10


def main():
    torch.set_num_threads(1)
    weights = torch.randn(1024, 64)
    loader = DataLoader(Rows(), batch_size=32, num_workers=2, multiprocessing_context="fork")
    batches = iter(loader)

    def step():
        inputs, _ = next(batches)
        (inputs @ weights).relu().sum()

    step()
    slices.serve(step, workers=[worker.pid for worker in batches._workers])


if __name__ == "__main__":
    main()
