"""Token numbers beyond the embedding: an engine that meets one dies, or reads another row.

A tokenizer may have fewer tokens than the embedding has rows: those are padding. Numbers for pictures and
sounds that ``config.json`` names are replaced before the embedding.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from importer.chat_template.vocabulary import CONFIG, read_vocabulary
from importer.frozen import frozen
from importer.hub.snapshot import Snapshot, listed, whole
from importer.reasons import Reason
from importer.signals.architecture import FILE, config_of, text_config
from importer.signals.evidence import Evidence, Rule, warning
from importer.signals.reasons import TokenNumberReason

KEY = "token_numbers"
GENERATION = "generation_config.json"
NUMBERED = ("_token_id", "_token_index", "_token_ids")
ENDS = ("bos_token_id", "eos_token_id")
# Roles of text; a number under any other name stands for a picture, a sound or a film.
ROLES = ("bos", "eos", "pad", "unk", "sep", "cls", "mask", "decoder_start", "forced_bos", "forced_eos")
OF_TEXT = frozenset(f"{role}{number}" for role in ROLES for number in NUMBERED)


@frozen
class BeyondToken:
    """A token without a row in the embedding.

    ``needed``  whether every conversation has it: the template writes it, or a text begins or ends with it.
    """

    number: int
    content: str
    needed: bool


def size(snapshot: Snapshot) -> int | None:
    """Return ``vocab_size`` of the language model: the rows that an engine gives the embedding."""
    config = config_of(snapshot)
    named = (whole(part.get("vocab_size"), 1) for part in (text_config(config), config))
    return next((number for number in named if number is not None), None)


def declared(snapshot: Snapshot) -> dict[int, str]:
    """Return the numbers that the small files declare, with their texts."""
    return {t.id: t.content for t in read_vocabulary(snapshot).tokens if t.id is not None}


def beyond(
    snapshot: Snapshot, numbers: Mapping[int, str], rows: int | None, template: str
) -> tuple[BeyondToken, ...]:
    """Return the tokens whose number has no row, the needed ones first; none for an unknown embedding."""
    if rows is None:
        return ()
    config = config_of(snapshot)
    parts = (snapshot.json(GENERATION), config, text_config(config))
    replaced, ends = (
        set(_placeholders(snapshot)),
        {n for p in parts for key in ENDS for n in _numbers(p.get(key))},
    )
    named = read_vocabulary(snapshot).named
    roles = {named.get("bos_token"), named.get("eos_token")}
    found = [
        BeyondToken(number, text, number in ends or text in roles or bool(text and text in template))
        for number, text in sorted(numbers.items())
        if number >= rows and number not in replaced
    ]
    return tuple(sorted(found, key=lambda token: not token.needed))


def evidence(found: Sequence[BeyondToken], rows: int) -> Evidence:
    """Return the warning about tokens that a user may write; ``rows`` are those of the weights."""
    names = tuple(token.content for token in found[:3])
    reason = Reason(TokenNumberReason.BEYOND, tokens=names, count=len(found), rows=rows)
    value = {str(token.number): token.content for token in found}
    return Evidence(Rule.TOKENIZER, KEY, value, CONFIG, warning(reason))


def _placeholders(snapshot: Snapshot) -> Iterator[int]:
    config = snapshot.json(FILE)
    parts = [config, *(part for part in config.values() if isinstance(part, Mapping))]
    for part in parts:
        for key, value in part.items():
            if key.endswith(NUMBERED) and key not in OF_TEXT:
                yield from _numbers(value)


def _numbers(value: Any) -> Iterable[int]:
    values = listed(value) or [value]
    return [number for one in values if (number := whole(one)) is not None]
