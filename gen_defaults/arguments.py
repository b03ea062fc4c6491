"""The arguments of each installed engine's server.

The parser is the engine's own, asked in its environment. The same version gives the same bytes.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gen_defaults.place import write
from importer import backends, launcher
from importer.document.engine_arguments import FOLDER, SCHEMA, file_name
from importer.engines import get, install
from importer.launcher import Purpose, isolated

WORKER = Path(__file__).with_name("arguments_worker.py")
VALIDATORS = Path(__file__).with_name("conflicts_worker.py")
PLATFORMS = ("cpu", "cuda")  # that vLLM's validators are asked for; the first one leaves facts of models
SECONDS = 900


@dataclass(frozen=True, slots=True)
class Server:
    """The package of an engine, and the module with its parser."""

    package: str
    command: tuple[str, ...]


SERVERS: Mapping[str, Server] = {
    "vllm-cpu": Server("vllm", ("vllm.entrypoints.openai.api_server",)),
    "vllm-cuda": Server("vllm", ("vllm.entrypoints.openai.api_server",)),
    "mlx": Server("mlx_lm", ("mlx_lm.server",)),
    "mlx-vlm": Server("mlx_vlm", ("mlx_vlm.server",)),
    "vllm-mlx": Server("vllm_mlx", ("vllm_mlx.cli", "serve")),
    "sglang": Server("sglang", ("sglang.launch_server",)),
}
# A build for cards reads its arguments on a machine without one.
VARIABLES = {"VLLM_TARGET_DEVICE": "cpu", "VLLM_NO_USAGE_STATS": "1"}


def some_of(parser: argparse.ArgumentParser, engines: Collection[str]) -> None:
    """Add the names of some engines; none stands for all."""
    parser.add_argument(
        "engines",
        nargs="*",
        choices=[*engines],
        metavar="ENGINE",
        help=f"of {', '.join(engines)}; default: all",
    )


def options(parser: argparse.ArgumentParser) -> None:
    """Add the engines."""
    some_of(parser, SERVERS)


def main(options: argparse.Namespace) -> int:
    """Write a file for each installed engine; returns the exit status."""
    status = 0
    for name in options.engines or SERVERS:
        installed = install.find(get(name))
        if installed is None:
            sys.stderr.write(f"arguments: 'importer engine install {name}' first\n")
            status = 1
            continue
        data = read(name, str(installed.python))
        if data is None:
            status = 1
            continue
        path = FOLDER / file_name(backends.serving(name).name, str(installed.version))
        text = render(backends.serving(name).name, str(installed.version), name, data)
        sys.stderr.write(f"{path.name}: {'written' if write({path: text}) else 'unchanged'}\n")
    return status


def read(name: str, python: str) -> dict[str, Any] | None:
    """Return the answer of the engine's parser; ``None``, with its last words printed, where it gave none."""
    server = SERVERS[name]
    command = isolated(str(WORKER), server.package, *server.command, python=python)
    done = launcher.run(command, Purpose.ENGINE, seconds=SECONDS, extra=VARIABLES)
    match = re.search(r"^RESULT (.*)$", done.output, re.MULTILINE)
    if match is None:
        sys.stderr.write(f"arguments: {name} gives none: {done.output.strip()[-300:]}\n")
        return None
    answer: dict[str, Any] = json.loads(match[1])
    if server.package == "vllm":
        answer["conflicts"] = conflicts(python, answer)
    return answer


def conflicts(python: str, data: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Return what vLLM's validators refuse together on every platform that they answer for.

    ``requires``       argument, value, the argument that it requires, values of that one, other ways.
    ``exclusive``      two arguments, each with its value.
    ``of_checkpoint``  quantisations that weights without one do not get.
    """
    with tempfile.TemporaryDirectory(prefix="arguments-") as folder:
        found = [one for name in PLATFORMS if (one := _validated(python, name, data, folder)) is not None]
    if not found:
        return {"requires": [], "exclusive": [], "of_checkpoint": []}
    alone = [[tuple(value) for value in one["alone"]] for one in found]
    requires = {(row[0], row[1]): row for one in found for row in one["requires"]}
    pairs = {(tuple(row[:2]), tuple(row[2:])): row for one in found for row in one["exclusive"]}
    return {
        "requires": [row for value, row in requires.items() if all(value in refused for refused in alone)],
        "exclusive": [
            row
            for pair, row in pairs.items()
            if all(
                row in one["exclusive"] or {*pair} & {*refused}
                for one, refused in zip(found, alone, strict=True)
            )
        ],
        "of_checkpoint": [
            m for m in found[0]["of_checkpoint"] if all(m in one["of_checkpoint"] for one in found)
        ],
    }


def _validated(python: str, platform: str, data: Mapping[str, Any], folder: str) -> dict[str, Any] | None:
    """Return the answer for one platform; ``None`` where the build has no such one."""
    done = launcher.run(
        isolated(str(VALIDATORS), platform, python=python),
        Purpose.ENGINE,
        seconds=2 * SECONDS,
        text=json.dumps(data),
        folder=folder,
        extra={"VLLM_NO_USAGE_STATS": "1", "VLLM_CACHE_ROOT": folder},
    )
    match = re.search(r"^RESULT (.*)$", done.output, re.MULTILINE)
    if match is None:
        sys.stderr.write(f"arguments: no answer for {platform}: {done.output.strip()[-300:]}\n")
        return None
    answer: dict[str, Any] = json.loads(match[1])
    return answer


def render(engine: str, version: str, build: str, data: Mapping[str, Any]) -> str:
    """Return the file's text: one line for each argument, each configuration and all variables."""
    head = {
        "schema": SCHEMA,
        "engine": engine,
        "version": version,
        "source": f"the parser of {build} {version}",
    }
    lines = [f" {json.dumps(k)}: {json.dumps(v)}" for k, v in head.items()]
    for part in ("arguments", "configs"):
        rows = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in data[part].items())
        lines.append(f" {json.dumps(part)}: {{\n{rows}\n }}" if rows else f" {json.dumps(part)}: {{}}")
    for part, rows in data.get("conflicts", {}).items():
        listed = ",\n".join(f"  {json.dumps(row)}" for row in rows)
        lines.append(f" {json.dumps(part)}: [\n{listed}\n ]" if rows else f" {json.dumps(part)}: []")
    return "{\n" + ",\n".join(lines) + "\n}\n"
