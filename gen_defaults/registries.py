"""Engine registries from released sources: index → sdist → syntax tree → JSON, without installing.

The same release gives the same bytes.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from gen_defaults.index import Index, IndexFailure, Release
from gen_defaults.parser_tables import TABLES, Rows
from importer.engines.registries import FOLDER

SCHEMA = 1
NEWEST = ""
# Prefixes of versions: the newest release under each gets a registry.
WANTED = {
    "vllm": ("0.14.1", "0.27.1", "0.32.0", NEWEST),
    "mlx": ("0.31", "0.32"),
    "mlx-vlm": ("0.7",),
    "vllm-mlx": ("0.6",),
}


def main(_arguments: list[str]) -> int:
    """Write every registry; returns the exit status."""
    index = Index()
    try:
        for engine, prefixes in WANTED.items():
            tables = TABLES[engine]
            for release in chosen(index.releases(tables.package), prefixes):
                path = FOLDER / f"{engine}-{release.version}.json"
                rows = tables.rows(index.texts(release, tables.wanted))
                changed = write(path, render(engine, release, rows))
                sys.stderr.write(f"{path.name}: {'written' if changed else 'unchanged'}\n")
    except (IndexFailure, OSError) as failure:
        sys.stderr.write(f"registries: {failure}\n")
        return 1
    return 0


def chosen(known: Mapping[str, Release], prefixes: Iterable[str]) -> list[Release]:
    """The newest release under each prefix, once; raises IndexFailure where there is none."""
    found = {}
    for prefix in prefixes:
        under = [v for v in known if prefix in (NEWEST, v) or v.startswith(f"{prefix}.")]
        if not under:
            raise IndexFailure(f"no release {prefix} among {', '.join(known)}")
        found[under[-1]] = known[under[-1]]
    return list(found.values())


def render(engine: str, release: Release, rows: Rows) -> str:
    """The registry as text; raises IndexFailure where a kind has no parser: the sources have moved."""
    kinds: dict[str, list[dict[str, Any]]] = {}
    for kind, found in rows.items():
        if not found:
            raise IndexFailure(f"{release.file} has no {kind} parsers where they were looked for")
        kinds[kind] = [
            {
                "name": name,
                "class": cls,
                "module": module,
                "aliases": [n for n, c, m in found if (c, m) == (cls, module) and n != name],
            }
            for name, cls, module in found
        ]
    source = {"package": release.package, "file": release.file, "sha256": release.sha256}
    registry = {"schema": SCHEMA, "engine": engine, "version": release.version, "source": source, **kinds}
    return json.dumps(registry, indent=1, ensure_ascii=False) + "\n"


def write(path: Path, text: str) -> bool:
    """Put the text in place at once or not at all; whether anything changed."""
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        partial = Path(folder, path.name)
        partial.write_text(text, encoding="utf-8")
        partial.replace(path)
    return True
