# SPDX-License-Identifier: Apache-2.0
"""The job's end of the line protocol."""
import json
import os
import sys


def serve(actions):
    """Says who it is, then answers {"do": NAME, ...} with what actions[NAME](...) returns, until stdin ends."""
    _tell({"pid": os.getpid()})
    for line in sys.stdin:
        details = json.loads(line)
        _tell(actions[details.pop("do")](**details) or {})


def _tell(answer):
    print(json.dumps(answer), flush=True)
