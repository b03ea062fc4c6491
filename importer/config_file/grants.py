"""Grants of a document to an engine, beyond a model of the Hub: code, folders, hosts, second models."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, NamedTuple

from importer.config_file import check, field_paths
from importer.hub.reference import is_directory
from importer.reasons import Reason

CODE = "trust_remote_code"
SPECULATION = "speculative_config"  # of ``engine_args``: its ``model`` is a second repository
# Steps of names of arguments and variables by which engines of several machines find one another.
ADDRESSES = frozenset({"addr", "addrs", "address", "addresses", "host", "hosts", "ip", "ips"})
APART = str.maketrans("_.-", "   ")
OF_ENGINE = ("engine_args", "env")
HOSTS = "hostfile"  # of ``engine_args``: mlx.launch starts processes on the hosts that it lists


class GrantReason(StrEnum):
    """What is granted."""

    CODE = "code"
    FOLDER = "folder"
    HOSTS = "hosts"
    ADDRESS = "address"
    DRAFTER = "drafter"


class Grant(NamedTuple):
    """One permission; ``subject`` is the model whose code runs, the folder, or the file of hosts."""

    kind: GrantReason
    subject: str

    @property
    def reason(self) -> Reason:
        """Return what it allows, for sentences."""
        return Reason(self.kind, subject=self.subject)


def grants(data: Mapping[str, Any]) -> frozenset[Grant]:
    """Return what the data of a document grant; another model or commit is another grant."""
    flags = check.combined(check.flag(o) for o in field_paths.of(data) if o.key.startswith("--"))
    moved = {**data, "flags": flags}  # they set what ``engine_args`` sets
    return frozenset((*_code(moved), *_folders(data), *_drafters(moved), *_addresses(data)))


def set_values(values: Mapping[str, Any]) -> frozenset[Grant]:
    """Return what values grant that are to be set by their dotted paths."""
    return frozenset((*_code(values), *_drafters(values), *_addresses(values)))


def _code(data: Mapping[str, Any]) -> Iterator[Grant]:
    for key, value in _values(data):
        if key == CODE and value is not False:
            yield Grant(GrantReason.CODE, _subject(data))
        elif key == HOSTS:
            yield Grant(GrantReason.HOSTS, str(value))


def _addresses(data: Mapping[str, Any]) -> Iterator[Grant]:
    """Yield the addresses that the engine binds or connects to for its other processes."""
    for key, value in (
        *_pathed(data, ""),
        *((f"engine_args.{o.key}", o.value) for o in field_paths.of(data)),
    ):
        head, _, name = key.partition(".")
        named = name or head
        known = head in OF_ENGINE or head not in field_paths.TOP_LEVEL  # alone it is one of ``engine_args``
        if known and isinstance(value, str) and ADDRESSES & {*named.lower().translate(APART).split()}:
            yield Grant(GrantReason.ADDRESS, f"{named.lstrip('-')}={value}")


def _pathed(data: Mapping[str, Any], head: str) -> Iterator[tuple[str, Any]]:
    """Yield every value with the path of its key, those of maps in lists, too."""
    for key, value in data.items():
        for inner in _inside(value):
            yield from _pathed(inner, f"{head}{key}.")
        for item in value if isinstance(value, list) else [value]:
            if not isinstance(item, Mapping | list):
                yield f"{head}{key}", item


def _inside(value: object) -> Iterator[Mapping[str, Any]]:
    """Yield the map that a value is, or the maps of its lists."""
    if isinstance(value, Mapping):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _inside(item)


def _drafters(data: Mapping[str, Any]) -> Iterator[Grant]:
    """Yield second models that draft, with their commits: under ``speculative_config`` at any place."""
    for key, value in data.items():
        last = str(key).rpartition(".")[2]
        if last == SPECULATION and isinstance(value, Mapping) and value.get("model") is not None:
            named = (str(value[k]) for k in ("model", "revision") if value.get(k) is not None)
            yield Grant(_kind_of(str(value["model"])), ", ".join(named))
        yield from (grant for inner in _inside(value) for grant in _drafters(inner))
        if str(key).endswith(f"{SPECULATION}.model") and value is not None:
            yield Grant(_kind_of(str(value)), str(value))


def _kind_of(model: str) -> GrantReason:
    return GrantReason.FOLDER if is_directory(model) else GrantReason.DRAFTER


def _subject(data: Mapping[str, Any]) -> str:
    """Return the model and its commit, by all their names."""
    block = data.get("importer")
    revision = block.get("revision") if isinstance(block, Mapping) else None
    return ", ".join(dict.fromkeys([*_model(data), *([str(revision)] if revision else [])])) or "any"


def _values(data: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield every value by the last step of its key, at any place: no engine has these two elsewhere."""
    for key, value in data.items():
        yield from (pair for inner in _inside(value) for pair in _values(inner))
        if value is not None and not isinstance(value, Mapping):
            yield key.rpartition(".")[2].replace("-", "_"), value


def _folders(data: Mapping[str, Any]) -> Iterator[Grant]:
    """Yield the folders of this disk that the data name; a name without a slash is one for
    ``parameters.model``.
    """
    for name in _model(data):
        if is_directory(name) or "/" not in name:
            yield Grant(GrantReason.FOLDER, name)


def _model(data: Mapping[str, Any]) -> Iterator[str]:
    """Yield what names the model."""
    block, parameters = data.get("importer"), data.get("parameters")
    named = [parameters.get("model")] if isinstance(parameters, Mapping) else []
    named += [block.get(key) for key in ("model_id", "reference")] if isinstance(block, Mapping) else []
    yield from (str(name) for name in named if name)
