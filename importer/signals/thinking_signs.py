"""What speaks for thinking beside a template that shows none: names, declared tokens, the card.

A template is often inherited. One without reasoning shows no model that never thinks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from importer.chat_template.markers import THINK
from importer.chat_template.study import TemplateAnalysis
from importer.chat_template.vocabulary import read_vocabulary
from importer.hub.snapshot import Snapshot, listed
from importer.reasons import Reason
from importer.signals.evidence import Evidence, Rule, Source
from importer.signals.family import base_models, match, own_name
from importer.signals.reasons import ShownReason, ThinkingSign
from importer.signals.tables import PARSERS, parser_table

# Words of vendors for models that reason; r1, o1 and their like are those of the first ones.
NAMED = re.compile(r"think|reason|(?<![a-z0-9])(?:r1|o1|qwq|cot)(?![a-z0-9])", re.IGNORECASE)
DENIED = re.compile(r"(?:non?|without|disabled?)[ _-]{0,2}(?:think|reason)", re.IGNORECASE)
TAGS = frozenset({"reasoning", "thinking", "chain-of-thought", "cot", "long-cot"})
CARD = "README.md"
CARD_LONGEST = 200_000  # characters
SPOKEN = re.compile(
    r"<think>|\bthinking mode|\breasoning (?:model|mode|traces?)|\bchains? of thought|\bdeep thinking"
)


def evidence(
    snapshot: Snapshot, analysis: TemplateAnalysis | None, ignore_name: bool = False
) -> list[Evidence]:
    """Return one fact with every sign, the name of the model first; none for a template that was not read."""
    if analysis is None or not analysis.samples:
        return []
    signs = [] if ignore_name else [*_named(snapshot), *_left_open(snapshot)]
    tokens = tuple(t.content for t in read_vocabulary(snapshot).tokens if THINK.fullmatch(t.content))
    signs += [Reason(ThinkingSign.TOKENS, tokens=tokens[:2])] if tokens else []
    signs += [] if ignore_name else _card(snapshot)
    thinking = analysis.thinking
    if thinking.markers is not None:
        signs.append(Reason(ThinkingSign.BLOCK, marker=thinking.markers[1]))
    elif thinking.switch is not None:
        signs.append(Reason(ThinkingSign.SWITCH, switch=thinking.switch))
    if not signs:
        return []
    reason = Reason(ShownReason.MAY_THINK, signs=tuple(signs))
    kinds = [str(sign.kind.value) for sign in signs]
    return [Evidence(Rule.THINKING_SIGN, "reasoning_parser", kinds, Source.REPOSITORY, reason)]


def _named(snapshot: Snapshot) -> Iterator[Reason]:
    """Yield the model's own name, else the first of its base models that speaks for thinking."""
    kinds = [(ThinkingSign.NAME, own_name(snapshot))]
    kinds += [(ThinkingSign.BASE, base) for base in base_models(snapshot)]
    for kind, name in kinds:
        if NAMED.search(name.rpartition("/")[2]) and not DENIED.search(name):
            yield Reason(kind, name=name)
            return


def _left_open(snapshot: Snapshot) -> Iterator[Reason]:
    """Yield the family of a chat model whose row leaves reasoning open: it is not known to have none."""
    found = match(parser_table(), own_name(snapshot))
    if found is not None and found.kind == "chat" and PARSERS[1] not in found.row.parsers:
        yield Reason(ThinkingSign.FAMILY, family=found.row.label)


def _card(snapshot: Snapshot) -> list[Reason]:
    tags = [t for t in listed(snapshot.info.get("tags")) if isinstance(t, str) and t.lower() in TAGS]
    text = snapshot.texts.get(CARD, "")[:CARD_LONGEST]
    words = SPOKEN.search(text)
    if tags or (words is not None and not DENIED.search(text)):
        return [
            Reason(ThinkingSign.CARD, words=tags[0] if tags else " ".join(str(words and words[0]).split()))
        ]
    return []
