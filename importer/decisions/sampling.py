"""Decisions on sampling: the values for the mode of the model, both sets, and the length of an answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from importer import backends
from importer.chat_template.samples import Thinking
from importer.decisions.decision import (
    Chosen,
    Decision,
    Decisions,
    KnownNone,
    Preferences,
    RejectedCandidate,
    Target,
    Undecided,
    WeighReason,
    by_user,
    decide_setting,
    overruled,
    ranked,
    status_of,
)
from importer.reasons import Fields, Reason, ReasonKind
from importer.signals.evidence import Evidence, Rule
from importer.signals.sampling_values import GREEDY, MODES_KEY, RANGES

MODES = {True: "thinking", False: "non_thinking"}
KEYS = tuple(f"parameters.{key}" for key in RANGES)
LENGTH, TEMPERATURE = "parameters.max_tokens", "parameters.temperature"
PARSER = "reasoning_parser"
# Tokens of an answer for servers with a short default: with reasoning, by vendors' advice, and without.
ROOM = {True: 32_768, False: 8_192}


MODE_TEXTS = {"thinking": "with thinking", "non_thinking": "without thinking"}


def _sets_text(fields: Fields) -> str:
    chosen = "which way this model answers is not known"
    if fields["mode"] is not None:
        chosen = f"the document's is {MODE_TEXTS[fields['mode']]}"
    return f"{fields['source']} has values of their own for each way of answering; {chosen}"


class SamplingReason(ReasonKind):
    """Reasons why sampling values were chosen or left out."""

    FOR_OTHER_ANSWERS = (
        lambda fields: f"{fields['reason']}, for answers {MODE_TEXTS[fields['mode']]}",
        "{reason}",
    )
    BOTH_WAYS_DIFFER = "it differs with and without thinking, and which way this model answers is not known"
    SETS_OF_BOTH_WAYS = _sets_text, "both modes"
    FILLS_CONTEXT = "an answer may fill the context, and a limit would end every answer", "context is limit"
    SERVER_DRAWS = "nothing names a temperature: {engine} samples at {value}, where small models often miss"
    GREEDY = "{said}; the vendor's {file} asks for the likeliest token, and this value is for drawn ones"
    CUT_BY_SERVER = (
        "{engine} ends every answer after {tokens} tokens unless told otherwise",
        "{engine}'s limit {tokens}",
    )


def is_sampling(key: str) -> bool:
    """Return whether ``decide_sampling`` decides the key."""
    return key in KEYS or key.startswith(f"{MODES_KEY}.")


def thinks(thinking: Thinking | None, decisions: Decisions, backend: str) -> bool | None:
    """Return whether an answer begins with reasoning by default; ``None`` where it is unknown."""
    if thinking is None:
        return None
    variables = _variables(decisions)
    parser = decisions[PARSER].value is not None
    if thinking.switch in variables:
        return _switched(thinking, variables[thinking.switch])
    if thinking.switch is not None and thinking.switch == backends.of(backend).variable:
        return parser  # its server sets the variable, for any default of the template
    if thinking.markers is None or thinking.default is not None:
        return thinking.default if thinking.markers else False
    return parser if thinking.switch is None else None


def _variables(decisions: Decisions) -> dict[str, object]:
    """Return the document's template variables, set as a whole or one by one."""
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
    """Return every sampling value with evidence, and both sets where thinking has one of its own.

    ``decisions`` are all other decisions.
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
        if decision is None and key == TEMPERATURE:
            decision = _drawn(target, decisions)
        if decision is not None:
            decided[key] = decision
    decided = _without_draws(decided, facts)
    sets = _sets(facts, usual)
    if any(way is None or mode != MODES[way] for mode in sets):
        decided[MODES_KEY] = _both(sets, facts, way)
    return decided


def _without_draws(decided: Mapping[str, Decision], facts: Sequence[Evidence]) -> dict[str, Decision]:
    """Return the decisions; greedy decoding by the vendor's file leaves out values of tables and cards."""
    greedy = next((e for e in facts if e.key == TEMPERATURE and e.quote == GREEDY), None)
    temperature = decided.get(TEMPERATURE)
    if greedy is None or temperature is None or greedy.reason not in temperature.why:
        return dict(decided)
    found = dict(decided)
    of_file = {e.key for e in facts if e.rule is Rule.GENERATION_CONFIG}
    for key, one in decided.items():
        if key not in (TEMPERATURE, LENGTH, *of_file) and one.value is not None and one.status != "user":
            why = Reason(SamplingReason.GREEDY, said=one.why[0], file=greedy.source)
            found[key] = KnownNone((why,), one.overruled)
    return found


def _spoken(facts: Sequence[Evidence], key: str, way: bool | None, usual: bool | None) -> list[Evidence]:
    """Return the evidence for the mode of the document, then the evidence for any mode.

    The vendor's file holds for the model's usual mode. Where the document has the other mode with a value of
    its own, the file has the lowest precedence.
    """
    name = key.removeprefix("parameters.")
    own = [e for e in facts if way is not None and e.key == f"{MODES_KEY}.{MODES[way]}.{name}"]
    plain = [e for e in facts if e.key == key]
    if own and way is not None and usual is (not way):
        plain = [_of_the_other_way(e, usual) if e.rule is Rule.GENERATION_CONFIG else e for e in plain]
    return [*(replace(e, key=key) for e in own), *plain]


def _of_the_other_way(fact: Evidence, usual: bool) -> Evidence:
    reason = Reason(SamplingReason.FOR_OTHER_ANSWERS, reason=fact.reason, mode=MODES[usual])
    return replace(fact, rule=Rule.GENERATION_CONFIG_USUAL, reason=reason)


