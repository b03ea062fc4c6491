"""The parsers of every supported version of an engine: index → wheel, in parts → syntax tree → JSON."""

from __future__ import annotations

import ast
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from gen_defaults import rust_source
from gen_defaults.inference import Rule
from gen_defaults.parser_tables import TABLES, Rows, Tables
from gen_defaults.place import load
from gen_defaults.released import SDIST, Index
from gen_defaults.sources.request import SCHEMA, SourceAnswer, SourceRequest
from importer.engines.parser_worker.parts import PARTS
from importer.wheels.index import IndexFailure, Release, order

NEWEST = ""
SHOWN = 8  # versions, where one is not there
# Prefixes of versions: the newest release under each gets a registry.
PREFIXES = {
    "vllm": ("0.14.1", "0.27.1", "0.32.0", "0.33.0", NEWEST),
    "vllm-rust": ("0.33.0", NEWEST),
    "mlx": ("0.31", "0.32"),
    "mlx-vlm": ("0.7",),
    "vllm-mlx": ("0.6",),
    "sglang": (NEWEST,),
}
SINCE = {"vllm": "0.24.0"}  # each release from this one on gets a registry, too: its parsers are asked alone


READ = {**TABLES, "vllm-rust": Tables("vllm", rust_source.is_needed, rust_source.rows, rust_source.guesses)}
IN_SDIST = {"vllm-rust": "rust"}  # the last folder that is needed: the archive is only read up to its end


def reader(engine: str) -> Callable[[SourceRequest], SourceAnswer]:
    """Return the source of one engine."""

    def read(request: SourceRequest) -> SourceAnswer:
        """Return a registry for each version. Raises IndexFailure."""
        files: dict[Path, str] = {}
        modules: dict[str, str] = {}
        releases = _releases(engine, request)
        for release in releases:
            newest = release is releases[-1]
            texts, digest = _texts(engine, request.index, release, parsers_too=newest and engine == "vllm")
            rows, rules = _parsed(engine, release, texts)
            parts = _parts(engine, request.index, release)
            files[_path(request, engine, release)] = render(engine, release, digest, parts, rows, rules)
            modules = {p.removesuffix(".py").replace("/", "."): t for p, t in texts.items()}
        return SourceAnswer(files, modules=modules if engine == "vllm" else {})

    return read


def chosen(known: Mapping[str, Release], prefixes: Iterable[str]) -> list[Release]:
    """Return the newest release under each prefix, once; raises IndexFailure where there is none."""
    newest = {}
    for prefix in prefixes:
        under = [v for v in known if prefix == NEWEST or _under(v, prefix)]
        under = [prefix] if prefix in known else under
        if not under:
            package, versions = next(iter(known.values())).package, ", ".join([*known][-SHOWN:])
            raise IndexFailure(f"{package} has no release {prefix}; its newest are {versions}")
        newest[under[-1]] = known[under[-1]]
    return list(newest.values())


def render(engine: str, release: Release, digest: str, parts: str, rows: Rows, inference: list[Rule]) -> str:
    """Return the registry as text, with the digest of its ``parts`` where it has any.

    Raises IndexFailure where a kind has no parser: the sources have moved.
    """
    kinds: dict[str, list[dict[str, Any]]] = {}
    for kind, of_kind in rows.items():
        if not of_kind:
            raise IndexFailure(f"{release.file} has no {kind} parsers where they were looked for")
        for row in of_kind:
            if not all(isinstance(word, str) and word and word.isprintable() for word in row):
                raise IndexFailure(f"{release.file} registers a {kind} parser in another way: {row}")
        kinds[kind] = [
            {
                "name": name,
                "class": cls,
                "module": module,
                "aliases": [n for n, c, m in of_kind if (c, m) == (cls, module) and n != name],
            }
            for name, cls, module in of_kind
        ]
    source = {**release.to_json(), "read": digest}
    about = {"schema": SCHEMA, "engine": engine, "version": release.version, "source": source}
    registry: dict[str, Any] = about | ({"parts": parts} if parts else {}) | kinds
    if READ[engine].chooses and not inference:
        raise IndexFailure(f"{release.file} has no rules of choosing a parser where they were looked for")
    if inference:
        registry["inference"] = inference
    return json.dumps(registry, indent=1, ensure_ascii=False) + "\n"


