"""Steps that change a tokenizer: its tokens, its vocabulary, its merges."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.faults.fault import Site
from tests.faults.saved_files import Beside
from tests.faults.steps import read_json, write_json

TOKENIZER = "tokenizer.json"
SETTINGS = "tokenizer_config.json"


@dataclass(frozen=True)
class AddedToken:
    """The tokenizer has one more token, with this number."""

    text: str
    number: int
    special: bool = False

    def plant(self, site: Site) -> None:
        path, settings = site.folder / "tokenizer.json", site.folder / "tokenizer_config.json"
        flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
        told = {"content": self.text, **flags, "special": self.special}
        data = json.loads(path.read_text(encoding="utf-8"))
        data["added_tokens"].append({"id": self.number, **told})
        data["added_tokens"].sort(key=lambda token: token["id"])
        path.write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")
        kept = json.loads(settings.read_text(encoding="utf-8"))
        kept["added_tokens_decoder"][str(self.number)] = told
        settings.write_text(json.dumps(kept, ensure_ascii=False), encoding="utf-8")


@dataclass(frozen=True)
class Flagged:
    """A flag of added tokens has this value, in both files that hold it."""

    flag: str
    value: bool
    tokens: tuple[str, ...]

    def plant(self, site: Site) -> None:
        for name in ("tokenizer.json", "tokenizer_config.json"):
            path = site.folder / name
            data = json.loads(path.read_text(encoding="utf-8"))
            added = data["added_tokens"] if "added_tokens" in data else data["added_tokens_decoder"].values()
            for token in added:
                if token["content"] in self.tokens:
                    token[self.flag] = self.value
            path.write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")


@dataclass(frozen=True)
class FarBytesLost:
    """Tokens for bytes beyond ASCII, and ones merged of them, have names that no text holds."""

    def plant(self, site: Site) -> None:
        path = site.folder / "tokenizer.json"
        data = json.loads(path.read_text(encoding="utf-8"))
        added = {token["content"] for token in data["added_tokens"]}
        kept = set("\u0120\u010a") | {chr(c) for c in range(0x21, 0x7F)}
        model = data["model"]
        model["vocab"] = {
            w if w in added or set(w) <= kept else f"<unused{n}>": n for w, n in model["vocab"].items()
        }
        model["merges"] = [m for m in model["merges"] if set("".join(m)) <= kept]
        path.write_text(json.dumps(data, ensure_ascii=False), encoding="utf-8")


@dataclass(frozen=True)
class TokenSays:
    """Keys of an added token, in both files that hold them."""

    text: str
    keys: Mapping[str, Any]

    def plant(self, site: Site) -> None:
        data, told = read_json(site, TOKENIZER), read_json(site, SETTINGS)
        for token in (*data["added_tokens"], *told["added_tokens_decoder"].values()):
            if token["content"] == self.text:
                token.update(self.keys)
        write_json(site, TOKENIZER, data)
        write_json(site, SETTINGS, told)


@dataclass(frozen=True)
class TokenAdded:
    """A further token: at the end of the vocabulary, or in the place of one of its words."""

    text: str
    place: str = ""
    special: bool = False

    def plant(self, site: Site) -> None:
        data, told = read_json(site, TOKENIZER), read_json(site, SETTINGS)
        vocabulary = data["model"]["vocab"]
        number = vocabulary.pop(self.place) if self.place else max(vocabulary.values()) + 1
        if self.place:
            vocabulary[self.text] = number
        flags = dict.fromkeys(("lstrip", "rstrip", "normalized", "single_word"), False)
        token = {"content": self.text, "special": self.special, **flags}
        data["added_tokens"].append({"id": number, **token})
        told["added_tokens_decoder"][str(number)] = token
        write_json(site, TOKENIZER, data)
        write_json(site, SETTINGS, told)


@dataclass(frozen=True)
class MergesSorted:
    """The merges stand in the order of letters, and no more in that of training."""

    def plant(self, site: Site) -> None:
        data = read_json(site, TOKENIZER)
        data["model"]["merges"].sort()
        write_json(site, TOKENIZER, data)


@dataclass(frozen=True)
class NumberOf:
    """An added token has another one's number, in both files that hold them."""

    text: str
    other: str

    def plant(self, site: Site) -> None:
        data, told = read_json(site, TOKENIZER), read_json(site, SETTINGS)
        number = data["model"]["vocab"][self.other]
        data["model"]["vocab"].pop(self.text)
        for token in data["added_tokens"]:
            if token["content"] == self.text:
                token["id"] = number
        kept = told["added_tokens_decoder"]
        told["added_tokens_decoder"] = {i: t for i, t in kept.items() if t["content"] != self.text}
        write_json(site, TOKENIZER, data)
        write_json(site, SETTINGS, told)


@dataclass(frozen=True)
class TokenFor:
    """A text is an added token now, and has the number of a word that is in few texts."""

    text: str
    word: str

    def plant(self, site: Site) -> None:
        data, told = read_json(site, TOKENIZER), read_json(site, SETTINGS)
        number = data["model"]["vocab"].pop(self.word)
        flags = dict.fromkeys(("lstrip", "rstrip", "normalized", "single_word", "special"), False)
        token = {"content": self.text, **flags}
        data["model"]["vocab"][self.text] = number
        data["model"]["merges"] = [m for m in data["model"]["merges"] if self.word not in (*m, "".join(m))]
        data["added_tokens"].append({"id": number, **token})
        told["added_tokens_decoder"][str(number)] = token
        write_json(site, TOKENIZER, data)
        write_json(site, SETTINGS, told)


@dataclass(frozen=True)
class MergesAsText:
    """Merges are written as older libraries did: two words and a space between them."""

    def plant(self, site: Site) -> None:
        data = read_json(site, TOKENIZER)
        data["model"]["merges"] = [" ".join(merge) for merge in data["model"]["merges"]]
        write_json(site, TOKENIZER, data)


@dataclass(frozen=True)
class WordsAdded:
    """Pieces of the vocabulary were added as tokens once more: they are found within words, too."""

    pieces: tuple[str, ...]

    def plant(self, site: Site) -> None:
        data, told = read_json(site, TOKENIZER), read_json(site, SETTINGS)
        flags = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized", "special"), False)
        for piece in self.pieces:
            number = data["model"]["vocab"][piece]
            data["added_tokens"].append({"id": number, "content": piece, **flags})
            told["added_tokens_decoder"][str(number)] = {"content": piece, **flags}
        data["added_tokens"].sort(key=lambda token: token["id"])
        write_json(site, TOKENIZER, data)
        write_json(site, SETTINGS, told)


@dataclass(frozen=True)
class OldFiles:
    """Vocabulary and merges lie beside in the files of slow tokenizers, too."""

    def plant(self, site: Site) -> None:
        model = read_json(site, TOKENIZER)["model"]
        Beside("vocab.json", json.dumps(model["vocab"], ensure_ascii=False)).plant(site)
        merges = "".join(f"{one} {two}\n" for one, two in model["merges"])
        Beside("merges.txt", f"#version: 0.2\n{merges}").plant(site)
