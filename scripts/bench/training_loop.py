# SPDX-License-Identifier: Apache-2.0
"""Case a: a small CNN trained on one CPU thread; a unit is one training step."""
import itertools

import torch
from torch import nn

import slices

BATCH = 32
BATCHES = 31


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(800, 64), nn.ReLU(), nn.Linear(64, 10),
    )
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    images = torch.randn(BATCH * BATCHES, 1, 28, 28).split(BATCH)
    labels = torch.randint(0, 10, (BATCH * BATCHES,)).split(BATCH)
    batches = itertools.cycle(zip(images, labels))

    def step():
        inputs, targets = next(batches)
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(inputs), targets).backward()
        optimizer.step()

    slices.serve(step)


if __name__ == "__main__":
    main()
