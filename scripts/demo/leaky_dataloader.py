#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A small training job with the two classic memory problems of DataLoader workers, to show what the tracer sees.

1. A leak: `load_image` keeps every decoded image in a module-level dict. Each worker has its own copy of that dict,
   so the main process stays flat while every worker grows by some MiB a second.
2. Copy-on-write: the dataset is a list of Python objects. Reading one writes its reference count, which makes the
   worker copy the page it shares with its parent, though nothing is allocated.

Prints a line after the first steps and then runs until it is told to stop, for five minutes at most.
"""
import signal
import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset

ROWS = 200_000
STEPS_PER_SECOND = 12
LONGEST_RUN_S = 300

DECODED_IMAGES = {}


def load_image(index):
    if index not in DECODED_IMAGES:
        DECODED_IMAGES[index] = torch.rand(3, 64, 64)  # the leak: 48 KiB an image, and never evicted
    return DECODED_IMAGES[index]


class AnnotatedImages(Dataset):
    def __init__(self):
        self.rows = [{"name": f"image-{i}.jpg", "label": i % 10} for i in range(ROWS)]

    def __len__(self):
        return ROWS

    def __getitem__(self, index):
        # copy-on-write: each look-up writes the row's reference count
        similar = [self.rows[(index * 7919 + k * 104_729) % ROWS] for k in range(4)]
        return load_image(index), similar[0]["label"]


def train():
    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 64 * 64, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loader = DataLoader(AnnotatedImages(), batch_size=16, num_workers=2, multiprocessing_context="fork")
    deadline = time.monotonic() + LONGEST_RUN_S
    for step, (images, labels) in enumerate(loader):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        optimizer.step()
        if step == STEPS_PER_SECOND:
            print("training", flush=True)
        if time.monotonic() > deadline:
            break
        time.sleep(1 / STEPS_PER_SECOND)  # as if a larger model trained


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the tracer
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))  # unwinds, so that the DataLoader ends its workers
    train()
