"""The templates that vLLM ships for models whose own hides the tools.

The registry has a name, a hash and the form of a call for each; the texts stay in vLLM's sources. The same
release gives the same bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gen_defaults.place import ROOT, write
from importer.chat_template.analyze import analyze
from importer.chat_template.find import Template
from importer.chat_template.render import Renderer, Renders
from importer.chat_template.shipped import FILE, shape_of
from importer.chat_template.vocabulary import Vocabulary
from importer.wheels.index import Index, IndexFailure, Release, order

TARGET = ROOT / "importer" / "data" / FILE
ENGINE, PACKAGE = "vllm", "vllm"
FOLDER = "examples"  # of the sources, and of the folder that vLLM's images hold
PREFIX = "tool_chat_template_"
TOKENS = Vocabulary(named={"bos_token": "<s>", "eos_token": "</s>"})


def options(_: argparse.ArgumentParser) -> None:
    """Add none."""


def main(_: argparse.Namespace) -> int:
    """Write the registry; returns the exit status."""
    index = Index()
    try:
        release = newest(index)
        texts = index.part(release, is_needed, FOLDER).texts
        with Renderer() as renderer:
            text = render(release, list(rows(texts, renderer)))
        sys.stderr.write(f"{TARGET.name}: {'written' if write({TARGET: text}) else 'unchanged'}\n")
    except (IndexFailure, OSError) as failure:
        sys.stderr.write(f"shipped: {failure}\n")
        return 1
    return 0


def newest(index: Index) -> Release:
    """Return the newest release with its sources. Raises IndexFailure."""
    releases = index.releases(PACKAGE)
    return releases[max(releases, key=order)]


def is_needed(path: str) -> bool:
    """Return whether the file is a template for tools."""
    place = Path(path)
    return str(place.parent) == FOLDER and place.name.startswith(PREFIX) and place.suffix == ".jinja"


def rows(texts: Mapping[str, str], renderer: Renders) -> Iterator[dict[str, str]]:
    """Yield a row for each template that shows tools and writes a call."""
    for path, text in sorted(texts.items()):
        analysis = analyze(Template(text, path), TOKENS, renderer)
        one_call = next((s for s in analysis.samples if s.case == "one-call"), None)
        if (
            one_call is not None
            and analysis.request_coverage is not None
            and analysis.request_coverage.tools == "shown"
        ):
            digest = hashlib.sha256(text.encode()).hexdigest()
            yield {"path": path, "sha256": digest, **shape_of(one_call)}


def render(release: Release, listed: list[dict[str, str]]) -> str:
    """Return the registry as text; raises IndexFailure without any template: the sources have moved."""
    if not listed:
        raise IndexFailure(f"{release.file} has no template for tools where they were looked for")
    source = {"package": release.package, "file": release.file, "sha256": release.sha256}
    data: dict[str, Any] = {ENGINE: {"source": source, "templates": listed}}
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"
