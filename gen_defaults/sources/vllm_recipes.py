"""The kinds of nodes of vLLM's recipes, of a local checkout of vllm-project/recipes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from gen_defaults.sources.outside import from_yaml
from gen_defaults.sources.request import SourceAnswer, SourceRequest, rendered
from importer.exports.vllm_recipe import FILE
from importer.wheels.archive import LARGEST
from importer.wheels.index import IndexFailure

TAXONOMY = "taxonomy.yaml"
COMMIT = re.compile(r"[0-9a-f]{40}")


def read(request: SourceRequest) -> SourceAnswer:
    """Return the number of cards of each kind of node. Raises IndexFailure."""
    if request.recipes is None:
        raise IndexFailure("vLLM's sdist has no kinds of nodes; add --recipes with a checkout")
    place = str(request.recipes)
    profiles = from_yaml(_text(request.recipes / TAXONOMY), TAXONOMY, place).get("hardware_profiles")
    if not isinstance(profiles, Mapping) or not profiles:
        raise IndexFailure(f"{place}: {TAXONOMY} has no hardware_profiles")
    nodes = {
        str(name): {"cards": row.get("gpu_count", 1)}
        for name, row in profiles.items()
        if isinstance(row, Mapping)
    }
    commit = _commit(request.recipes / ".git")
    head = {"repository": "vllm-project/recipes", **({"commit": commit} if commit else {})}
    table = request.place.root / "importer" / "data" / FILE
    return SourceAnswer({table: rendered({"source": head}, {"hardware": nodes})})


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise IndexFailure(f"{path} is larger than {LARGEST >> 20} MiB")
        return content.decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise IndexFailure(f"{path} cannot be read: {error}") from None


def _commit(git: Path) -> str | None:
    """Return the commit of a checkout's HEAD, from its files; ``None`` where these have none."""
    try:
        head = (git / "HEAD").read_text("utf-8").strip()
        if head.startswith("ref: "):
            head = (git / head.removeprefix("ref: ")).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return head if COMMIT.fullmatch(head) else None
