"""What generated files tell of each version of an engine: parsers, abilities and sampling values."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import field, fields, replace
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import Any, Literal

from importer import backends
from importer.chat_template.loader import ANY, Loader, Opener
from importer.decisions.decision import PYTHON, RUST, Frontend
from importer.errors import Setting, UsageError
from importer.frozen import frozen
from importer.reasons import Reason, ReasonKind
from importer.signals.engine_capabilities import Abilities, OfLibrary

Kind = Literal["tool", "reasoning"]
KINDS: Mapping[str, Kind] = {"tool_parser": "tool", "reasoning_parser": "reasoning"}  # by option
FOLDER = Path(__file__).with_name("registries")
# The version that 'importer engine install' installs; else the one whose names documents have.
# vLLM's build for processors has versions of its own, and is behind.
PINNED = {
    "vllm": "0.32.0",
    "vllm-cuda": "0.33.0",
    "mlx": "0.32.2",
    "mlx-vlm": "0.7.10",
    "vllm-mlx": "0.6.0",
    "sglang": "0.5.23",
}
# Parsers of vLLM's Rust frontend that read calls and reasoning in one, by the module of their sources.
JOINT = "vllm_parser::unified"
NEAR = 5


class RegistryReason(ReasonKind):
    """Why there is no registry."""

    NO_FRONTEND = "{engine} {version} has no frontend in Rust; these versions have one: {known}"
    UNKNOWN_VERSION = "the parsers of {engine} {version} are not known here, only those of {known}"


@frozen
class EngineParser:
    """A name on the command line of the engine, and its class; ``aliases`` load the same class.

    mlx-lm and mlx-vlm have no classes: their tool parsers are functions (``glm47.parse_tool_call``), and a
    reasoning parser is a pair of markers, ``name`` the opening and ``class_name`` the closing one.
    """

    name: str
    class_name: str
    module: str
    aliases: tuple[str, ...] = ()
    kind: Kind = "tool"


@frozen
class Registry:
    """The parsers of one version. ``source`` names the released file and its sha256.

    ``guesses``  by kind, the parts of a model's id that vLLM's Rust frontend takes a parser by, in its order.
    ``parts``    the digest of the sources that its parsers are made of; empty where they need the engine.
    """

    engine: str
    version: str
    source: Mapping[str, str]
    entries: Mapping[Kind, Mapping[str, EngineParser]]
    guesses: Mapping[Kind, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    parts: str = ""

    @property
    def joint(self) -> frozenset[str]:
        """Return the names that are one parser for both kinds, and started for both or none."""
        return frozenset(n for names in self.entries.values() for n, e in names.items() if e.module == JOINT)

    def guess(self, kind: Kind, model: str) -> str | None:
        """Return the parser that the engine takes by the model's id where it is told none."""
        name = model.lower()
        return next((parser for part, parser in self.guesses.get(kind, ()) if part in name), None)

    def names(self, kind: Kind) -> tuple[str, ...]:
        """Return every name, sorted."""
        return tuple(self.entries[kind])

    def has(self, kind: Kind, name: str) -> bool:
        """Return whether the engine has the name."""
        return name in self.entries[kind]

    def classes(self, kind: Kind) -> dict[str, str]:
        """Return every name with its class: names of one class are interchangeable."""
        return {name: entry.class_name for name, entry in self.entries[kind].items()}

    def class_of(self, kind: Kind, name: str) -> str | None:
        """Return the class of the name; ``None`` for an unknown name."""
        entry = self.entries[kind].get(name)
        return None if entry is None else entry.class_name

    def near(self, kind: Kind, name: str) -> tuple[str, ...]:
        """Return similar names, the nearest first: by letters and digits alone."""
        from importer.signals.name_likeness import plain_name  # of a refusal alone

        spelled = {plain_name(known): known for known in reversed(self.names(kind))}
        plain = plain_name(name)
        inside = [known for text, known in spelled.items() if text in plain or plain in text]
        close = [spelled[text] for text in difflib.get_close_matches(plain, spelled, NEAR, 0.5)]
        return tuple(dict.fromkeys([*close, *sorted(inside)]))[:NEAR] if plain else ()


