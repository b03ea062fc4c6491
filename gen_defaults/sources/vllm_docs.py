"""The parsers that vLLM's own recipes and docs recommend, from its newest sdist, read no further than
needed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from gen_defaults import recipes
from gen_defaults.place import load
from gen_defaults.sources.outside import from_yaml
from gen_defaults.sources.request import SourceAnswer, SourceRequest, named, rendered
from importer.wheels.index import IndexFailure

NAME = "vllm-docs"
PACKAGE = "vllm"
RECIPES = "recipes/models/"
TOOLS, REASONING = "docs/features/tool_calling.md", "docs/features/reasoning_outputs.md"
LAST = "recipes"  # the folder behind which nothing is needed
PAGES = ("recipes", "tools", "reasoning")
MODEL = re.compile(r"`([A-Za-z0-9][\w.-]*/[\w.-]+)`")
LINK = re.compile(r"https://huggingface\.co/([A-Za-z0-9][\w.-]*/[\w.-]+)\)")
OWN = re.compile(r"\(`([a-z0-9_]+)`\)")
NAMED = re.compile(r"`([a-z0-9_.-]+)`")


def read(request: SourceRequest) -> SourceAnswer:
    """Return every recipe and the two pages. Raises IndexFailure."""
    path = request.place.upstream(NAME)
    before = load(path)
    release = request.newest(PACKAGE, before.get("source", {}), sdist=True)
    archive = request.index.part(release, is_needed, LAST)
    found = _recipes(archive.texts, release.file)
    new = Counter(name for recipe in found.values() for name in recipes.new_fields(recipe))
    lists: dict[str, Mapping[str, Any]] = {
        "recipes": {model: recipes.parsers(recipe) for model, recipe in found.items()},
        "served": {model: row for model, recipe in found.items() if (row := recipes.served(recipe))},
        "variants": dict(sorted(_of_variants(found))),
        "new_fields": dict(sorted(new.items())),
        "tools": dict(sorted(tools(archive.texts.get(TOOLS, "")))),
        "reasoning": dict(sorted(reasoning(archive.texts.get(REASONING, "")))),
    }
    # Recipes came with later versions: only where there were some they may not be gone.
    missing = [p for p in PAGES if not lists[p] and (p != "recipes" or before.get(p))]
    if missing:
        raise IndexFailure(f"{release.file} has no {' and '.join(missing)} table where it was looked for")
    return SourceAnswer({path: rendered({"source": named(release, archive.digest)}, lists)})


def is_needed(path: str) -> bool:
    """Return whether the file is needed."""
    return path in {TOOLS, REASONING} or (path.startswith(RECIPES) and path.endswith(".yaml"))


def _recipes(texts: Mapping[str, str], file: str) -> dict[str, dict[str, Any]]:
    """Return every recipe as data, by model."""
    return {
        path.removeprefix(RECIPES).removesuffix(".yaml"): from_yaml(text, path, file)
        for path, text in sorted(texts.items())
        if path.startswith(RECIPES)
    }


def _of_variants(found: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield each variant without a recipe of its own, with the recipe that serves it."""
    for model, recipe in found.items():
        yield from ((one, {"recipe": model}) for one in recipes.variants(recipe, model) if one not in found)


def tools(page: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield each model that a section lists, with the parser of its line, else of the section's flags."""
    for section in re.split(r"^#{2,4} ", page, flags=re.MULTILINE)[1:]:
        names = set(re.findall(rf"{recipes.PARSERS['tool_parser']} ([\w-]+)", section))
        for line in section.splitlines() if len(names) == 1 else ():
            if line.lstrip().startswith(("*", "-")):
                own = OWN.search(line)
                name = own[1] if own else next(iter(names))
                yield from ((model, {"tool_parser": name}) for model in MODEL.findall(line))


def reasoning(page: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield each row of the table of models that links a model."""
    for line in page.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        link, name = (LINK.search(cells[0]), NAMED.fullmatch(cells[1])) if len(cells) > 1 else (None, None)
        if link and name:
            yield link[1], {"reasoning_parser": name[1]}
