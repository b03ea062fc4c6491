"""Give the README of a release absolute links, for PyPI shows no other file of it (a hook of hatchling)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

RELATIVE = re.compile(r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?!https?:|#)(?P<path>[^)\s]+)\)")


def absolute(text: str, address: str, version: str) -> str:
    """Return the text with links to the files of this version."""

    def link(match: re.Match[str]) -> str:
        image, path = match["image"], match["path"]
        view = "raw" if image else "blob"
        return f"{image}[{match['text']}]({address}/{view}/v{version}/{path})"

    return RELATIVE.sub(link, text)


class PypiReadme(MetadataHookInterface):
    """Hatchling's hook: sets ``readme`` and ``urls``, from the address of the repository."""

    def update(self, metadata: dict[str, Any]) -> None:
        address = str(self.config["address"])
        metadata["urls"] = {
            "Source": address,
            "Documentation": f"{address}/tree/main/docs",
            "Changelog": f"{address}/blob/main/CHANGELOG.md",
            "Issues": f"{address}/issues",
        }
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        text = absolute(text, address, metadata["version"])
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
