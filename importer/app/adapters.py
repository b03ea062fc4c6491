"""LoRA adapters beside a model: the engine's settings for them, checked against the model and the adapter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from string import ascii_letters, digits
from typing import Any

from importer.decisions.decision import Decision, Target
from importer.document import engine_arguments
from importer.document.name_allocator import slug
from importer.errors import HubError, Setting, UsageError
from importer.frozen import frozen
from importer.hub.local import AllowedFolders
from importer.hub.snapshot import Snapshot, listed, mapping, whole
from importer.reasons import Reason, ReasonKind
from importer.signals.evidence import Evidence, Rule, warning
from importer.signals.family import base_models
from importer.signals.kind import ADAPTER, of_adapter
from importer.signals.overrides import Overrides

MODULES, PATHS, ENABLE = "lora_modules", "lora_paths", "enable_lora"
RANK, AT_ONCE = "max_lora_rank", "max_loras"
KEYS = tuple(f"engine_args.{name}" for name in (ENABLE, MODULES, PATHS, RANK, AT_ONCE))
HIGHEST = 1 << 16
OF_NAMES = {*ascii_letters, *digits, *"._:-"}
# Features of peft that ``PEFTHelper`` of vLLM 0.32 refuses at the start.
REFUSED = (
    "use_dora",
    "lora_bias",
    "alora_invocation_tokens",
    "layer_replication",
    "use_bdlora",
    "use_qalora",
)
HEADS = ("classifier", "score")  # the modules beside LoRA that it loads


class AdapterReason(ReasonKind):
    """What an adapter is, and what speaks against it."""

    NO_ADAPTER = "{adapter} has no adapter_config.json of a LoRA adapter in the form of peft"
    NO_ENGINE = "{engine} serves no adapters of peft; vllm and sglang do"
    NO_NAME = "{name!r} is not made of letters, digits, '.', '_', ':' and '-'"
    SAME_NAME = "two adapters have the name {name}; put NAME= before one"
    UNPINNED = "{engine} fetches the newest commit of {adapters:and}"
    OTHER_BASE = "{adapter} was trained on {base}, and this is {model}"
    NO_BASE = "{adapter} names no base model, so nothing shows that it fits {model}"
    FEATURE = "{engine} refuses {adapter} for its {feature}"
    TOO_HIGH = "{adapter} has rank {rank}, and {engine} takes {most} at most"


@frozen
class Adapter:
    """An adapter by its settings; ``path`` is what the engine loads, ``feature`` what it refuses."""

    name: str
    path: str
    rank: int
    base: str | None
    feature: str | None


def complete(
    completed: Overrides, named: Sequence[str], target: Target, places: AllowedFolders, *, offline: bool
) -> Overrides:
    """Return the settings with those of the adapters, and the warnings about them.

    Raises UsageError("bad-value") for what is no adapter or no name, and what resolving a reference raises.
    """
    registry = engine_arguments.load(target.backend, target.version)
    arguments = () if registry is None else registry.arguments
    if registry is None or ENABLE not in arguments:
        raise _invalid(named[0], Reason(AdapterReason.NO_ENGINE, engine=target.backend))
    adapters = [_read(one, places, offline=offline) for one in named]
    names = [adapter.name for adapter in adapters]
    for one in adapters:
        if names.count(one.name) > 1:
            raise _invalid(one.path, Reason(AdapterReason.SAME_NAME, name=one.name))
    ranks = listed(mapping(registry.arguments[RANK].kind).get("one_of"))
    highest = max(adapter.rank for adapter in adapters)
    rank = min((r for r in ranks if r >= highest), default=max(ranks, default=highest))
    values: dict[str, object] = {ENABLE: True, RANK: rank if ranks else highest}
    if MODULES in arguments:
        values[MODULES] = [{"name": one.name, "path": one.path} for one in adapters]
        values |= {AT_ONCE: len(adapters)} if len(adapters) > 1 else {}
        key = f"engine_args.{MODULES}"
    else:
        values[PATHS] = [f"{one.name}={one.path}" for one in adapters]
        key = f"engine_args.{PATHS}"
    settings = {f"engine_args.{name}": value for name, value in values.items()}
    model = completed.snapshot
    reasons = [warning(why) for one in adapters for why in _doubts(one, model, target, offline=offline)]
    reasons += [warning(reason) for reason in _too_high(adapters, ranks, target)]
    fetched = tuple(one.path for one in adapters if not one.path.startswith("/"))
    reasons += [Reason(AdapterReason.UNPINNED, engine=target.backend, adapters=fetched)] if fetched else []
    facts = (Evidence(Rule.ENGINE, key, settings[key], ADAPTER, reason) for reason in reasons)
    return replace(
        completed, settings={**settings, **completed.settings}, evidence=(*completed.evidence, *facts)
    )


def settings_of(decisions: Mapping[str, Decision]) -> dict[str, object]:
    """Return the settings of adapters among decisions."""
    return {key: decisions[key].value for key in KEYS if key in decisions}


def _read(named: str, places: AllowedFolders, *, offline: bool) -> Adapter:
    """Return the adapter that ``[NAME=]REFERENCE`` names."""
    from importer.hub import resolve
    from importer.hub.reference import parse, without_scheme

    name, _, reference = named.partition("=") if "/" not in named.partition("=")[0] else ("", "", named)
    snapshot = resolve(parse(without_scheme(reference or name)), places, offline=offline)
    settings = snapshot.json(ADAPTER)
    rank = whole(settings.get("r"), 1, HIGHEST)
    if settings.get("peft_type") != "LORA" or rank is None:
        raise _invalid(named, Reason(AdapterReason.NO_ADAPTER, adapter=snapshot.label))
    ranks = [r for one in mapping(settings.get("rank_pattern")).values() if (r := whole(one, 1, HIGHEST))]
    place = snapshot.model_id or str(snapshot.directory)
    given = name if reference else ""
    if not {*given} <= OF_NAMES:
        raise _invalid(named, Reason(AdapterReason.NO_NAME, name=given))
    return Adapter(
        given or slug(place.rpartition("/")[2]),
        place,
        max(rank, *ranks, 1),
        of_adapter(snapshot),
        _refused(settings),
    )


def _refused(settings: Mapping[str, Any]) -> str | None:
    """Return the first setting that vLLM does not load."""
    beside = [name for name in listed(settings.get("modules_to_save")) if name not in HEADS]
    known = next((key for key in REFUSED if settings.get(key)), None)
    return known or ("modules_to_save" if beside else None)


def _doubts(adapter: Adapter, model: Snapshot, target: Target, *, offline: bool) -> Iterator[Reason]:
    """Yield what speaks against an adapter for a model: its base, and what the engine refuses."""
    about = {"adapter": adapter.path, "model": model.label}
    known = {name.lower() for name in (model.label, *base_models(model))}
    if adapter.base is None:
        yield Reason(AdapterReason.NO_BASE, **about)
    elif adapter.base.lower() not in known and (offline or not _is_copy(adapter.base, known)):
        yield Reason(AdapterReason.OTHER_BASE, **about, base=adapter.base)
    if adapter.feature is not None:
        fields = {"adapter": adapter.path, "feature": adapter.feature, "engine": target.backend}
        yield Reason(AdapterReason.FEATURE, **fields)


def _is_copy(base: str, known: set[str]) -> bool:
    """Return whether the Hub has a base as a copy of a model, such as a quantised one; one request."""
    from importer.hub import endpoint, listing

    try:
        info = {} if endpoint.offline() else listing.ask(base, None).info
    except HubError:
        return False
    tags = (str(tag).rpartition(":")[2] for tag in listed(info.get("tags")) if "base_model:" in str(tag))
    return any(str(name).lower() in known for name in (*listed(info.get("base_models")), *tags))


def _too_high(adapters: Sequence[Adapter], ranks: Sequence[int], target: Target) -> Iterator[Reason]:
    for one in adapters:
        if ranks and one.rank > max(ranks):
            fields = {"adapter": one.path, "rank": one.rank, "engine": target.backend, "most": max(ranks)}
            yield Reason(AdapterReason.TOO_HIGH, **fields)


def _invalid(value: str, problem: Reason) -> UsageError:
    return UsageError("bad-value", setting=Setting.ADAPTER, value=value, problem=problem)
