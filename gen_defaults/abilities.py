"""The models that each engine version can load and its defaults, from releases: index → sdist → syntax →
JSON.

The same releases give the same bytes. vLLM's support on processors stands in no source: ``python -m
gen_defaults processors`` measures it.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from typing import Any

from gen_defaults import mlx_source, transformers_source, vllm_source
from gen_defaults.place import write
from gen_defaults.released import Index
from gen_defaults.sources.engines import PREFIXES, chosen
from importer.engines.registries import CAPABILITIES_FOLDER, SCHEMA
from importer.engines.vllm_mlx import CONSTRAINTS
from importer.wheels.index import IndexFailure, Release

# What reading sources that have moved ends in.
MOVED = (SyntaxError, ValueError, TypeError, LookupError, AttributeError, StopIteration, RecursionError)
PACKAGES = {"vllm": "vllm", "mlx": "mlx-lm", "mlx-vlm": "mlx-vlm"}
WRAPPER = "vllm-mlx"
LIBRARIES = ("mlx", "mlx-vlm")  # whose loaders vllm-mlx calls, as its environment has them


def options(parser: argparse.ArgumentParser) -> None:
    """Add engine and version."""
    parser.add_argument("engine", nargs="?", choices=[*PACKAGES, WRAPPER], help="this engine alone")
    parser.add_argument("version", nargs="?", help="this version in place of the supported ones")


def main(options: argparse.Namespace) -> int:
    """Write every file; returns the exit status."""
    index, asked = Index(), options.version
    try:
        for engine, package in PACKAGES.items():
            if options.engine not in (None, engine):
                continue
            prefixes = (*PREFIXES[engine], *(pinned()[e] for e in LIBRARIES if e == engine))
            prefixes = (asked,) if asked else prefixes
            for release in chosen(index.releases(package), prefixes):
                _write(engine, release, *_read(index, engine, release))
        if options.engine in (None, WRAPPER):
            for release in chosen(index.wheels(WRAPPER), (asked,) if asked else PREFIXES[WRAPPER]):
                _write(WRAPPER, release, [], {"libraries": pinned()})
    except (IndexFailure, OSError) as failure:
        sys.stderr.write(f"abilities: {failure}\n")
        return 1
    return 0


def pinned() -> dict[str, str]:
    """Return the versions of the libraries that vllm-mlx's environment is installed with."""
    pins = dict(line.split("==") for line in CONSTRAINTS.read_text("utf-8").splitlines() if "==" in line)
    return {engine: pins[PACKAGES[engine]] for engine in LIBRARIES}


def _write(engine: str, release: Release, beside: list[Release], abilities: Mapping[str, Any]) -> None:
    path = CAPABILITIES_FOLDER / f"{engine}-{release.version}.json"
    changed = write({path: render(engine, release, beside, abilities)})
    sys.stderr.write(f"{path.name}: {'written' if changed else 'unchanged'}\n")


def _read(index: Index, engine: str, release: Release) -> tuple[list[Release], dict[str, Any]]:
    try:
        return read(index, engine, release)
    except MOVED as error:
        raise IndexFailure(f"{release.file} cannot be read as expected: {error!r}") from None


def read(index: Index, engine: str, release: Release) -> tuple[list[Release], dict[str, Any]]:
    """Return the releases that were read beside this one, and the abilities. Raises IndexFailure."""
    if engine != "vllm":
        package = release.package.replace("-", "_")
        sources = index.texts(release, lambda path: mlx_source.is_needed(package, path))
        return [], mlx_source.abilities(package, sources)
    sources = index.texts(release, vllm_source.is_needed)
    beside = index.releases("transformers")[vllm_source.transformers(sources)]
    texts = index.texts(beside, transformers_source.is_needed)
    own = {p: t for p, t in sources.items() if p.startswith("vllm/transformers_utils/configs/")}
    lengths = transformers_source.model_types(texts) | transformers_source.model_types(own)
    abilities = vllm_source.abilities(sources)
    known = {*transformers_source.model_types(texts), *abilities.pop("config_types")}
    return [beside], abilities | {
        "model_types": sorted(known),
        "tokenizer_types": transformers_source.tokenizers(texts),
        "tokenizer_classes": transformers_source.tokenizer_classes(texts),
        "lengths": {name: own_lengths for name, own_lengths in sorted(lengths.items()) if own_lengths},
    }


def render(engine: str, release: Release, beside: list[Release], abilities: Mapping[str, Any]) -> str:
    """Return the file's text; raises IndexFailure where something that every version has is missing."""
    empty = [key for key, value in abilities.items() if value in ([], {}) and key not in MAY_BE_EMPTY]
    if empty:
        raise IndexFailure(f"{release.file} has no {', '.join(empty)} where they were looked for")
    source = [{"package": r.package, "file": r.file, "sha256": r.sha256} for r in (release, *beside)]
    head = {"schema": SCHEMA, "engine": engine, "version": release.version, "source": source}
    lines = [f" {json.dumps(k)}: {_text(v)}" for k, v in (head | dict(abilities)).items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


MAY_BE_EMPTY = (
    "removed", "deprecated", "formats", "fp8_types", "bits", "refused_tensors", "tokenizer_classes", "towers",
)  # fmt: skip


def _text(value: Any) -> str:
    """Return a map with a line for each entry, and everything else on one."""
    if isinstance(value, dict) and value:
        return "{\n" + ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in value.items()) + "\n }"
    return json.dumps(value)
