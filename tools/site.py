"""Add the pages that lie at the top of the repository to the site, with their links (a hook of mkdocs)."""

from __future__ import annotations

import re
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


def from_top(match: re.Match[str]) -> str:
    """Return a link's target on the site, for a page at the top of the repository."""
    return PAGES.get(match.group(), match.group().removeprefix("docs/"))


def from_docs(match: re.Match[str]) -> str:
    """Return the same for a page of ``docs/``."""
    return PAGES.get(match.group().removeprefix("../"), match.group())


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
