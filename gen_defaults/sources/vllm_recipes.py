"""The facts of vLLM's recipes: of its newest sdist, or of a local checkout of vllm-project/recipes.

An sdist has the recipes alone. Hardware profiles and strategies come from a checkout, and stay until another
one is given.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from gen_defaults import recipe_facts
from gen_defaults.place import load
from gen_defaults.recipe_book import NAME
from gen_defaults.sources.outside import from_yaml
from gen_defaults.sources.request import SourceAnswer, SourceRequest, named, rendered
from importer.exports.vllm_recipe import FILE
from importer.wheels.archive import LARGEST
from importer.wheels.index import IndexFailure

PACKAGE = "vllm"
FOLDER = "recipes/"  # of the sdist
MODELS, STRATEGIES, TAXONOMY = "models/", "strategies/", "taxonomy.yaml"
COMMIT = re.compile(r"[0-9a-f]{40}")


def read(request: SourceRequest) -> SourceAnswer:
    """Return the facts of every recipe. Raises IndexFailure."""
    path = request.place.upstream(NAME)
    before = load(path)
    if request.recipes is not None:
        texts = dict(_texts(request.recipes))
        head = _named(request.recipes, texts)
        vocabulary = head if TAXONOMY in texts else before.get("vocabulary", {})
        place = str(request.recipes)
    else:
        release = request.newest(PACKAGE, before.get("source", {}), sdist=True)
        archive = request.index.part(release, _of_sdist, FOLDER.strip("/"))
        texts = {name.removeprefix(FOLDER): text for name, text in archive.texts.items()}
        head, vocabulary = named(release, archive.digest), before.get("vocabulary", {})
        place = release.file
    lists = {"recipes": _recipes(texts, place), **_vocabulary(texts, place, before)}
    if not lists["recipes"]:
        raise IndexFailure(f"{place} has no recipes under {MODELS}")
    nodes = {name: {"cards": row.get("gpu_count", 1)} for name, row in lists["hardware"].items()}
    table = request.place.root / "importer" / "data" / FILE
    return SourceAnswer(
        {
            path: rendered({"source": head, "vocabulary": vocabulary}, lists),
            table: rendered({"source": vocabulary}, {"hardware": nodes}),
        }
    )


def _of_sdist(path: str) -> bool:
    return path.startswith(FOLDER + MODELS) and path.endswith(".yaml")


def _recipes(texts: Mapping[str, str], place: str) -> dict[str, dict[str, Any]]:
    """Return the facts of every recipe by its path below ``models``, without those of pictures and sound."""
    found = {
        path.removeprefix(MODELS).removesuffix(".yaml"): recipe_facts.of_recipe(from_yaml(text, path, place))
        for path, text in sorted(texts.items())
        if path.startswith(MODELS)
    }
    return {name: facts for name, facts in found.items() if "omni" not in facts}


def _vocabulary(texts: Mapping[str, str], place: str, before: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return hardware profiles and strategies; the noted ones where the texts have none."""
    if TAXONOMY not in texts:
        return {key: before.get(key, {}) for key in ("hardware", "strategies")}
    profiles = from_yaml(texts[TAXONOMY], TAXONOMY, place).get("hardware_profiles")
    if not isinstance(profiles, Mapping) or not profiles:
        raise IndexFailure(f"{place}: {TAXONOMY} has no hardware_profiles")
    strategies = {
        Path(path).stem: recipe_facts.of_strategy(from_yaml(text, path, place))
        for path, text in sorted(texts.items())
        if path.startswith(STRATEGIES)
    }
    return {
        "hardware": {
            str(k): recipe_facts.of_profile(v) for k, v in profiles.items() if isinstance(v, Mapping)
        },
        "strategies": strategies,
    }


def _texts(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the recipes, the strategies and the taxonomy of a checkout. Raises IndexFailure."""
    paths = [folder / TAXONOMY, *folder.glob(f"{STRATEGIES}*.yaml"), *folder.glob(f"{MODELS}*/*.yaml")]
    for path in sorted(p for p in paths if p.is_file() and not p.is_symlink()):
        try:
            with path.open("rb") as file:
                content = file.read(LARGEST + 1)
            if len(content) > LARGEST:
                raise IndexFailure(f"{path} is larger than {LARGEST >> 20} MiB")
            yield path.relative_to(folder).as_posix(), content.decode("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise IndexFailure(f"{path} cannot be read: {error}") from None


def _named(folder: Path, texts: Mapping[str, str]) -> dict[str, str]:
    """Return a checkout as the file names it: its commit, where git has one, and one digest of all texts."""
    digest = hashlib.sha256()
    for path, text in sorted(texts.items()):
        digest.update(f"{path}\0{text}\0".encode())
    commit = _commit(folder / ".git")
    return {
        "repository": "vllm-project/recipes",
        **({"commit": commit} if commit else {}),
        "read": digest.hexdigest(),
    }


def _commit(git: Path) -> str | None:
    """Return the commit of a checkout's HEAD, from its files; ``None`` where these have none."""
    try:
        head = (git / "HEAD").read_text("utf-8").strip()
        if head.startswith("ref: "):
            head = (git / head.removeprefix("ref: ")).read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return head if COMMIT.fullmatch(head) else None
