"""Runs in Ray's environment: ``ray``, which is patient with a node here: it gives one up after 30 s."""

from __future__ import annotations

import time
from typing import Any

from ray._private import services
from ray.scripts.scripts import main

SECONDS = 60.0  # a raylet whose agent is slow has ended by itself: it is begun again
ask = services.get_node


def patient(*words: Any) -> Any:
    """What the cluster knows of a node, once it knows it."""
    deadline = time.monotonic() + SECONDS
    while True:
        try:
            return ask(*words)
        except RuntimeError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)


if __name__ == "__main__":
    services.get_node = patient
    main()
