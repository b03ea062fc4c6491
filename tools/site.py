"""Add the pages that lie at the top of the repository to the site, with their links (a hook of mkdocs)."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
# A file at the top of the repository, and its page of the site.
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "SECURITY.md": "security-policy.md",
}
TARGET = re.compile(r"(?<=\]\()[^)\s#]+")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
SOURCE = PROJECT["tool"]["hatch"]["metadata"]["hooks"]["custom"]["address"]


def target(path: str) -> str:
    """Return where a path of the repository leads: a page of the site, or the file at its source."""
    if path in PAGES or path == "LICENSE" or path.startswith(("http:", "https:")):
        return PAGES.get(path, path)
    return path.removeprefix("docs/") if path.startswith("docs/") else f"{SOURCE}/blob/main/{path}"


def from_top(match: re.Match[str]) -> str:
    """Return a link's target on the site, for a page at the top of the repository."""
    return target(match.group())


def from_docs(match: re.Match[str]) -> str:
    """Return the same for a page of ``docs/``."""
    above = match.group().removeprefix("../")
    return match.group() if above == match.group() else target(above)


def on_files(files: Files, config: Any) -> Files:
    """Add the pages of ``PAGES`` and the licence."""
    for name, page in PAGES.items():
        text = TARGET.sub(from_top, (ROOT / name).read_text(encoding="utf-8"))
        files.append(File.generated(config, page, content=text))
    files.append(File.generated(config, "LICENSE", abs_src_path=str(ROOT / "LICENSE")))
    return files


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Lead the links of ``docs/`` to the top of the repository to the pages of the site."""
    return TARGET.sub(from_docs, markdown)