def _value(
    key: str, spoken: Sequence[Evidence], facts: Sequence[Evidence], preferences: Preferences
) -> Decision | None:
    """Return the decision on one value, like on any setting; unclear and unusable values are only shown."""
    deciding = ranked(e for e in spoken if e.rule.status is not None)
    shown = [e for e in spoken if e.rule.status is None]
    if key in preferences.values:
        value = preferences.values[key]
        return by_user(value, overruled(value, [*deciding, *shown], Reason(WeighReason.USER_DECIDES)))
    lost = tuple(RejectedCandidate(e.value, e.source, e.reason) for e in shown)
    if deciding:
        decision = decide_setting(key, deciding, preferences)
        return replace(decision, overruled=(*decision.overruled, *lost))
    refused = [e for e in shown if e.rule is Rule.GENERATION_CONFIG_UNUSABLE]
    if refused:
        return KnownNone(tuple(e.reason for e in refused), lost)
    if shown:
        return Undecided(tuple(e.reason for e in shown), lost)
    return _undecided(key, facts)


def _drawn(target: Target, decisions: Decisions) -> Decision | None:
    """Return what a server does to answers of a chat model whose temperature nothing names."""
    kind, value = decisions.get("kind"), backends.of(target.backend).temperature
    if not value or (kind is not None and kind.value != "chat"):
        return None
    return Undecided((Reason(SamplingReason.SERVER_DRAWS, engine=target.backend, value=value),))


def _undecided(key: str, facts: Sequence[Evidence]) -> Decision | None:
    """Return the decision for an unknown mode with evidence from both sets only: equal values are chosen."""
    name = key.removeprefix("parameters.")
    by_mode = [e for e in facts if e.key.startswith(f"{MODES_KEY}.") and e.key.endswith(f".{name}")]
    if len({e.key for e in by_mode}) < 2:
        return None
    if len({e.value for e in by_mode}) == 1:
        return decide_setting(key, by_mode, Preferences())
    return Undecided((Reason(SamplingReason.BOTH_WAYS_DIFFER), *(e.reason for e in by_mode)))


def _sets(facts: Sequence[Evidence], usual: bool | None) -> dict[str, dict[str, object]]:
    """Return the values of each mode with evidence, by the precedence of rules."""
    sets: dict[str, dict[str, object]] = {}
    for way, mode in MODES.items():
        own = [e for e in facts if e.key.startswith(f"{MODES_KEY}.{mode}.")]
        if not own:
            continue
        general = [e for e in facts if e.key in KEYS and e.rule is Rule.CARD]
        file = [e for e in facts if e.rule is Rule.GENERATION_CONFIG and way is usual]
        ordered = ranked([*own, *general, *file])
        values = {e.key.rpartition(".")[2]: e.value for e in reversed(ordered)}
        sets[mode] = {k: values[k] for k in RANGES if k in values and k != "max_tokens"}
    return sets


def _both(sets: Mapping[str, Mapping[str, object]], facts: Sequence[Evidence], way: bool | None) -> Decision:
    by_mode = [e for e in facts if e.key.startswith(f"{MODES_KEY}.")]
    first = ranked(by_mode)[0]
    mode = None if way is None else MODES[way]
    reason = Reason(SamplingReason.SETS_OF_BOTH_WAYS, source=first.source, mode=mode)
    return Chosen(dict(sets), status_of(first.rule), (reason,))


def _length(
    spoken: Sequence[Evidence],
    preferences: Preferences,
    target: Target,
    decisions: Decisions,
    way: bool | None,
) -> Decision | None:
    """Return the decision on the tokens of an answer, without the prompt.

    transformers' own limits are shown and never used: they are small, and vLLM would cut every answer there.
    vLLM fills the context by default; the servers on mlx have a small default.
    """
    limits = [e for e in spoken if e.rule is Rule.GENERATION_CONFIG_LENGTH]
    advised = ranked(e for e in spoken if e.rule.status is not None)
    if LENGTH in preferences.values:
        value = preferences.values[LENGTH]
        return by_user(value, overruled(value, [*advised, *limits], Reason(WeighReason.USER_DECIDES)))
    lost = tuple(RejectedCandidate(e.value, e.source, e.reason) for e in limits)
    kind = decisions["kind"].value if "kind" in decisions else "chat"
    cut = backends.of(target.backend).cut if kind != "base" else None  # a base model does not end by itself
    if cut is None:
        fills = Reason(SamplingReason.FILLS_CONTEXT)
        lost += tuple(
            RejectedCandidate(e.value, e.source, Reason(WeighReason.LOST, why=fills, said=e.reason))
            for e in advised
        )
        return KnownNone((fills,), lost) if limits else Undecided((fills,), lost) if lost else None
    context = _context(decisions)
    advised_tokens = int(advised[0].value) if advised else ROOM[way is not False]
    room = min(advised_tokens, context // 2) if context else advised_tokens
    if room <= cut:
        return None
    ends = Reason(SamplingReason.CUT_BY_SERVER, engine=target.backend, tokens=cut)
    if advised and room == advised_tokens:
        return Chosen(room, status_of(advised[0].rule), (advised[0].reason, ends), lost)
    return Chosen(room, "engine-default", (ends,), lost)


def _context(decisions: Decisions) -> int | None:
    """Return the tokens that prompt and answer share, or ``None``."""
    for key in ("engine_args.max_kv_size", "max_model_len"):
        value = decisions[key].value if key in decisions else None
        if isinstance(value, int):
            return value
    return None
