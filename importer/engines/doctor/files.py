"""Checks of what the model's files say of each other, and of the document."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from importer.engines import abilities
from importer.engines.doctor.case import Case
from importer.engines.doctor.result import Fine, NotApplicable, Result, Trouble
from importer.errors import RepositoryError
from importer.evidence import context as lengths
from importer.hub import headers, local
from importer.hub.weights import weight_files
from importer.template import source

TOKENIZER, SETTINGS = "tokenizer.json", "tokenizer_config.json"
MARKER = re.compile(r"<[^<>\s{}'\"]{2,40}>")
PLAIN = re.compile(r"[\u0120\u2581]?[A-Za-z]{1,40}")  # a word, behind the sign of a space or not
TIED = "tie_word_embeddings"
PADDED = 1024  # rows
LARGEST = 64 * 2**20  # bytes of a tokenizer that are read


def tokenizer(case: Case) -> Result:
    """Whether the tokenizer is the one that its settings, and the size of the vocabulary, speak of."""
    if case.weights is None:
        return NotApplicable("the model's files are not on this disk")
    given = dict(_added(_json(case.weights / TOKENIZER).get("added_tokens")))
    told = dict(_decoder(_json(case.weights / SETTINGS).get("added_tokens_decoder")))
    both = [i for i in sorted(told) if i in given]
    if not both:
        return NotApplicable(f"{TOKENIZER} and {SETTINGS} list no tokens that could differ")
    remedy = "Fetch both from the repository that the weights are from."
    apart = [i for i in both if given[i] != told[i]]
    if apart:
        i, stops = apart[0], 2 * len(apart) > len(both)
        says = f"token {i} is {given[i]!r} in {TOKENIZER} and {told[i]!r} in {SETTINGS}"
        whose = "the tokenizer is another model's" if stops else "the tokenizer's files differ"
        return Trouble(f"{whose}: {says}", remedy, stops=stops, part="configuration")
    lost = next(_lost(case.weights), None)
    if lost is not None:
        says = f"{lost} is in the vocabulary and in the chat template, and {TOKENIZER} cuts it into pieces"
        return Trouble(f"a token is lost: {says}", remedy, part="configuration")
    return Fine(f"{TOKENIZER} and {SETTINGS} agree on {len(both)} tokens")


def _lost(folder: Path) -> Iterator[str]:
    """Markers of the template that the vocabulary has, and that no text can become: added tokens no more."""
    data = _json(folder / TOKENIZER)
    model = data.get("model")
    vocabulary = model.get("vocab") if isinstance(model, dict) else None
    if not isinstance(vocabulary, dict) or not isinstance(model, dict) or not model.get("merges"):
        return
    added = {text for _, text in _added(data.get("added_tokens"))}
    template = source.find(local.resolve(str(folder), folder))
    markers = dict.fromkeys(MARKER.findall(template.text)) if template is not None else {}
    wanted = [marker for marker in markers if marker in vocabulary and marker not in added]
    merged = {"".join(m if isinstance(m, list) else str(m).split(" ")) for m in model["merges"]}
    yield from (marker for marker in wanted if marker not in merged)


def _added(listed: Any) -> Iterator[tuple[int, str]]:
    for token in listed if isinstance(listed, list) else ():
        if isinstance(token, dict) and isinstance(token.get("id"), int):
            yield token["id"], str(token.get("content"))


def _decoder(table: Any) -> Iterator[tuple[int, str]]:
    for number, token in table.items() if isinstance(table, dict) else ():
        if number.isdecimal() and isinstance(token, dict):
            yield int(number), str(token.get("content"))


def ends(case: Case) -> Result:
    """Whether the tokens that end a text are markers, and none of them a plain word."""
    if case.weights is None:
        return NotApplicable("the model's files are not on this disk")
    data = _json(case.weights / TOKENIZER)
    model = data.get("model")
    vocabulary = model.get("vocab") if isinstance(model, dict) else None
    if not isinstance(vocabulary, dict):
        return NotApplicable(f"{TOKENIZER} lists no tokens by name")
    added = {number for number, _ in _added(data.get("added_tokens"))}
    words = {i: text for text, i in vocabulary.items() if i not in added and PLAIN.fullmatch(text)}
    for file in ("generation_config.json", "config.json"):
        told = _json(case.weights / file).get("eos_token_id")
        wrong = [i for i in (told if isinstance(told, list) else [told]) if isinstance(i, int) and i in words]
        if wrong:
            says = f"{file} ends texts at token {wrong[0]}, which is the word {words[wrong[0]]!r}"
            remedy = f"Take {wrong[0]} out of eos_token_id in {file}, or fetch that file anew."
            return Trouble(says, remedy, stops=True, part="configuration")
    return Fine("no text ends at a plain word")


def head(case: Case) -> Result:
    """Whether the weights hold an output layer, where config.json says that it is not the embedding."""
    if case.weights is None:
        return NotApplicable("the model's files are not on this disk")
    config = case.config()
    sections = [config, nested] if isinstance(nested := config.get("text_config"), dict) else [config]
    words = next((n for s in sections if isinstance(n := s.get("vocab_size"), int) and n > 0), None)
    if words is None or all(section.get(TIED) is not False for section in sections):
        return NotApplicable("config.json does not say that the output layer is one of its own")
    snapshot = local.resolve(str(case.weights), case.weights)
    try:
        found = headers.tensors(snapshot, [file.path for file in weight_files(snapshot.files)])
    except RepositoryError as error:
        return NotApplicable(error.message)
    wide = {name.rpartition(".")[0] for name, tensor in found.items() if _spans(tensor.shape, words)}
    if len(wide) != 1:
        return Fine("the weights hold an output layer") if wide else NotApplicable("no tensor is that wide")
    says = f"config.json says {TIED}: false, and the weights hold {wide.pop()} alone and no output layer"
    remedy = f'Write "{TIED}": true in config.json, or fetch the weights anew.'
    return Trouble(says, remedy, part="configuration")


def _spans(shape: tuple[int, ...], words: int) -> bool:
    """Whether a tensor has a row for every word; vocabularies are padded by a few."""
    return len(shape) > 1 and any(words <= side <= words + PADDED for side in shape)


def context(case: Case) -> Result:
    """Whether the document's context is within what the model's files allow."""
    document = case.document or {}
    wanted = document.get("max_model_len") or document.get("context_size")
    if case.weights is None or case.engine is None or not isinstance(wanted, int):
        return NotApplicable("the document names no context, or the model's files are not on this disk")
    if (document.get("engine_args") or {}).get("hf_overrides"):
        return NotApplicable("the document overrides the model's configuration")
    version = case.installed.version if case.installed is not None else None
    snapshot = local.resolve(str(case.weights), case.weights)
    found = lengths.derive(snapshot, abilities.load(case.engine.name, version))
    if found is None or not found.named:
        return NotApplicable("the model's files name no longest context")
    if wanted > found.tokens:
        says = f"the document's context is {wanted:,} tokens, and config.json says {found.quote}"
        return Trouble(says, f"Set max_model_len to {found.tokens}.", part="configuration")
    return Fine(f"{wanted:,} of {found.tokens:,} tokens")


def _json(path: Path) -> dict[str, Any]:
    """A file's object; empty where there is none that can be read."""
    try:
        with path.open("rb") as file:
            data = json.loads(file.read(LARGEST))
    except (OSError, ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}