def versions(engine: str) -> tuple[str, ...]:
    """Return the versions with a registry, the oldest first; none for an engine without parsers."""
    family = backends.serving(engine).name
    names = (path.stem.removeprefix(f"{family}-") for path in FOLDER.glob(f"{family}-[0-9]*.json"))
    return tuple(sorted(names, key=_order))


def frontends(engine: str, version: str | None) -> tuple[Frontend, ...]:
    """Return the frontends of a version that has several, the default one first; else none."""
    several = backends.serving(engine).frontends and version in versions(f"vllm-{RUST}")
    return (PYTHON, RUST) if several else ()


def load(engine: str, version: str | None = None, frontend: Frontend | None = None) -> Registry:
    """Return the registry of a version, by default of the pinned one, and of a frontend of vLLM.

    ``0.32`` is the newest known 0.32. Raises UsageError("bad-value") for a version without a registry, and
    for one without the frontend.
    """
    family = backends.serving(engine).name
    if frontend == RUST:
        return _rust(family, version)
    known = versions(family)
    requested = version or PINNED.get(engine) or PINNED.get(family, "")
    matches = [v for v in known if v == requested or v.startswith(f"{requested}.")]
    if not matches:
        raise UsageError(
            "bad-value",
            setting=Setting.ENGINE_VERSION,
            value=requested,
            problem=Reason(RegistryReason.UNKNOWN_VERSION, engine=engine, version=requested, known=known),
        )
    return _read(family, matches[-1])


def lacking(
    engine: str, version: str | None, key: str, name: str, frontend: Frontend | None = None
) -> Registry | None:
    """Return the registry that lacks the parser under ``key``; ``None`` where the version may have it.

    Without a version it is the newest, and every known version lacks the parser. A version without a registry
    may have any.
    """
    known = versions(engine)
    asked = known if version is None else tuple(one for one in known if one == version)
    rust = RUST if frontend == RUST and frontends(engine, version) else None
    found = [load(engine, one, rust) for one in asked]
    return found[-1] if found and not any(one.has(KINDS[key], name) for one in found) else None


def is_unlisted(engine: str, version: str | None) -> bool:
    """Return whether a version is none of the known ones, and older than the newest of them."""
    known = versions(engine)
    if re.fullmatch(r"\d{1,4}(?:\.\d{1,4}){1,2}", version or "") is None or not known:
        return False
    wanted = str(version)
    named = any(one == wanted or one.startswith(f"{wanted}.") for one in known)
    return not named and _order(wanted) < _order(known[-1])


def _nearest(wanted: str, known: Sequence[str]) -> str:
    """Return the known version with the least distance; the wanted one where none is known."""
    order = _order(wanted)
    return min(
        known,
        key=lambda v: [abs(a - b) for a, b in zip_longest(_order(v), order, fillvalue=0)],
        default=wanted,
    )


def _rust(family: str, version: str | None) -> Registry:
    """Return the registry of the Rust frontend; raises UsageError("bad-value")."""
    known = versions(f"{family}-{RUST}")
    own = load(family, version or (known[-1] if known else None)).version
    if own not in known:
        raise UsageError(
            "bad-value",
            setting=Setting.FRONTEND,
            value=RUST,
            problem=Reason(RegistryReason.NO_FRONTEND, engine=family, version=own, known=known),
        )
    return _read(f"{family}-{RUST}", own)


def parsed(data: Mapping[str, Any]) -> Registry:
    """Return a registry from its file's data."""
    entries: dict[Kind, Mapping[str, EngineParser]] = {
        kind: {
            row["name"]: EngineParser(row["name"], row["class"], row["module"], tuple(row["aliases"]), kind)
            for row in data[kind]
        }
        for kind in KINDS.values()
    }
    rules = [rule for rule in data.get("inference", ()) if "in_id" in rule]
    guesses: dict[Kind, tuple[tuple[str, str], ...]] = {
        kind: tuple((r["in_id"], r["parser"]) for r in rules if r["kind"] == kind) for kind in entries
    }
    return Registry(data["engine"], data["version"], data["source"], entries, guesses, data.get("parts", ""))


@cache
def _read(family: str, version: str) -> Registry:
    return parsed(json.loads((FOLDER / f"{family}-{version}.json").read_text(encoding="utf-8")))


