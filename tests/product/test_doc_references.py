"""Every path, module, test and key of a document's block that a page names in backticks is there."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from fnmatch import fnmatch
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from importer.cli.project import FILE as PROJECT
from importer.document.schema import load
from importer.engines import ENGINES
from importer.exports import FORMATS as EXPORTS
from importer.reports import FORMATS as RENDERERS
from importer.validation.probes import BY_NAME as PROBES

ROOT = Path(__file__).resolve().parents[2]
TOPS = "importer|tests|docs|tools|benchmarks|gen_defaults|deploy"
QUOTED = re.compile(r"`([^`\n]+)`")
PATH = re.compile(rf"(?:{TOPS})/[\w./*-]+(?:::\w+)*")
MODULE = re.compile(rf"(?:{TOPS})(?:\.\w+)+")
NAMES = re.compile(rf"`(\w+)`(?:,? (?:and|or) `(\w+)`)? (?:of|in)\s`((?:{TOPS})/[\w/.]+\.py)`")
FILE = re.compile(r"\w+\.py(?:::\w+)*")
BUILT = "importer/service/web/built/"  # by ``make page``


@cache
def tracked() -> tuple[str, ...]:
    """Every file of the repository that git does not ignore."""
    done = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return tuple(done.stdout.splitlines())


GROUPS = {
    f"importer.{registry._group}" for registry in (ENGINES, EXPORTS, PROBES, RENDERERS)
}  # of entry points
BLOCK = load("document")["properties"]["importer"]["properties"]
PAGES = [name for name in tracked() if name.endswith(".md") and name != "CHANGELOG.md"]


def references(page: str) -> Iterator[str]:
    """The words of a page in backticks that name a file, a module or a test of the repository."""
    for text in QUOTED.findall((ROOT / page).read_text(encoding="utf-8")):
        for word in text.split():
            if any(pattern.fullmatch(word) for pattern in (PATH, MODULE, FILE)):
                yield word


def is_there(word: str) -> bool:
    """Whether a reference leads to a tracked file, a folder of some, or a name of a module."""
    name, *below = word.split("::")
    if name == PROJECT:  # of a user
        return True
    if MODULE.fullmatch(word) and not PATH.fullmatch(word) and not FILE.fullmatch(word):
        return word in GROUPS or is_module(word) or word.split(".")[1] in BLOCK
    if name.startswith(BUILT):
        return True
    place = name.rstrip("/")
    files = [
        f for f in tracked() if fnmatch(f, place) or f.startswith(f"{place}/") or f.endswith(f"/{place}")
    ]
    return bool(files) and all(
        any(re.search(rf"\b(?:def|class) {one}\b", (ROOT / f).read_text(encoding="utf-8")) for f in files)
        for one in below
    )


def is_module(word: str) -> bool:
    """Whether a dotted name is a module, or a name in one."""
    if find_spec(word.partition(".")[0]) is None:
        return False
    try:
        import_module(word)
    except ModuleNotFoundError:
        module, _, name = word.rpartition(".")
        try:
            return hasattr(import_module(module), name)
        except ModuleNotFoundError:
            return False
    return True


@pytest.mark.parametrize("page", PAGES)
def test_what_a_page_names_is_there(page: str) -> None:
    assert [word for word in references(page) if not is_there(word)] == []


@pytest.mark.parametrize("page", PAGES)
def test_a_name_that_a_page_places_in_a_file_is_in_it(page: str) -> None:
    for *names, file in NAMES.findall((ROOT / page).read_text(encoding="utf-8")):
        text = (ROOT / file).read_text(encoding="utf-8")
        assert [name for name in names if name and not re.search(rf"\b{name}\b", text)] == [], file


def test_what_is_gone_is_seen() -> None:
    assert is_there("tests/product/test_doc_references.py::test_what_is_gone_is_seen")
    assert is_there("importer.cli.main.run")
    gone = (
        "importer/cli/approving.py",
        "importer.cli.approving",
        "importer.cli.main.approve",
        "test_gone.py",
    )
    assert not [word for word in (*gone, "test_doc_references.py::test_gone") if is_there(word)]
    assert len({word for page in PAGES for word in references(page)}) > 100
