"""The parsers of every supported version of an engine: index → wheel, in parts → syntax tree → JSON."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from gen_defaults.index import Index, IndexFailure, Release, order
from gen_defaults.inference import Rule
from gen_defaults.parser_tables import TABLES, Rows
from gen_defaults.place import load
from gen_defaults.sources.request import SCHEMA, Answer, Request

NEWEST = ""
# Prefixes of versions: the newest release under each gets a registry.
WANTED = {
    "vllm": ("0.14.1", "0.27.1", "0.32.0", NEWEST),
    "mlx": ("0.31", "0.32"),
    "mlx-vlm": ("0.7",),
    "vllm-mlx": ("0.6",),
}


def reader(engine: str) -> Callable[[Request], Answer]:
    """The source of one engine."""

    def read(request: Request) -> Answer:
        """A registry for each version. Raises IndexFailure."""
        files: dict[Path, str] = {}
        modules: dict[str, str] = {}
        releases = _releases(engine, request)
        for release in releases:
            newest = release is releases[-1]
            texts, digest = _texts(engine, request.index, release, parsers_too=newest and engine == "vllm")
            rows, rules = _parsed(engine, release, texts)
            files[_path(request, engine, release)] = render(engine, release, digest, rows, rules)
            modules = {p.removesuffix(".py").replace("/", "."): t for p, t in texts.items()}
        return Answer(files, modules=modules if engine == "vllm" else {})

    return read


def chosen(known: Mapping[str, Release], prefixes: Iterable[str]) -> list[Release]:
    """The newest release under each prefix, once; raises IndexFailure where there is none."""
    found = {}
    for prefix in prefixes:
        under = [v for v in known if prefix in (NEWEST, v) or v.startswith(f"{prefix}.")]
        if not under:
            raise IndexFailure(f"no release {prefix} among {', '.join(known)}")
        found[under[-1]] = known[under[-1]]
    return list(found.values())


def render(engine: str, release: Release, digest: str, rows: Rows, inference: list[Rule]) -> str:
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
    source = {**release.to_json(), "read": digest}
    registry = {"schema": SCHEMA, "engine": engine, "version": release.version, "source": source, **kinds}
    if inference:
        registry["inference"] = inference
    return json.dumps(registry, indent=1, ensure_ascii=False) + "\n"


def _releases(engine: str, request: Request) -> list[Release]:
    """The supported versions; or those of which there are registries, as these name them."""
    package = TABLES[engine].package
    known = {path: load(path) for path in request.place.registries.glob(f"{engine}-[0-9]*.json")}
    versions = request.versions if engine == "vllm" else ()
    if not request.pinned:
        found = chosen(request.index.wheels(package), versions or WANTED[engine])
        return [
            request.dated(r, known.get(_path(request, engine, r), {}).get("source", {}))
            for r in sorted(found, key=lambda r: order(r.version))
        ]
    told = sorted(known.values(), key=lambda data: order(data["version"]))
    wanted = [d for d in told if not versions or _under(d["version"], versions)]
    return [request.same(package, data["source"]) for data in wanted]


def _under(version: str, prefixes: Iterable[str]) -> bool:
    return any(version == prefix or version.startswith(f"{prefix}.") for prefix in prefixes)


def _texts(engine: str, index: Index, release: Release, *, parsers_too: bool) -> tuple[dict[str, str], str]:
    """The files of the registry, and the digest over them; the parsers themselves are not part of it."""
    wanted = TABLES[engine].wanted
    places = ("vllm/tool_parsers/", "vllm/reasoning/")
    found = index.part(release, lambda p: wanted(p) or (parsers_too and p.startswith(places)))
    return dict(found.texts), found.only(wanted).digest


def _parsed(engine: str, release: Release, texts: dict[str, str]) -> tuple[Rows, list[Rule]]:
    try:
        return TABLES[engine].rows(texts), TABLES[engine].inference(texts)
    except (SyntaxError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise IndexFailure(f"{release.file} cannot be read as expected: {error}") from None


def _path(request: Request, engine: str, release: Release) -> Path:
    return request.place.registries / f"{engine}-{release.version}.json"