def _order(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))


# Whose chat template each engine takes; tests/engines/test_loaders_engine.py asks the engines themselves.
# vLLM 0.14 to 0.33: ``renderers/hf.py``, ``resolve_chat_template``. mlx-lm 0.31 and 0.32:
# ``tokenizer_utils.load``, without a template ``server.convert_chat``. mlx-vlm 0.7: ``prompt_utils``,
# ``get_chat_template``. vllm-mlx 0.6: ``engine/batched.py``, for a model with other inputs than text.
_TOKENIZER, _EITHER = (Opener.TOKENIZER,), (Opener.PROCESSOR, Opener.TOKENIZER)
LOADERS: Mapping[str, Loader] = {
    "vllm": Loader(tools=_TOKENIZER, plain=_EITHER),
    "mlx": Loader(tools=_TOKENIZER, plain=_TOKENIZER, refuses=False),
    "mlx-vlm": Loader(tools=_EITHER, plain=_EITHER, refuses=False),
    "vllm-mlx": Loader(tools=_EITHER, plain=_EITHER),
}
SCHEMA = 1
CAPABILITIES_FOLDER = Path(__file__).with_name("abilities_of")


def load_capabilities(engine: str, version: str | None = None) -> Abilities:
    """Return the abilities of a version, by default of the pinned one, or under its own name of the version
    next to it; only the names for an engine without a file.
    """
    family = backends.serving(engine).name
    return _read_ability(family, version or PINNED.get(family))


def loader_of(engine: str) -> Loader:
    """Return the loader of the chat template; ``ANY`` for an engine whose loader is not known."""
    return LOADERS.get(backends.serving(engine).name, ANY)


@cache
def _read_ability(family: str, version: str | None) -> Abilities:
    of = _nearest(version or "", _with_abilities(family))
    data: dict[str, Any] = {**_file(f"{family}-{of}"), **_file(f"{family}-{of}-processors")}
    values = {f.name: _plain_capability(f.type, data[f.name]) for f in fields(Abilities) if f.name in data}
    own: dict[str, Any] = {"engine": family, "version": of or None, "loader": loader_of(family)}
    if "libraries" not in data:
        return Abilities(**{**values, **own})
    (name, pin), sighted = data["libraries"].items()
    return replace(_read_ability(name, pin), **own, library=name, sighted=_of_library(*sighted))


@cache
def _with_abilities(family: str) -> tuple[str, ...]:
    names = (
        path.stem.removeprefix(f"{family}-") for path in CAPABILITIES_FOLDER.glob(f"{family}-[0-9]*.json")
    )
    return tuple(name for name in names if "-" not in name)


def _of_library(name: str, version: str) -> OfLibrary:
    able = replace(_read_ability(name, version), library=name)
    return OfLibrary(**{f.name: getattr(able, f.name) for f in fields(OfLibrary)})


def _file(name: str) -> Mapping[str, object]:
    path = CAPABILITIES_FOLDER / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def _plain_capability(kind: object, value: Any) -> Any:
    """Return lists of JSON as the tuples and sets of the type."""
    if isinstance(value, list) and str(kind).startswith("Mapping"):
        return dict.fromkeys(value, 0)  # methods without a least capability
    if isinstance(value, list):
        return frozenset(value) if str(kind).startswith("frozenset") else tuple(value)
    if isinstance(value, dict):
        return {k: tuple(v) if isinstance(v, list) else v for k, v in value.items()}
    return value


OFF = {"top_k": 0, "min_p": 0.0, "repeat_penalty": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0}


def sampling_defaults(document: Mapping[str, object]) -> dict[str, dict[str, object]]:
    """Return value and source for each key of sampling; empty for an engine that is not known here."""
    block = document.get("importer")
    engine = block.get("engine") if isinstance(block, Mapping) else None
    named = engine if isinstance(engine, Mapping) else {}
    backend = document.get("backend") or named.get("name")
    source = " ".join(str(word) for word in (backend, named.get("version")) if word)
    own = backends.of(backend)
    known = {} if own.temperature is None else {"temperature": own.temperature, "top_p": own.top_p, **OFF}
    return {f"parameters.{key}": {"value": value, "source": source} for key, value in known.items()}
