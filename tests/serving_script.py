"""Serves in a process of its own, to be interrupted or killed: ``toy|stubborn|mlx PYTHON MODEL [LOCK]``.

It prints ``PID PORT`` of the engine once that serves, then waits in the block.
"""

from __future__ import annotations

import fcntl
import os
import sys
import time
from pathlib import Path

from importer.engines import get, process
from importer.engines.process import serve
from tests.toy_engine import adapter

if __name__ == "__main__":
    name, python, model, *lock = sys.argv[1:]
    modes = {"toy": "parent", "stubborn": "stubborn"}
    process.GRACE = 4.0  # seconds that a stubborn one has
    engine = adapter(modes[name]) if name in modes else get(name)
    document = {"name": "demo", "parameters": {"temperature": 0}}
    held = [os.open(path, os.O_RDWR | os.O_CREAT) for path in lock]
    for descriptor in held:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    with serve(engine, Path(python), document, Path(model), hold=held) as served:
        print(served.pid, served.port, flush=True)
        time.sleep(600)
