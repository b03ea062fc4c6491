"""Serves in a process of its own, to be interrupted or killed: arguments ``toy|mlx PYTHON MODEL``.

It prints ``PID PORT`` of the engine once that serves, then waits in the block.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

from importer.engines import get
from importer.engines.process import serve
from tests.toy_engine import adapter

if __name__ == "__main__":
    name, python, model = sys.argv[1:]
    engine = adapter("parent") if name == "toy" else get(name)
    document = {"name": "demo", "parameters": {"temperature": 0}}
    with serve(engine, Path(python), document, Path(model)) as served:
        print(served.pid, served.port, flush=True)
        time.sleep(600)
