"""A tokenizer.json run over texts: JSON in, one JSON object out.

In come ``tokenizer``, the text of the file, ``texts``, and ``drawn``: the numbers of tokens that a model has
drawn, a list for each answer.

``back``     each text after tokenization and back, special tokens kept.
``ids``      the tokens of each text, by their numbers.
``words``    number and text of parts of the vocabulary that are one token in a text of their own.
``exact``    whether its tokens are bytes, so that every text comes back to the last space.
``steady``   whether a text has the same tokens each time.
``behind``   what it adds behind a text by itself, as texts of tokens.
``split``    added tokens that stand in a text, and are not one token there.
``drawn``    for each list of drawn tokens their count, those ``cut`` and ``joined`` by the tokenizer in the
             same text, and the first such token.
``sampled``  words and parts of words in the vocabulary, of which a text can yield ``reached``.
"""

from __future__ import annotations

import json
import re
import sys
from collections import Counter
from collections.abc import Sequence
from typing import Any

from tokenizers import Tokenizer

SAMPLE = 400
SEARCHED = 4000  # numbers of the vocabulary that are looked at for words
SHORTEST = 3  # letters of a word in ASCII
SINGLE = 48
BROKEN = "\ufffd"


def answer(tokenizer_text: str, texts: Sequence[str], drawn: Sequence[Sequence[int]] = ()) -> dict[str, Any]:
    """Return the object for texts and drawn tokens; raises the errors of the library."""
    tokenizer = Tokenizer.from_str(tokenizer_text)
    tokenizer.no_truncation()  # of a training; no chat is cut or filled up so
    tokenizer.no_padding()
    ids = [_ids(tokenizer, text) for text in texts]
    back = [_text(tokenizer, each) for each in ids]
    numbers = sorted(tokenizer.get_vocab(with_added_tokens=False).values())
    some = numbers[:: max(1, len(numbers) // SAMPLE)]
    words = [word for word in (tokenizer.decode([n]) for n in some) if _is_word(word)]
    reached = sum(len(_ids(tokenizer, word)) == 1 for word in words)
    exact = type(tokenizer.decoder).__name__ == "ByteLevel"
    shown = {"ids": ids, "words": _single(tokenizer, numbers), "split": _split(tokenizer, texts, ids)}
    shown["steady"] = all(_ids(tokenizer, text) == each for text, each in zip(texts, ids, strict=True))
    shown["behind"] = _behind(tokenizer, words[0] if words else "a")
    shown["drawn"] = [_again(tokenizer, each) for each in drawn]
    return {"back": back, "exact": exact, "sampled": len(words), "reached": reached, **shown}


def _behind(tokenizer: Any, word: str) -> list[str]:
    """Return the tokens that stand behind a text where special ones are added."""
    plain, added = _ids(tokenizer, word), list(tokenizer.encode(word).ids)
    while added and added[: len(plain)] != plain:
        added.pop(0)
    return [_text(tokenizer, [number]) for number in added[len(plain) :]]


def _single(tokenizer: Any, numbers: Sequence[int]) -> list[tuple[int, str]]:
    """Return words of one token: up to ``SINGLE`` of ASCII, and as many with other letters."""
    found: dict[bool, list[tuple[int, str]]] = {True: [], False: []}
    for number in numbers[:: max(1, len(numbers) // SEARCHED)]:
        text = tokenizer.decode([number])
        some = found[text.isascii()]
        long = len(text.strip()) >= SHORTEST or not text.isascii()
        if len(some) < SINGLE and long and text.strip().isalpha() and _ids(tokenizer, text) == [number]:
            some.append((number, text))
    return [*found[True], *found[False]]


def _split(tokenizer: Any, texts: Sequence[str], ids: Sequence[Sequence[int]]) -> list[str]:
    """Return the added tokens that occur in a text more often than among its tokens."""
    added = {token.content: number for number, token in tokenizer.get_added_tokens_decoder().items()}
    if not added:
        return []
    longest = re.compile("|".join(map(re.escape, sorted(added, key=len, reverse=True))))
    wanted = [Counter(longest.findall(text)) for text in texts]
    pairs = list(zip(wanted, ids, strict=True))
    return [
        token for token, number in added.items() if any(w[token] > list(i).count(number) for w, i in pairs)
    ]


def _again(tokenizer: Any, drawn: Sequence[int]) -> dict[str, Any]:
    """Return how the tokenizer cuts the text of drawn tokens, compared by the places where tokens end.

    A token that is several by itself, too, or that has no text, is one that the tokenizer never makes.
    """
    numbers = [number for number in drawn if tokenizer.id_to_token(number) is not None]
    nameless = [str(number) for number in drawn if number not in numbers]
    while numbers and _text(tokenizer, numbers).endswith(BROKEN):
        numbers.pop()  # a letter that the limit of the answer cut
    written = _text(tokenizer, numbers)
    ends = _ends(tokenizer, numbers)
    own = {0, *_ends(tokenizer, _ids(tokenizer, written))}
    found: dict[str, Any] = {
        "tokens": len(nameless),
        "cut": len(nameless),
        "joined": 0,
        "example": next(iter(nameless), ""),
    }
    for start, end in zip([0, *ends], ends, strict=False):
        inside = any(start < place < end for place in own)
        text = written[start:end]
        if start == end or BROKEN in text:
            continue
        found["tokens"] += 1
        if {start, end} <= own and not inside:
            continue
        several = {start, end} <= own and len(_ids(tokenizer, text)) > 1
        found["cut" if several else "joined"] += 1
        found["example"] = found["example"] or text
    return found


def _ends(tokenizer: Any, numbers: Sequence[int]) -> list[int]:
    return [len(_text(tokenizer, numbers[:count])) for count in range(1, len(numbers) + 1)]


def _text(tokenizer: Any, numbers: Sequence[int]) -> str:
    return str(tokenizer.decode(numbers, skip_special_tokens=False))


def _ids(tokenizer: Any, text: str) -> list[int]:
    return list(tokenizer.encode(text, add_special_tokens=False).ids)


def _is_word(text: str) -> bool:
    return len(text.strip()) > 1 and text.strip().isalpha() and text.isascii()


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    sys.stdout.write(json.dumps(answer(asked["tokenizer"], asked["texts"], asked["drawn"])))