def _releases(engine: str, request: SourceRequest) -> list[Release]:
    """Return the supported versions; with ``pinned`` the releases that the registries name."""
    package = READ[engine].package
    known = {path: load(path) for path in request.place.registries.glob(f"{engine}-[0-9]*.json")}
    versions = request.versions if engine == "vllm" else ()
    if request.index.is_folder and not _archives(engine, request.index):
        return []  # a person's wheels have no sources of another language
    if not request.pinned:
        archives = _archives(engine, request.index)
        every = [v for v in archives if engine in SINCE and order(v) >= order(SINCE[engine])]
        releases = chosen(archives, versions or (*PREFIXES[engine], *every))
        return [
            request.dated(r, known.get(_path(request, engine, r), {}).get("source", {}))
            for r in sorted(releases, key=lambda r: order(r.version))
        ]
    registries = sorted(known.values(), key=lambda data: order(data["version"]))
    selected = {data["version"]: data for data in registries if not versions}
    for prefix in versions:
        under = {
            d["version"]: d for d in registries if d["version"] == prefix or _under(d["version"], prefix)
        }
        if not under:
            raise IndexFailure(f"there is no registry of {engine} {prefix} to check; run it without --check")
        selected |= under
    return [
        _override(request, engine, data) or request.same(package, data["source"])
        for data in selected.values()
    ]


def _archives(engine: str, index: Index) -> dict[str, Release]:
    """Return the archive of every version that has the sources: the wheel, for Rust the sdist."""
    package = READ[engine].package
    if engine not in IN_SDIST:
        return index.wheels(package)
    return {v: r for v, r in index.releases(package).items() if r.file.endswith(SDIST)}


def _override(request: SourceRequest, engine: str, data: Mapping[str, Any]) -> Release | None:
    """Return a person's file of this very version; ``None`` without one."""
    if not request.index.is_folder:
        return None
    release = _archives(engine, request.index).get(data["version"])
    return request.dated(release, data["source"]) if release else None


def _under(version: str, prefix: str) -> bool:
    return version.startswith(f"{prefix}.")


def _texts(engine: str, index: Index, release: Release, *, parsers_too: bool) -> tuple[dict[str, str], str]:
    """Return the texts of the registry, and their digest; the parsers' own modules are no part of it."""
    is_needed = READ[engine].is_needed
    places = ("vllm/tool_parsers/", "vllm/reasoning/")
    last = IN_SDIST.get(engine, "")
    texts = index.part(release, lambda p: is_needed(p) or (parsers_too and p.startswith(places)), last)
    return dict(texts.texts), texts.only(is_needed).digest


def _parts(engine: str, index: Index, release: Release) -> str:
    """Return the digest of the sources that the parsers are made of; empty where they are not asked alone."""
    parts = PARTS.get(engine)
    texts = None if parts is None else index.part(release, parts.wants)
    return "" if parts is None or texts is None or parts.entry not in texts.texts else texts.digest


def _parsed(engine: str, release: Release, texts: dict[str, str]) -> tuple[Rows, list[Rule]]:
    tables = READ[engine]
    try:
        for path in (p for p in texts if tables.is_needed(p) and p.endswith(".py")):
            ast.parse(texts[path], path)  # a syntax error names its place
        return tables.rows(texts), tables.inference(texts)
    except SyntaxError as error:
        place = f"{error.filename} on line {error.lineno}" if error.lineno else str(error.filename)
        raise IndexFailure(f"{release.file}: {place} cannot be read: {error.msg}") from None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError, MemoryError) as error:
        raise IndexFailure(f"{release.file} cannot be read as expected: {error}") from None


def _path(request: SourceRequest, engine: str, release: Release) -> Path:
    return request.place.registries / f"{engine}-{release.version}.json"
