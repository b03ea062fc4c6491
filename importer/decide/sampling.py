"""Sampling: the set for the way the model answers, the other set beside it, and how long an answer may be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from importer.decide.decision import Abstained, Chosen, Decision, Decisions, KnownNone, Overruled
from importer.decide.settings import HEARD, by_user, decide_setting, overruled, rank
from importer.decide.target import Preferences, Target
from importer.evidence.fact import Evidence
from importer.evidence.values import MODES_KEY, RANGES
from importer.template.study import Thinking

MODES = {True: "thinking", False: "non_thinking"}
WAYS = {True: "with thinking", False: "without thinking"}
KEYS = tuple(f"parameters.{key}" for key in RANGES)
LENGTH = "parameters.max_tokens"
PARSER = "reasoning_parser"
FILE = "generation-config"
OTHERS = "generation_config."  # what transformers can do and no engine does
UNCLEAR = "card-unclear"
UNUSABLE = "generation-config-unusable"
LIMIT = "generation-config-length"
# Tokens of an answer where a server would cut it off: with a thought, as vendors advise it, and without.
ROOM = {True: 32_768, False: 8_192}
CUTS = {"mlx": 512, "mlx-vlm": 2048}  # tokens after which a server ends every answer unless told otherwise


def is_sampling(key: str) -> bool:
    """Whether a fact's key is decided here."""
    return key in KEYS or key.startswith((f"{MODES_KEY}.", OTHERS))


def thinks(thinking: Thinking | None, decisions: Decisions, backend: str) -> bool | None:
    """Whether an answer begins with a thought when a request says nothing; ``None``: not known."""
    if thinking is None:
        return None
    variables = _variables(decisions)
    parser = decisions[PARSER].value is not None
    if thinking.switch in variables:
        return _switched(thinking, variables[thinking.switch])
    if backend == "mlx-vlm" and thinking.switch == "enable_thinking":
        return parser  # its server tells the template so, whatever the template's own default is
    if thinking.markers is None or thinking.default is not None:
        return thinking.default if thinking.markers else False
    return parser if thinking.switch is None else None


def _variables(decisions: Decisions) -> dict[str, Any]:
    """What the document tells the template, set as a whole or one by one."""
    whole = decisions["chat_template_kwargs"].value if "chat_template_kwargs" in decisions else None
    single = {
        k.partition(".")[2]: d.value for k, d in decisions.items() if k.startswith("chat_template_kwargs.")
    }
    return {**(whole if isinstance(whole, Mapping) else {}), **single}


def _switched(thinking: Thinking, value: Any) -> bool | None:
    for way, setting in ((True, thinking.on), (False, thinking.off)):
        if setting is not None and setting.get(str(thinking.switch), ...) == value:
            return way
    return value if isinstance(value, bool) else None


def decide_sampling(
    evidence: Sequence[Evidence],
    preferences: Preferences,
    target: Target,
    decisions: Decisions,
    thinking: Thinking | None,
) -> dict[str, Decision]:
    """Every sampling value that anybody spoke on, and both sets where thinking has one of its own.

    ``decisions`` are all others, made before.
    """
    facts = [e for e in evidence if is_sampling(e.key)]
    way = thinks(thinking, decisions, target.backend)
    usual = thinks(thinking, {PARSER: decisions[PARSER]}, "")
    decided: dict[str, Decision] = {}
    for key in KEYS:
        spoken = _spoken(facts, key, way, usual)
        if key == LENGTH:
            decision = _length(spoken, preferences, target, decisions, way)
        else:
            decision = _value(key, spoken, facts, preferences)
        if decision is not None:
            decided[key] = decision
    sets = _sets(facts, usual)
    if any(way is None or mode != MODES[way] for mode in sets):
        decided[MODES_KEY] = _both(sets, facts, way)
    for fact in facts:
        if fact.key.startswith(OTHERS):
            decided[fact.key] = Abstained((fact.says,))
    return decided


def _spoken(facts: Sequence[Evidence], key: str, way: bool | None, usual: bool | None) -> list[Evidence]:
    """What is said of the way the model answers, then what is said of any way.

    The vendor's file speaks for the model's usual way: where the document takes the other, and that has a
    value of its own, the file is heard last.
    """
    name = key.removeprefix("parameters.")
    own = [e for e in facts if way is not None and e.key == f"{MODES_KEY}.{MODES[way]}.{name}"]
    plain = [e for e in facts if e.key == key]
    if own and way is not None and usual is (not way):
        says = f"for answers {WAYS[usual]}"
        plain = [
            replace(e, rule=f"{FILE}-usual", says=f"{e.says}, {says}") if e.rule == FILE else e for e in plain
        ]
    return [*(replace(e, key=key) for e in own), *plain]


