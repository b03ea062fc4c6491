"""Evidence from the rendered template: its wire format beside the markers of each parser, and its faults.

Evidence on request coverage: whether tools reach the prompt, what requests lose, and what would help.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Literal

from importer import backends
from importer.chat_template import find
from importer.chat_template.conventions import CONVENTIONS
from importer.chat_template.find import TemplateFault
from importer.chat_template.learnt_format import WireFormat, learn_format
from importer.chat_template.markers import SHAPE
from importer.chat_template.override import TemplateOverride
from importer.chat_template.request_coverage.findings import KEY, VARIABLES
from importer.chat_template.request_coverage.findings import KEY as REQUEST_COVERAGE
from importer.chat_template.samples import Sample
from importer.chat_template.study import TemplateAnalysis
from importer.frozen import frozen
from importer.hub.snapshot import Snapshot
from importer.reasons import Reason
from importer.signals.engine_capabilities import Abilities
from importer.signals.evidence import Evidence, Rule, Source, warning
from importer.signals.name_likeness import plain_name
from importer.signals.reasons import CoverageReason, ShownReason
from importer.signals.tables import parser_table

Kind = Literal["tool", "reasoning"]
FOLDER = Path(__file__).with_name("markers")
KINDS: Mapping[str, Kind] = {"tool_parser": "tool", "reasoning_parser": "reasoning"}
FEW = 3  # markers; fewer of them more or less make no other format


@frozen
class ParserMarkers:
    """One parser's markers, in the order of its source; ``names`` counts the names of its class."""

    name: str
    markers: tuple[str, ...]
    names: int

    def strangers(self, text: str) -> int:
        """Return the number of its markers that do not stand in the text."""
        return sum(marker not in text for marker in self.markers)


@cache
def load_parser_markers(engine: str, kind: Kind) -> Mapping[str, ParserMarkers]:
    """Return the markers of an engine's parsers, by name; empty for an engine without a table."""
    path = FOLDER / f"{engine}.json"
    if engine not in backends.NAMES or not path.is_file():
        return {}
    rows = json.loads(path.read_text(encoding="utf-8"))[kind]
    return {
        name: ParserMarkers(name, tuple(row["markers"]), row.get("names", 1)) for name, row in rows.items()
    }


def warm() -> None:
    """Read all tables: the sandbox's child opens no file later."""
    for engine in backends.NAMES:
        for kind in KINDS.values():
            load_parser_markers(engine, kind)


