"""A bar for each file that comes, on a terminal only."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from gen_defaults.web import Told


@contextmanager
def bars() -> Iterator[Told | None]:
    """What to tell of bytes that came; ``None`` where nobody looks."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TaskID, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        tasks: dict[str, TaskID] = {}

        def told(name: str, came: int, size: int) -> None:
            if name not in tasks:
                tasks[name] = progress.add_task(name.replace("[", "\\["), total=size or None)
            progress.update(tasks[name], advance=came)

        yield told