def _value(
    key: str, spoken: Sequence[Evidence], facts: Sequence[Evidence], preferences: Preferences
) -> Decision | None:
    """Like any setting, but what is unclear or unusable is only shown."""
    heard = sorted((e for e in spoken if e.rule not in (UNCLEAR, UNUSABLE)), key=lambda e: rank(e.rule))
    shown = [e for e in spoken if e.rule in (UNCLEAR, UNUSABLE)]
    if key in preferences.values:
        value = preferences.values[key]
        return by_user(value, overruled(value, [*heard, *shown], "the user decides"))
    lost = tuple(Overruled(e.value, e.source, e.says) for e in shown)
    if heard:
        found = decide_setting(key, heard, preferences)
        return replace(found, overruled=(*found.overruled, *lost))
    refused = [e for e in shown if e.rule == UNUSABLE]
    if refused:
        return KnownNone(tuple(e.says for e in refused), lost)
    if shown:
        return Abstained(tuple(e.says for e in shown), lost)
    return _undecided(key, facts)


def _undecided(key: str, facts: Sequence[Evidence]) -> Decision | None:
    """Only the sets of both ways speak, and the way is not known: agreement is enough."""
    name = key.removeprefix("parameters.")
    said = [e for e in facts if e.key.startswith(f"{MODES_KEY}.") and e.key.endswith(f".{name}")]
    if len({e.key for e in said}) < 2:
        return None
    if len({e.value for e in said}) == 1:
        return decide_setting(key, said, Preferences())
    says = "it differs with and without thinking, and which way this model answers is not known"
    return Abstained((says, *(e.says for e in said)))


def _sets(facts: Sequence[Evidence], usual: bool | None) -> dict[str, dict[str, Any]]:
    """For each way of answering that is spoken of, its values, by the same order of who is heard."""
    sets: dict[str, dict[str, Any]] = {}
    for way, mode in MODES.items():
        own = [e for e in facts if e.key.startswith(f"{MODES_KEY}.{mode}.")]
        if not own:
            continue
        general = [e for e in facts if e.key in KEYS and e.rule == "card"]
        file = [e for e in facts if e.rule == FILE and way is usual]
        ordered = sorted([*own, *general, *file], key=lambda e: rank(e.rule))
        said = {e.key.rpartition(".")[2]: e.value for e in reversed(ordered)}
        sets[mode] = {k: said[k] for k in RANGES if k in said and k != "max_tokens"}
    return sets


def _both(sets: Mapping[str, Mapping[str, Any]], facts: Sequence[Evidence], way: bool | None) -> Decision:
    said = [e for e in facts if e.key.startswith(f"{MODES_KEY}.")]
    first = min(said, key=lambda e: rank(e.rule))
    chosen = "which way this model answers is not known" if way is None else f"the document's is {WAYS[way]}"
    says = f"{first.source} has values of their own for each way of answering; {chosen}"
    return Chosen(dict(sets), HEARD.get(first.rule, "table"), (says,))


def _length(
    spoken: Sequence[Evidence],
    preferences: Preferences,
    target: Target,
    decisions: Decisions,
    way: bool | None,
) -> Decision | None:
    """How many tokens an answer may have, prompt left out.

    transformers' own limits are shown and never taken: they are small, and vLLM would cut every answer there.
    vLLM fills the context by itself; the servers on mlx end an answer early unless told otherwise.
    """
    limits = [e for e in spoken if e.rule == LIMIT]
    advised = sorted(
        (e for e in spoken if e.rule not in (LIMIT, UNCLEAR, UNUSABLE)), key=lambda e: rank(e.rule)
    )
    if LENGTH in preferences.values:
        value = preferences.values[LENGTH]
        return by_user(value, overruled(value, [*advised, *limits], "the user decides"))
    lost = tuple(Overruled(e.value, e.source, e.says) for e in limits)
    kind = decisions["kind"].value if "kind" in decisions else "chat"
    cut = CUTS.get(target.backend) if kind != "base" else None  # a base model does not end by itself
    if cut is None:
        fills = "an answer may fill the context, and a limit would end every answer"
        lost += tuple(Overruled(e.value, e.source, f"{fills}; it said: {e.says}") for e in advised)
        stated = any(e.quote.startswith("max_new_tokens") for e in limits)
        return KnownNone((fills,), lost) if stated else Abstained((fills,), lost) if lost else None
    context = _context(decisions)
    wanted = int(advised[0].value) if advised else ROOM[way is not False]
    room = min(wanted, context // 2) if context else wanted
    if room <= cut:
        return None
    ends = f"{target.backend} ends every answer after {cut} tokens unless told otherwise"
    if advised and room == wanted:
        return Chosen(room, HEARD[advised[0].rule], (advised[0].says, ends), lost)
    return Chosen(room, "engine-default", (ends,), lost)


def _context(decisions: Decisions) -> int | None:
    """Tokens that prompt and answer share."""
    for key in ("engine_args.max_kv_size", "max_model_len"):
        value = decisions[key].value if key in decisions else None
        if isinstance(value, int):
            return value
    return None
