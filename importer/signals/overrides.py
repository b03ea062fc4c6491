"""The config that vLLM reads: the repository's with ``hf_overrides``, and what these lack to take effect.

vLLM sets a value that is a map in place of the present one, and merges a part such as ``text_config``
(``_apply_dict_overrides`` in ``config/model.py``). A model with towers reads its rotary embedding in that
part alone. From 0.32 on, YaRN's factor no longer lengthens ``max_position_embeddings``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import replace
from typing import Any

from importer import backends
from importer.frozen import frozen
from importer.hub.snapshot import Snapshot, mapping
from importer.reasons import Reason
from importer.signals import context
from importer.signals.architecture import FILE, TEXT_CONFIGS, config_of, text_config
from importer.signals.engine_capabilities import Abilities
from importer.signals.evidence import Evidence, Rule, warning
from importer.signals.reasons import LengthReason

KEY = "engine_args.hf_overrides"
ROPES = ("rope_parameters", "rope_scaling")  # one setting under two names
POSITIONS = "max_position_embeddings"
Added = dict[tuple[str, ...], Any]


@frozen
class Overrides:
    """Settings with complete overrides, the repository as the engine reads it, and the reasons."""

    settings: Mapping[str, object]
    snapshot: Snapshot
    evidence: tuple[Evidence, ...] = ()


def given(settings: Mapping[str, object]) -> dict[str, Any]:
    """Return the overrides of settings: a map under ``KEY`` or in ``engine_args``, and dotted keys in it."""
    held = settings.get(KEY) or mapping(settings.get("engine_args")).get("hf_overrides")
    found: dict[str, Any] = deepcopy(dict(held)) if isinstance(held, Mapping) else {}
    for key, value in settings.items():
        if key.startswith(f"{KEY}."):
            _put(found, tuple(key.removeprefix(f"{KEY}.").split(".")), value)
    return found


def overridden(snapshot: Snapshot, overrides: Mapping[str, Any]) -> Snapshot:
    """Return the repository with these overrides in its config."""
    if not overrides:
        return snapshot
    config = merged(config_of(snapshot), overrides)
    return replace(snapshot, texts={**snapshot.texts, FILE: json.dumps(config)})


def merged(config: Mapping[str, object], changed: Mapping[str, object]) -> dict[str, object]:
    """Return a config with other values; those of a part such as ``text_config`` are merged, as in vLLM."""
    found = dict(config)
    for key, value in changed.items():
        inner = found.get(key)
        if key.endswith("_config") and isinstance(inner, Mapping) and isinstance(value, Mapping):
            found[key] = merged(inner, value)
        else:
            for other in ROPES if key in ROPES else ():
                found.pop(other, None)
            found[key] = value
    return found


def complete(snapshot: Snapshot, settings: Mapping[str, object], able: Abilities) -> Overrides:
    """Return the settings with the overrides that the version needs beside those of a person."""
    own = given(settings) if backends.of(able.engine).adapts else {}
    if not own:
        return Overrides(settings, snapshot)
    added, reasons = _added(snapshot, own, able)
    whole = deepcopy(own)
    for path, value in added.items():
        _put(whole, path, value)
    effective = overridden(snapshot, whole)
    if (unscaled := _unscaled(snapshot, whole, able)) is not None:
        reasons.append(unscaled)
    named = isinstance(settings.get(KEY), Mapping)
    more = {KEY: whole} if named else {f"{KEY}.{'.'.join(path)}": value for path, value in added.items()}
    completed = {**settings, **(more if added else {})}
    key = KEY if named else next((k for k in completed if k.startswith(f"{KEY}.")), KEY)
    facts = (Evidence(Rule.ENGINE, key, completed.get(key), FILE, warning(reason)) for reason in reasons)
    return Overrides(completed, effective, tuple(facts))


def _added(snapshot: Snapshot, own: Mapping[str, Any], able: Abilities) -> tuple[Added, list[Reason]]:
    """Return the overrides that take effect of those of a person, by their paths, and why each is needed."""
    config, added, reasons = config_of(snapshot), Added(), list[Reason]()
    part = next((k for k in TEXT_CONFIGS if isinstance(config.get(k), Mapping) and config[k]), None)
    inner = mapping(own.get(part)) if part is not None else own
    at = () if part is None else (part,)
    rope = next((k for k in ROPES if isinstance(inner.get(k), Mapping)), None)
    above = next((k for k in ROPES if isinstance(own.get(k), Mapping)), None)
    if rope is None and above is not None and part is not None:
        text = mapping(config.get(part))
        present = next((mapping(text[k]) for k in ROPES if isinstance(text.get(k), Mapping)), {})
        added[part, above] = {**present, **own[above]}
        reasons.append(Reason(LengthReason.BELOW, key=above, part=part))
        rope = above
    if rope is None or POSITIONS in inner:
        return added, reasons
    scaling = mapping(added.get((*at, rope), inner.get(rope)))
    base = context.longest(overridden(snapshot, own), able)
    reach = context.reach(scaling, base, able)
    if base is not None and reach is not None and reach > base:
        added[(*at, POSITIONS)] = reach
        reasons.append(Reason(LengthReason.COMPLETED, engine=able.label, key=POSITIONS, tokens=reach))
    return added, reasons


def _unscaled(snapshot: Snapshot, whole: Mapping[str, Any], able: Abilities) -> Reason | None:
    """Return a word on positions beyond those that the model was made for, without a scaling for them."""
    effective = overridden(snapshot, whole)
    made, asked = context.longest(snapshot, able), context.longest(effective, able)
    if made is None or asked is None or asked <= made:
        return None
    text = text_config(config_of(effective))
    scaling = next((mapping(text[k]) for k in ROPES if isinstance(text.get(k), Mapping)), {})
    reach = context.reach(scaling, made, able)
    if scaling.get("factor") is not None and (reach is None or asked <= reach):
        return None
    return Reason(LengthReason.UNSCALED, made=reach or made, tokens=asked)


def _put(data: dict[str, Any], path: tuple[str, ...], value: Any) -> None:
    for step in path[:-1]:
        inner = data.get(step)
        data[step] = dict(inner) if isinstance(inner, Mapping) else {}
        data = data[step]
    data[path[-1]] = value
