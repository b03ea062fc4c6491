"""Sampling values that the model card recommends: in its YAML header, its prose and its examples.

A value counts where the words around it recommend. Two values that differ without a reason to prefer one
give no value: the evidence shows both.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

from importer import yaml_reader
from importer.hub.snapshot import Snapshot, mapping
from importer.reasons import Reason
from importer.signals import card_advice
from importer.signals.card_advice import ADVICE, NAME, Advice, Mode, Scope, mode_of, scope_of
from importer.signals.evidence import Evidence, Rule
from importer.signals.markdown import Block, blocks, header
from importer.signals.reasons import CardReason
from importer.signals.sampling_values import MODES_KEY, usable
from importer.yaml_reader import YamlError

FILE = "README.md"
LONGEST_HEADER = 64 * 1024  # characters of YAML that are parsed
MOST_BLOCKS = 1000  # that name a parameter; real cards have a dozen
SHORT = 400  # characters of a heading, an introduction or a row's label that are looked at
MOST_COLUMNS = 50

MEASURED = re.compile(
    r"\b(?:evaluat\w*|benchmark\w*|\w*-?train\w*|fine-?tun\w*|leaderboard|reproduc\w*|ablation|citation)\b",
    re.IGNORECASE,
)
ADVISING = re.compile(
    r"\b(?:best practices?|recommend\w*|guidelines?|usage tips?|tips|suggest\w*"
    r"|(?:sampling|generation|inference|decoding|optimal|default)"
    r" (?:param\w*|settings?|config\w*|values?))\b",
    re.IGNORECASE,
)
# An example of generation: a call, a request or a command line with sampling values, and no training.
CALL = re.compile(
    r"\b(?:SamplingParams|GenerationConfig|generate|create|pipeline|pipe|chat|llm|model)\s?\("
    r'|"messages"\s?:|^PARAMETER\s|\s--temp\b',
    re.MULTILINE,
)
TRAINS = re.compile(r"\b(?:TrainingArguments|Trainer|lm_eval|num_fewshot|learning_rate)\b")


def evidence(snapshot: Snapshot) -> list[Evidence]:
    """Return facts from the header first, then from the prose, then from its examples."""
    text = snapshot.texts.get(FILE, "")
    prose: list[Advice] = []
    examples: list[Advice] = []
    for block in islice((b for b in blocks(text) if NAME.search(f"{b.columns} {b.text}")), MOST_BLOCKS):
        (examples if block.kind == "code" and CALL.search(block.text) else prose).extend(_advice(block))
    return [
        *_from_header(snapshot),
        *_facts(prose, Rule.CARD),
        *_facts((a for a in examples if a.value != 0 and a.key != "max_tokens"), Rule.CARD_EXAMPLE),
    ]


def _from_header(snapshot: Snapshot) -> Iterator[Evidence]:
    """Yield the values of ``inference.parameters``; the Hub's widget sends them."""
    card = metadata(snapshot)
    inference = card.get("inference")
    parameters = inference.get("parameters") if isinstance(inference, Mapping) else None
    for name, value in parameters.items() if isinstance(parameters, Mapping) else ():
        key = "repeat_penalty" if name == "repetition_penalty" else str(name)
        number = usable(key, value)
        if number is not None and key != "max_tokens":
            quote = f"inference.parameters.{key}: {number}"
            reason = Reason(CardReason.HEADER, quote=quote)
            yield Evidence(Rule.CARD_HEADER, f"parameters.{key}", number, FILE, reason, quote)


def metadata(snapshot: Snapshot) -> Mapping[str, Any]:
    """Return the card's YAML header: as the Hub read it, else from the file."""
    return mapping(snapshot.info.get("card") or _yaml(header(snapshot.texts.get(FILE, ""))))


def _yaml(text: str) -> Any:
    if not text or len(text) > LONGEST_HEADER:
        return {}
    try:
        return yaml_reader.read(text)
    except YamlError:
        return {}


