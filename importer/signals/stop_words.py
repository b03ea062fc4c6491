"""End tokens of answers: those that the files list, and the end of turn that the template writes.

An engine stops at ``eos_token_id`` of the generation config (of config.json without one) and at the
tokenizer's ``eos_token``. A template with another end of turn gives answers that never end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from importer.chat_template import vocabulary
from importer.chat_template.study import TemplateAnalysis
from importer.chat_template.vocabulary import Token
from importer.hub.snapshot import Snapshot
from importer.reasons import Reason
from importer.signals.evidence import Evidence, Rule, Source
from importer.signals.reasons import StopReason
from importer.signals.sampling import FILE as GENERATION

CONFIG = "config.json"
TOKENIZER = "tokenizer_config.json"
MOST = 32  # end tokens that are read


def evidence(snapshot: Snapshot, analysis: TemplateAnalysis | None) -> list[Evidence]:
    """Return the end tokens, and a stop word where the template's end of turn is not among them."""
    tokens = vocabulary.read(snapshot)
    known = {t.content: t for t in tokens.tokens}
    texts = {t.id: t.content for t in tokens.tokens if t.id is not None}
    source, ids = _listed(snapshot)
    eos = known.get(tokens.named.get("eos_token", ""))
    if eos is not None and eos.id is not None:
        ids = list(dict.fromkeys([*ids, eos.id]))
    turns = [] if analysis is None else _turns(analysis, known)
    missing = [t for t in turns if t != eos and _is_missing(t, ids, texts)]
    facts = []
    if analysis is not None and missing:
        facts.append(_stop(analysis, [t.content for t in missing], _shown(ids, texts)))
        ids += [t.id for t in missing if t.id is not None]
    if ids:
        reason = Reason(StopReason.LISTED, file=None if source == TOKENIZER else source, template=bool(facts))
        ends = {str(i): texts.get(i) for i in ids}
        facts.append(Evidence(Rule.END_TOKENS, "end_tokens", ends, source, reason))
    return facts


def _stop(analysis: TemplateAnalysis, words: list[str], listed: tuple[str | Reason, ...]) -> Evidence:
    reason = Reason(
        StopReason.END_OF_TURN, ends=bool(analysis.end_of_turn), words=tuple(words), listed=listed
    )
    return Evidence(Rule.END_OF_TURN, "stopwords", words, Source.TEMPLATE, reason, " and ".join(words))


def _shown(ids: Iterable[int], texts: Mapping[int, str]) -> tuple[str | Reason, ...]:
    return tuple(texts.get(i) or Reason(StopReason.UNNAMED, id=i) for i in ids)


def _listed(snapshot: Snapshot) -> tuple[str, list[int]]:
    """Return the file that engines read, and its ids: the generation config's alone, if it exists."""
    for path in (GENERATION, CONFIG):
        data = snapshot.json(path)
        if data:
            ids = _ids(data)
            if ids or path == GENERATION:
                return (path if ids else TOKENIZER), ids
    return TOKENIZER, []


def _ids(data: Mapping[str, Any]) -> list[int]:
    """Return the ids under ``eos_token_id``, one or several, also under ``text_config``."""
    inner = data.get("text_config")
    for place in (data, inner if isinstance(inner, Mapping) else {}):
        value = place.get("eos_token_id")
        ids = [v for v in (value if isinstance(value, list) else [value]) if type(v) is int and v >= 0]
        if ids:
            return list(dict.fromkeys(ids))[:MOST]
    return []


def _is_missing(turn: Token, ids: Sequence[int], texts: Mapping[int, str]) -> bool:
    """Return whether no list has the token; False where an id without a text might be the token."""
    return turn.id not in ids and (turn.id is not None or all(i in texts for i in ids))


def _turns(analysis: TemplateAnalysis, known: Mapping[str, Token]) -> list[Token]:
    """Return the special tokens that end a turn, or begin the next, and stand in no completion."""
    inside = [s.completion for s in analysis.samples]
    ends = [analysis.end_of_turn] if analysis.end_of_turn else analysis.next_turns
    tokens = [known[end] for end in ends if end in known]
    return [t for t in tokens if t.special and inside and not any(t.content in text for text in inside)]
