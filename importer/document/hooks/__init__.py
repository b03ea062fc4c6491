"""Defaults for what a hand-written document leaves out: hooks per backend, in the order of registration.

A hook is a function over a draft: it offers values, and the draft takes those that the document does not set.
Adding one is a module with such a function and a line in ``HOOKS``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from importer.document.hooks import engine, names, origin, parsers, sampling, unnamed
from importer.document.hooks.draft import Draft

Hook = Callable[[Draft], None]

EVERY = "*"  # every backend, before all others
UNNAMED = ""  # documents that leave the choice of a backend open

# As LocalAI keys its own hooks; several under one key run in this order.
HOOKS: tuple[tuple[str, Hook], ...] = (
    (EVERY, names.offer),
    (EVERY, sampling.offer),
    (EVERY, origin.offer),
    (UNNAMED, unnamed.offer),
    ("vllm", parsers.offer),
    ("vllm", engine.offer),
    ("mlx", parsers.offer),
    ("mlx", engine.offer),
    ("mlx-vlm", parsers.offer),
    ("mlx-vlm", engine.offer),
    ("vllm-mlx", parsers.offer),
    ("vllm-mlx", engine.offer),
)


def hooks(backend: str, *, named: bool, among: tuple[tuple[str, Hook], ...] = HOOKS) -> Iterator[Hook]:
    """Those for a document: every backend's, then the unnamed one's where it names none, then its own."""
    for key in (EVERY, *(() if named else (UNNAMED,)), backend):
        yield from (hook for registered, hook in among if registered == key)