def fitting(engine: str, kind: Kind, needed: Collection[str], text: str) -> list[str]:
    """Return the parsers that know every marker of ``needed``, the best match first.

    At least half of a parser's markers stand in ``text``, the rendered conversation; the best match has the
    fewest that do not. Of tool parsers with few such markers the class with the most names comes first: a
    pair of optional markers makes no other format, and that class serves the most families.
    """
    known = load_parser_markers(engine, kind).values() if needed else ()
    fit = [p for p in known if all(_knows(p.markers, marker) for marker in needed)]
    close = [(p, p.strangers(text)) for p in fit if 2 * p.strangers(text) <= len(p.markers)]
    few = FEW if kind == "tool" else 1
    return [p.name for p, far in sorted(close, key=lambda c: (c[1] // few, -c[0].names, c[1], c[0].name))]


def closeness(engine: str, kind: Kind, needed: Sequence[str], text: str) -> dict[str, tuple[int, ...]]:
    """Return for each parser how close it is to a format, the closest with the least key.

    ``needed`` are the format's markers, the opening one first: a parser without it is for another format.
    Then count the known ones of them, and the parser's own markers in ``text`` against those that are not.
    """
    keys: dict[str, tuple[int, ...]] = {}
    for parser in load_parser_markers(engine, kind).values():
        known = [_knows(parser.markers, marker) for marker in needed]
        far = parser.strangers(text)
        near = len(parser.markers) - far
        match = (far // FEW, -parser.names, far) if kind == "tool" else (far - near, -parser.names)
        keys[parser.name] = (not any(known[:1]), -sum(known), *match)
    return keys


def _knows(markers: Collection[str], marker: str) -> bool:
    """Return whether a marker is among them, or begins as one that takes a name (``<function=``)."""
    return any(marker == m or (m[-1:] in "=[" and marker.startswith(m)) for m in markers)


def translate(
    key: str, parser: str, engine: str, other: str, known: Container[str] | None = None
) -> str | None:
    """Return the parser of ``other`` for the format that ``parser`` of ``engine`` reads, or ``None``.

    A parser of the same name is the best match, marks between its words and the v of a version aside
    (``deepseek_v31`` and ``deepseekv31``, ``nemotron_v3`` and ``nemotron_3``). Else it is that with the most
    common markers, at least half of the fewer ones, and of these the closest. ``known`` are the names that
    the version of ``other`` has.
    """
    kind = KINDS[key]
    names = load_parser_markers(other, kind)
    usable = [p for p in names.values() if known is None or p.name in known]
    own = load_parser_markers(engine, kind).get(parser)
    if own is None:
        return None
    same = sorted((p.name != parser, p.name) for p in usable if _versioned(p.name) == _versioned(parser))
    if same:
        return same[0][1]
    named = [m for m in own.markers if ("call" if kind == "tool" else "think") in m.lower()]
    vital = named if kind == "tool" else named[:1]  # they begin a call or reasoning
    keys = closeness(other, kind, own.markers, " ".join(own.markers))
    close = [
        p
        for p in usable
        if all(_knows(p.markers, marker) for marker in vital)
        and -2 * keys[p.name][1] >= min(len(own.markers), len(p.markers)) > 0
    ]
    return min((p.name for p in close), key=lambda name: keys[name][1:], default=None)


def _versioned(name: str) -> str:
    return re.sub(r"v(?=\d)", "", plain_name(name))


def of_same_markers(key: str, parser: str, engine: str, known: Container[str]) -> list[str]:
    """Return the parsers of an engine's version with the same markers, those with the most names first."""
    table = load_parser_markers(engine, KINDS[key])
    own = set(table[parser].markers) if parser in table else set()
    alike = [p for p in table.values() if own and set(p.markers) == own and p.name in known]
    return [p.name for p in sorted(alike, key=lambda p: (-p.names, p.name))]


def markers_in(text: str, engine: str, kind: Kind) -> Iterator[str]:
    """Yield every marker of the engine's parsers that stands in the text, each once."""
    seen = dict.fromkeys(m for p in load_parser_markers(engine, kind).values() for m in p.markers)
    yield from (marker for marker in seen if marker in text)


ENGINE = backends.DEFAULT  # the names of the tables
COMMON = 5  # parsers that know a block's marker, from which it is no format of its own
# Words of a name for a model that reasons; vendors use them for models of any family.
REASONS = re.compile(r"(?:^|[^a-z])(?:thinking|think|thinker|reasoning|reasoner)(?:[^a-z]|$)", re.IGNORECASE)
STRIPPED = "stripped"  # the source of a block that the template only cuts out of past turns
PARTS = re.compile(
    r"\.(?:safetensors|bin|gguf|pth?|npz)$|(?:^|/)(?:tokeni[sz]|tekken|vocab|merges|special_tokens)"
)
CLOSES = re.compile(r"</|end|suffix", re.IGNORECASE)


def evidence(analysis: TemplateAnalysis | None, source: str | None = None, name: str = "") -> list[Evidence]:
    """Return evidence by wire format, under vLLM's parser names; a note without a value for unknown formats.

    ``source`` names a template that is not the model's own; ``name`` is the repository's.
    """
    if analysis is None:
        return [_note(key, Reason(ShownReason.NO_TEMPLATE)) for key in ("tool_parser", "reasoning_parser")]
    sample = next((s for s in analysis.samples if s.case == "one-call"), None)
    calls = learn_format(analysis.samples)
    facts = [_calls(analysis, sample, calls), _thinking(analysis, named=REASONS.search(name) is not None)]
    return [replace(fact, source=source or Source.TEMPLATE) for fact in facts]


def from_override(override: TemplateOverride, backend: str) -> list[Evidence]:
    """Return the parser that one of importer's own templates was written for, by the template's name."""
    if override.name not in CONVENTIONS:
        return []
    parser = backends.of(backend).conventions[override.name]
    reason = Reason(ShownReason.MADE_FOR, convention=override.name, parser=parser)
    return [Evidence(Rule.TEMPLATE_OVERRIDE, "tool_parser", parser, override.source, reason)]


def _note(key: str, reason: Reason, quote: str = "") -> Evidence:
    """Return evidence from the template that names no parser."""
    return Evidence(Rule.TEMPLATE, key, None, Source.TEMPLATE, reason, quote)


def _calls(analysis: TemplateAnalysis, sample: Sample | None, calls: WireFormat | None) -> Evidence:
    text = "".join(s.prompt + s.completion for s in analysis.samples)
    if sample is None or calls is None:
        parser = _instructed(analysis.tools_prompt)
        reason = Reason(
            ShownReason.NO_CALLS, problem=analysis.problems.get("one-call"), asked=parser,
            shown=analysis.tools_rendered or analysis.tools_named,
        )  # fmt: skip
        if parser is None:
            return _note("tool_parser", reason)
        quote = analysis.tools_prompt[:160]
        return Evidence(Rule.TEMPLATE_INSTRUCTIONS, "tool_parser", parser, Source.TEMPLATE, reason, quote)
    quote = sample.completion[:160]
    known = fitting(ENGINE, "tool", calls.markers, text)
    if not known:
        return _note("tool_parser", Reason(ShownReason.UNKNOWN_CALLS), quote)
    reason = Reason(ShownReason.CALLS, format=calls.label)
    return Evidence(Rule.TEMPLATE_FORMAT, "tool_parser", known[0], Source.TEMPLATE, reason, quote)


def _instructed(prompt: str) -> str | None:
    """Return the parser whose opening marker the instructions of tools name, and the fewest strangers."""
    opening = [m for m in markers_in(prompt, ENGINE, "tool") if not CLOSES.search(m)]
    calling = [m for m in opening if "call" in m.lower() or "action" in m.lower()]
    known = fitting(ENGINE, "tool", calling[:1], prompt)
    return known[0] if known else None


def _thinking(analysis: TemplateAnalysis, *, named: bool) -> Evidence:
    thinking, key = analysis.thinking, "reasoning_parser"
    if thinking.markers is None:
        if not analysis.samples:
            return _note(
                key, Reason(ShownReason.NOT_RENDERED, problem=next(iter(analysis.problems.values()), None))
            )
        if thinking.switch:
            return _note(key, Reason(ShownReason.SWITCHES, switch=thinking.switch))
        return Evidence(Rule.TEMPLATE_FORMAT, key, None, Source.TEMPLATE, Reason(ShownReason.NO_REASONING))
    quote = " … ".join(thinking.markers)
    block = SHAPE.findall(" ".join(thinking.markers)) or [*thinking.markers]
    own = (
        sum(block[0] in parser.markers for parser in load_parser_markers(ENGINE, "reasoning").values())
        < COMMON
    )
    past = thinking.source in ("rendered", STRIPPED) and not thinking.opened and thinking.default is None
    idle = past and not thinking.switch and not own and not named
    alike = thinking.markers[0] if past and own and not thinking.switch else None
    reason = Reason(
        ShownReason.THINKS, opened=thinking.opened, by=thinking.source, switch=thinking.switch,
        default=thinking.default, alike=alike, idle=idle,
    )  # fmt: skip
    text = "".join(s.prompt + s.completion for s in analysis.samples)
    known = [] if idle else fitting(ENGINE, "reasoning", block, text)
    parser = _switched(known, block) if thinking.switch else next(iter(known), None)
    if parser is None and not idle:
        return _note(key, reason, quote)
    return Evidence(Rule.TEMPLATE_FORMAT, key, parser, Source.TEMPLATE, reason, quote)


def _switched(known: Sequence[str], block: Sequence[str]) -> str | None:
    """Return the parser for a template with a switch: one that knows more than the block, and most families.

    A parser of the block alone cannot tell an answer from reasoning that it has not seen begin.
    """
    markers = load_parser_markers(ENGINE, "reasoning")
    wider = [name for name in known if set(markers[name].markers) > set(block)]
    families = Counter(row.parsers.get("reasoning_parser") for row in parser_table().rows)
    return max(wider or known, key=lambda name: families[name], default=None)


def _missing(snapshot: Snapshot, engine: str) -> Reason | None:
    """Return the fault that no file of the repository has a template; none while such a file is unread.

    A config.json without weights and tokenizer is a copy of some settings: its template is unknown.
    """
    files = (find.SIDECAR, find.CONFIG, find.PROCESSOR_CONFIG, find.LEGACY)
    unread = [path for path in files if snapshot.has(path) and path not in snapshot.texts]
    paths = [file.path for file in snapshot.files]
    partly = snapshot.has("config.json") and not any(PARTS.search(path) for path in paths)
    missing = not (unread or partly or find.find(snapshot))
    return Reason(TemplateFault.MISSING, engine=engine) if missing else None


def template_fault_evidence(
    snapshot: Snapshot, able: Abilities, kind: str, facts: Sequence[Evidence]
) -> Iterator[Evidence]:
    """Yield a warning for the engine: every engine loads templates with transformers.

    A broken list keeps any model from its start; the others matter to a model that chats by its own template.
    """
    fault = find.fault(snapshot, able.loader) or find.unopened(snapshot, able.loader)
    fault = fault or _missing(snapshot, able.engine)
    if fault is None:
        return
    replaced = any(fact.key == REQUEST_COVERAGE and fact.source != Source.TEMPLATE for fact in facts)
    if fault.kind is TemplateFault.ENTRY or (kind == "chat" and not replaced):
        yield Evidence(
            Rule.ENGINE, "backend", able.engine, str(fault.fields.get("file", Source.LISTING)), warning(fault)
        )


def coverage_evidence(analysis: TemplateAnalysis | None, source: str | None = None) -> list[Evidence]:
    """Return what requests lose, and the variables that clients may set; none without a template.

    ``source`` names a template that is not the model's own.
    """
    if analysis is None or analysis.request_coverage is None:
        return []
    request_coverage = analysis.request_coverage
    value = request_coverage.to_json()
    reason = Reason(
        CoverageReason.CHECKED, checked=request_coverage.checked, findings=len(request_coverage.findings)
    )
    place = source or Source.TEMPLATE
    facts = [Evidence(Rule.TEMPLATE_RENDERED, KEY, value, place, reason)]
    variables = {one.name: {"values": [*one.values], "default": one.default} for one in analysis.variables}
    if variables:
        named = Reason(CoverageReason.VARIABLES, names=tuple(variables))
        facts.append(Evidence(Rule.TEMPLATE_RENDERED, VARIABLES, variables, place, named))
    return facts
