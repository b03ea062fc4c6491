"""Where an answer ends: the end tokens that the files list, and the one that the template itself writes.

An engine stops at ``eos_token_id`` of the generation config (of config.json where there is none) and at the
tokenizer's ``eos_token``. A template whose end of turn is neither gives answers that never end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from importer.evidence.fact import Evidence
from importer.evidence.sampling import FILE as GENERATION
from importer.hub.snapshot import Snapshot
from importer.template import vocabulary
from importer.template.study import Study
from importer.template.vocabulary import Token

CONFIG = "config.json"
TOKENIZER = "tokenizer_config.json"
TEMPLATE = "the chat template"
MOST = 32  # end tokens that are believed


def evidence(snapshot: Snapshot, study: Study | None) -> list[Evidence]:
    """The end tokens as a fact, and a stop word where the template's end of turn is none of them."""
    tokens = vocabulary.read(snapshot)
    known = {t.content: t for t in tokens.tokens}
    texts = {t.id: t.content for t in tokens.tokens if t.id is not None}
    source, ids = _listed(snapshot)
    eos = known.get(tokens.named.get("eos_token", ""))
    if eos is not None and eos.id is not None:
        ids = list(dict.fromkeys([*ids, eos.id]))
    facts = []
    turn = None if study is None else _turn(study, known)
    if turn is not None and turn != eos and _is_missing(turn, ids, texts):
        facts.append(_stop(turn, _shown(ids, texts)))
        ids += [turn.id] if turn.id is not None else []
    if ids:
        says = f"eos_token_id in {source} and the tokenizer's eos_token"
        if source == TOKENIZER:
            says = "the tokenizer's eos_token"
        says += ", and the template's end of turn" if facts else ""
        ends = {str(i): texts.get(i) for i in ids}
        facts.append(Evidence("end-tokens", "end_tokens", ends, source, says))
    return facts


def _stop(turn: Token, listed: str) -> Evidence:
    says = f"the template ends an answer with {turn.content}, which no list of end tokens has ({listed})"
    return Evidence("end-of-turn", "stopwords", [turn.content], TEMPLATE, says, turn.content)


def _shown(ids: Iterable[int], texts: Mapping[int, str]) -> str:
    return ", ".join(texts.get(i) or f"token {i}" for i in ids) or "none is listed"


def _listed(snapshot: Snapshot) -> tuple[str, list[int]]:
    """The file that engines hear, and its ids: the generation config's alone, where there is one."""
    for path in (GENERATION, CONFIG):
        data = snapshot.json(path)
        if data:
            ids = _ids(data)
            if ids or path == GENERATION:
                return (path if ids else TOKENIZER), ids
    return TOKENIZER, []


def _ids(data: Mapping[str, Any]) -> list[int]:
    """``eos_token_id``, one or several, also under ``text_config``."""
    inner = data.get("text_config")
    for place in (data, inner if isinstance(inner, Mapping) else {}):
        value = place.get("eos_token_id")
        ids = [v for v in (value if isinstance(value, list) else [value]) if type(v) is int and v >= 0]
        if ids:
            return list(dict.fromkeys(ids))[:MOST]
    return []


def _is_missing(turn: Token, ids: Sequence[int], texts: Mapping[int, str]) -> bool:
    """Whether no list has it; where an id without a text might be it, that is not known."""
    return turn.id not in ids and (turn.id is not None or all(i in texts for i in ids))


def _turn(study: Study, known: Mapping[str, Token]) -> Token | None:
    """What ends a turn, if it is one token of its own and stands in nothing that a model writes before."""
    turn = known.get(study.end_of_turn)
    inside = [s.completion for s in study.samples]
    safe = turn is not None and turn.special and inside and not any(turn.content in text for text in inside)
    return turn if safe else None
