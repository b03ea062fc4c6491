"""The synthetic tokenizer for parsers, where the repository's own is not on disk."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Any

from tokenizers import AddedToken, Regex, Tokenizer
from tokenizers.decoders import ByteLevel as ByteLevelDecoder
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel, Sequence, Split
from transformers import PreTrainedTokenizerFast

from .wire import UNLOADED, accident, describe

# Words and the start of a closing tag are whole tokens, as in real vocabularies; all else is bytes.
WORD = r" ?(?:[A-Za-z]+|</)"
COMMON = ("think", "</", " </")  # in every real vocabulary; parsers look them up
Number = Callable[[str], "int | None"]


def synthetic(description: Mapping[str, Any], texts: Iterable[str], number: Number | None = None) -> Any:
    """Return a byte-level tokenizer in which, beside words, exactly the declared markers are single tokens.

    ``description``: ``tokens`` as ``[{"content", "special"}]``, and optionally ``eos``, ``bos`` and
    ``chat_template``. ``number`` gives the id of a text that is one token in a vocabulary to be matched;
    bytes are 0 to 255 in the order that all byte-level vocabularies share.
    """
    ends = {f"{key}_token": description[key] for key in ("eos", "bos") if description.get(key)}
    markers = {token["content"]: bool(token["special"]) for token in description["tokens"]}
    markers |= {end: True for end in ends.values() if end not in markers}
    words = {word for text in texts for word in re.findall(WORD, text) if len(word) > 1}

    vocabulary = {byte: rank for rank, byte in enumerate(sorted(ByteLevel.alphabet()))}
    for word in sorted(words.union(COMMON)):
        token_id = len(vocabulary) if number is None else number(word)
        if token_id is not None:
            vocabulary[word.replace(" ", "\u0120")] = token_id
    for marker in markers:
        token_id = None if number is None else number(marker)
        if token_id is not None:
            vocabulary[marker] = token_id

    core = Tokenizer(BPE(vocab=vocabulary, merges=[], ignore_merges=True))
    core.pre_tokenizer = Sequence(
        [Split(Regex(WORD), "isolated"), ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    core.decoder = ByteLevelDecoder()
    core.add_tokens(
        [AddedToken(text, special=special, normalized=False) for text, special in markers.items()]
    )

    tokenizer = PreTrainedTokenizerFast(tokenizer_object=core, clean_up_tokenization_spaces=False, **ends)
    tokenizer.chat_template = description.get("chat_template")
    return tokenizer


def own(directory: str, load: Callable[[], Any]) -> Any:
    """Return the repository's tokenizer; ``None``, and a note on the wire, where it does not load.

    It may need code of its own. Raises the error of an accident: a synthetic tokenizer would hide it.
    """
    UNLOADED.clear()
    try:
        return load()
    except Exception as error:
        if accident(error):
            raise
        UNLOADED[directory] = describe(error)
        return None


def encode(tokenizer: Any, text: str) -> list[int]:
    """Return the token ids of a rendered text; no token is added."""
    return list(_encoded(tokenizer, text))


def forget() -> None:
    """Drop the tokenizers of earlier questions."""
    _encoded.cache_clear()


@lru_cache(maxsize=512)  # dozens of parsers read the same few texts
def _encoded(tokenizer: Any, text: str) -> tuple[int, ...]:
    return tuple(tokenizer.encode(text, add_special_tokens=False))


class Watched(dict[str, int]):
    """A vocabulary that records tokens that were looked up and are missing."""

    def __init__(self, vocabulary: Mapping[str, int]) -> None:
        super().__init__(vocabulary)
        self.missed: dict[str, None] = {}

    def _miss(self, token: object) -> None:
        if isinstance(token, str) and not super().__contains__(token):
            self.missed[token] = None

    def get(self, token: str, default: Any = None) -> Any:
        self._miss(token)
        return super().get(token, default)

    def __getitem__(self, token: str) -> int:
        self._miss(token)
        return super().__getitem__(token)

    def __contains__(self, token: object) -> bool:
        self._miss(token)
        return super().__contains__(token)


def common_suffix(markers: Iterable[str]) -> str:
    """Return the suffix of most markers from the colon on (``:abc`` in ``<tool:abc>``), or ""."""
    suffixes = Counter(match[1] for marker in markers if (match := re.fullmatch(r"</?\w+(:\w+)>", marker)))
    suffix, number = suffixes.most_common(1)[0] if suffixes else ("", 0)
    return suffix if number > 2 else ""
