"""Code of a repository: its files with their hashes, and whether an engine starts without it.

Nothing here runs or reads the code; an engine runs it only with the user's consent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from importer import backends
from importer.frozen import frozen
from importer.hub.snapshot import Snapshot
from importer.reasons import Reason
from importer.signals.architecture import FILE, architectures, config_of, model_type
from importer.signals.engine_capabilities import Abilities
from importer.signals.evidence import Evidence, Rule, warning
from importer.signals.reasons import CodeReason

KEY = "code"
PLACES = (FILE, "tokenizer_config.json", "processor_config.json", "preprocessor_config.json")
# ``module.Class``, or ``owner/name--module.Class`` for the code of another repository.
CLASS = re.compile(r"(?:(?P<repo>[\w.-]+/[\w.-]+)--)?(?P<module>\w+(?:\.\w+)*)\.\w+", re.ASCII)
MODULE = re.compile(r"[\w-]+\.py", re.ASCII)


@frozen
class Named:
    """A class to load: its part (``AutoConfig`` …), its module, its repository and the file that names it."""

    part: str
    module: str
    repo: str | None
    source: str


def named(snapshot: Snapshot) -> list[Named]:
    """Return every class under ``auto_map``, and the module that mlx-lm loads by ``model_file``."""
    classes = [n for place in PLACES for n in _auto_map(snapshot, place)]
    module = config_of(snapshot).get("model_file")
    if isinstance(module, str) and MODULE.fullmatch(module):
        classes.append(Named("model_file", module.removesuffix(".py"), None, FILE))
    return list(dict.fromkeys(classes))


def _auto_map(snapshot: Snapshot, place: str) -> Iterator[Named]:
    settings = config_of(snapshot) if place == FILE else snapshot.json(place)
    auto_map = settings.get("auto_map")
    for part, classes in auto_map.items() if isinstance(auto_map, Mapping) else ():
        for text in classes if isinstance(classes, list) else [classes]:
            match = CLASS.fullmatch(text) if isinstance(text, str) else None
            if match:
                yield Named(str(part), match["module"].replace(".", "/"), match["repo"], place)


def files(snapshot: Snapshot, classes: list[Named]) -> dict[str, str | None]:
    """Return the files of the classes and the files beside them, with their hashes."""
    own = [f"{n.module}.py" for n in classes if n.repo is None]
    listed = {f.path: f.hash for f in snapshot.files if f.path.endswith(".py")}
    folders = {path.rpartition("/")[0] for path in own}
    beside = sorted(p for p in listed if p.rpartition("/")[0] in folders)
    return {path: listed.get(path) for path in dict.fromkeys([*own, *beside])}


def evidence(snapshot: Snapshot, able: Abilities) -> list[Evidence]:
    """Return the files under ``code``, with their repositories and whether the engine needs them."""
    classes = named(snapshot)
    if not classes:
        return []
    listed = files(snapshot, classes)
    places = dict.fromkeys(n.source for n in classes)
    parts = tuple(dict.fromkeys(n.part for n in classes))
    listing = Reason(CodeReason.NAMED, places=tuple(places), parts=parts)
    repos = tuple(dict.fromkeys(n.repo for n in classes if n.repo is not None))
    elsewhere = [warning(Reason(CodeReason.ELSEWHERE, repos=repos))] if repos else []
    reasons = [listing, *elsewhere, need(snapshot, able, classes)]
    return [Evidence(Rule.CONFIG, KEY, listed, next(iter(places)), reason) for reason in reasons]


def need(snapshot: Snapshot, able: Abilities, classes: list[Named]) -> Reason:
    """Return the reason why the engine needs the code, or starts without it."""
    if backends.of(able.engine).on_apple:
        parts = [n.part for n in classes if n.part in ("model_file", "AutoTokenizer")]
        type_name = model_type(snapshot)
        own = type_name is not None and able.remapped.get(type_name, type_name) in able.model_types
        if "model_file" in parts or not own:
            return Reason(CodeReason.NEEDED, engine=able.label)
        return Reason(CodeReason.NOT_NEEDED, engine=able.label)
    if not able.model_types:
        return Reason(CodeReason.NOT_KNOWN, engine=able.engine or able.label)
    kind = CodeReason.NEEDED if _lacks(snapshot, able, classes) else CodeReason.NOT_NEEDED
    return Reason(kind, engine=able.label)


def _lacks(snapshot: Snapshot, able: Abilities, classes: list[Named]) -> bool:
    """Return whether the engine has no configuration, model or tokenizer of its own for a class."""
    type_name, parts = model_type(snapshot), {n.part for n in classes}
    served = any(a in able.architectures for a in architectures(snapshot))
    return (
        ("AutoConfig" in parts and type_name not in able.model_types)
        or (not served and any(p.startswith("AutoModel") for p in parts))
        or ("AutoTokenizer" in parts and type_name not in able.tokenizer_types)
    )