def _advice(block: Block) -> list[Advice]:
    """Return the values in a block, if it or the text above it recommends."""
    above = [h[:SHORT] for h in block.headings]
    nearest = next((h for h in reversed(above) if MEASURED.search(h) or ADVISING.search(h)), "")
    if MEASURED.search(nearest):
        return []
    around = [b[:SHORT] for b in block.before]
    advised = any(ADVISING.search(h) for h in (block.title, *above)) or any(ADVICE.search(b) for b in around)
    mode = next((m for words in reversed((*above, *around)) if (m := mode_of(words))), None)
    if block.kind == "code":
        return _example(block.text, mode, advised)
    if block.kind == "row":
        return _row(block, mode, advised)
    advice: list[Advice] = []
    for sentence in card_advice.sentences(block.text):
        if advised or ADVICE.search(sentence):
            advice += _scoped(card_advice.read(sentence, mode), (*above, *around))
        mode = mode_of(sentence) or mode
    return advice


def _example(text: str, mode: Mode | None, advised: bool) -> list[Advice]:
    """Return the values of one example: a call, or bare settings under words that recommend them."""
    if TRAINS.search(text) or not (advised or CALL.search(text)):
        return []
    mode = mode_of(text) or mode
    return [Advice(v.key, v.number, card_advice.quoted(v.words), mode) for v in card_advice.values(text)]


def _row(block: Block, mode: Mode | None, advised: bool) -> list[Advice]:
    """Return the values of a row: a parameter in each column, or one parameter with a column a mode."""
    cells = [c.strip() for c in block.text.split("|")]
    if not (advised or any(ADVISING.search(c) for c in block.columns)):
        return []
    advice: list[Advice] = []
    label = cells[0][:SHORT]
    for column, cell in zip(block.columns[1:MOST_COLUMNS], cells[1:], strict=False):
        of_column = list(card_advice.values(f"{column} = {cell}"))
        of_row = list(card_advice.values(f"{label} = {cell}"))
        words = label if of_column else column
        if not MEASURED.search(words):
            its_mode, scope, quote = mode_of(words) or mode, scope_of(words), card_advice.quoted(block.text)
            advice += [Advice(v.key, v.number, quote, its_mode, scope) for v in of_column or of_row]
    return advice


def _scoped(advice: Sequence[Advice], around: Sequence[str]) -> Iterator[Advice]:
    """Yield the advice; where a sentence names no scope, with the scope of the nearest words around it."""
    scopes = [s for words in reversed(around) if (s := scope_of(words)) != "plain"]
    scope: Scope = scopes[0] if scopes else "plain"
    for one in advice:
        yield replace(one, scope=scope) if one.scope == "plain" else one


def _facts(advice: Iterable[Advice], rule: Rule) -> Iterator[Evidence]:
    grouped: dict[tuple[str, Mode | None], list[Advice]] = {}
    for one in advice:
        if usable(one.key, one.value) is not None:
            grouped.setdefault((one.key, one.mode), []).append(one)
    for (key, mode), group in grouped.items():
        yield _fact(key, mode, group, rule)


def _fact(key: str, mode: Mode | None, group: Sequence[Advice], rule: Rule) -> Evidence:
    """Return one value for one key and mode; values that differ become evidence without a value."""
    chosen = _widest_scope(group)
    values = list(dict.fromkeys(usable(key, a.value) for a in chosen))
    place = f"parameters.{key}" if mode is None else f"{MODES_KEY}.{mode}.{key}"
    quote, example = chosen[0].quote, rule is Rule.CARD_EXAMPLE
    if len(values) == 1 and all(a.clear for a in chosen):
        kind = CardReason.EXAMPLE if example else CardReason.RECOMMENDS
        reason = Reason(kind, key=key, value=values[0], mode=mode)
        return Evidence(rule, place, values[0], FILE, reason, quote)
    kind = CardReason.UNCLEAR_EXAMPLE if example else CardReason.UNCLEAR
    reason = Reason(kind, key=key, values=tuple(values), mode=mode)
    return Evidence(Rule.CARD_UNCLEAR, f"parameters.{key}", values, FILE, reason, quote)


def _widest_scope(group: Sequence[Advice]) -> Sequence[Advice]:
    """Return the advice for general use, else the advice without a purpose, else all."""
    for scope in ("general", "plain"):
        in_scope = [a for a in group if a.scope == scope]
        if in_scope:
            return in_scope
    return group
