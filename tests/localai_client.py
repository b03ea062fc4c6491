"""A client of LocalAI's model API, written from its documentation alone: what it sends, and what it can read.

Each type is a table of fields: the JSON type, and whether the field may be missing. A Go program decodes
strictly by type, so a field of another type is a failure; one that the table does not have is, too.
"""

from __future__ import annotations

import time
from typing import Any

import httpx

from tests.waiting import LOOK, PATIENCE, FreeTime

Table = dict[str, tuple[type | tuple[type, ...], bool]]  # type, may be missing
NUMBER = (int, float)

OP_STATUS: Table = {
    "deletion": (bool, False), "file_name": (str, False), "error": (str, True), "processed": (bool, False),
    "message": (str, False), "progress": (NUMBER, False), "phase": (str, True), "current_bytes": (int, True),
    "total_bytes": (int, True), "file_size": (str, False), "downloaded_size": (str, False),
    "gallery_element_name": (str, False), "cancelled": (bool, False), "cancellable": (bool, False),
    "nodes": (list, True),
}  # fmt: skip
BEGUN: Table = {"uuid": (str, False), "status": (str, False)}
AMBIGUOUS: Table = {
    "error": (str, False), "detail": (str, False), "modality": (str, False), "candidates": (list, False),
    "hint": (str, False),
}  # fmt: skip
GALLERY: Table = {"url": (str, False), "name": (str, False), "mirrors": (list, True)}
METADATA: Table = {
    "url": (str, True), "name": (str, True), "description": (str, True), "license": (str, True),
    "urls": (list, True), "icon": (str, True), "tags": (list, True), "files": (list, True),
    "size": (str, True), "gallery": (dict, True), "installed": (bool, True), "backend": (str, True),
}  # fmt: skip
KNOWN: Table = {
    "name": (str, False), "modality": (str, False), "auto_detect": (bool, False), "description": (str, True),
    "installed": (bool, False),
}  # fmt: skip
ERROR: Table = {"code": (int, False), "message": (str, False), "type": (str, False)}
# An item of a gallery's index, and the file that an item's url names.
GALLERY_MODEL: Table = {
    **{k: v for k, v in METADATA.items() if k not in ("gallery", "installed", "backend")},
    "last_checked": (str, True), "config_file": (dict, True), "overrides": (dict, True),
    "variants": (list, True),
}  # fmt: skip
MODEL_CONFIG: Table = {
    "name": (str, True), "description": (str, True), "icon": (str, True), "license": (str, True),
    "urls": (list, True), "config_file": (str, True), "files": (list, True), "prompt_templates": (list, True),
}  # fmt: skip
PHASES = {"queued", "resolving", "downloading", "verifying", "committing", "persisting"}


def decoded(data: Any, table: Table) -> dict[str, Any]:
    """The data, if a Go struct of these fields would hold them."""
    assert isinstance(data, dict), data
    assert set(data) <= set(table), set(data) - set(table)
    for name, (kind, optional) in table.items():
        if name not in data:
            assert optional, f"{name} is missing"
            continue
        value = data[name]
        wanted = kind if isinstance(kind, tuple) else (kind,)
        assert isinstance(value, wanted), (name, value)
        assert bool in wanted or not isinstance(value, bool), (name, value)  # in Python a bool is an int
        if optional:
            assert value not in ("", [], {}, 0), f"{name} is empty, and is left out then"
    return data


class LocalAI:
    """The few calls that a person's script makes."""

    def __init__(self, url: str, headers: dict[str, str] | None = None) -> None:
        self._url, self._headers = url, headers or {}

    def ask(self, method: str, path: str, **said: Any) -> httpx.Response:
        """One request; ``path`` may be a whole address."""
        url = path if path.startswith("http") else self._url + path
        headers = {**self._headers, **said.pop("headers", {})}
        said |= {"headers": headers, "timeout": PATIENCE, "trust_env": False, "verify": False}
        return httpx.request(method, url, **said)

    def get(self, path: str, **said: Any) -> httpx.Response:
        return self.ask("GET", path, **said)

    def import_uri(self, uri: str, preferences: Any = None) -> httpx.Response:
        return self.ask("POST", "/models/import-uri", json={"uri": uri, "preferences": preferences})

    def finished(self, begun: dict[str, Any]) -> dict[str, Any]:
        """Ask the address in ``status`` until it is processed; progress never goes back."""
        last, clock = 0.0, FreeTime()
        while True:
            found = decoded(self.get(begun["status"]).json(), OP_STATUS)
            if found["processed"]:
                return found
            assert found["phase"] in PHASES
            assert found["progress"] >= last
            last = found["progress"]
            assert not clock.over, found
            time.sleep(LOOK)

    @staticmethod
    def succeeded(status: dict[str, Any]) -> bool:
        """As LocalAI's own page tells a success."""
        return bool(status["progress"] == 100 and status["processed"] and status["message"] == "completed")

    def installed_from(self, items: list[dict[str, Any]], name: str) -> dict[str, Any]:
        """What its installer would write for ``importer@NAME``: the overrides in the configuration."""
        item = next(i for i in items if i["name"] == name)
        assert "url" not in item  # an address within a private network is refused before it is asked
        return {**item["config_file"], "name": name, **item.get("overrides", {})}
