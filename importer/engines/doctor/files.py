"""Checks of what the model's files say of each other, and of the document."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from importer.engines import abilities
from importer.engines.deaths import CONFIGURATION
from importer.engines.doctor.case import Case
from importer.engines.doctor.kinds import DoctorReason, DoctorRemedy
from importer.engines.doctor.result import Fine, NotApplicable, Result, Trouble, TroubleSeverity
from importer.errors import RepositoryError
from importer.evidence import context as lengths
from importer.hub import headers, local
from importer.hub.weights import weight_files
from importer.reasons import Reason
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
        return NotApplicable(Reason(DoctorReason.FILES_AWAY))
    given = dict(_added(_json(case.weights / TOKENIZER).get("added_tokens")))
    told = dict(_decoder(_json(case.weights / SETTINGS).get("added_tokens_decoder")))
    both = [i for i in sorted(told) if i in given]
    if not both:
        return NotApplicable(Reason(DoctorReason.ADDED_TOKENS_NONE, file=TOKENIZER, settings=SETTINGS))
    remedy = Reason(DoctorRemedy.FETCH_TOKENIZER)
    apart = [i for i in both if given[i] != told[i]]
    if apart:
        i, foreign = apart[0], 2 * len(apart) > len(both)
        kind = DoctorReason.ADDED_TOKENS_FOREIGN if foreign else DoctorReason.ADDED_TOKENS_DIFFER
        differ = Reason(kind, number=i, given=given[i], told=told[i], file=TOKENIZER, settings=SETTINGS)
        severity = TroubleSeverity.STOPS if foreign else TroubleSeverity.WARNING
        return Trouble(differ, remedy, severity, CONFIGURATION)
    lost = next(_lost(case.weights), None)
    if lost is not None:
        marker = Reason(DoctorReason.MARKER_LOST, marker=lost, file=TOKENIZER)
        return Trouble(marker, remedy, part=CONFIGURATION)
    return Fine(Reason(DoctorReason.ADDED_TOKENS, file=TOKENIZER, settings=SETTINGS, count=len(both)))


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
        return NotApplicable(Reason(DoctorReason.FILES_AWAY))
    data = _json(case.weights / TOKENIZER)
    model = data.get("model")
    vocabulary = model.get("vocab") if isinstance(model, dict) else None
    if not isinstance(vocabulary, dict):
        return NotApplicable(Reason(DoctorReason.TOKENS_UNNAMED, file=TOKENIZER))
    added = {number for number, _ in _added(data.get("added_tokens"))}
    words = {i: text for text, i in vocabulary.items() if i not in added and PLAIN.fullmatch(text)}
    for file in ("generation_config.json", "config.json"):
        told = _json(case.weights / file).get("eos_token_id")
        wrong = [i for i in (told if isinstance(told, list) else [told]) if isinstance(i, int) and i in words]
        if wrong:
            number = wrong[0]
            word = Reason(DoctorReason.END_IS_WORD, file=file, number=number, word=words[number])
            remedy = Reason(DoctorRemedy.DROP_END, number=number, file=file)
            return Trouble(word, remedy, part=CONFIGURATION)
    return Fine(Reason(DoctorReason.ENDS))


def head(case: Case) -> Result:
    """Whether the weights hold an output layer, where config.json says that it is not the embedding."""
    if case.weights is None:
        return NotApplicable(Reason(DoctorReason.FILES_AWAY))
    config = case.config()
    sections = [config, nested] if isinstance(nested := config.get("text_config"), dict) else [config]
    words = next((n for s in sections if isinstance(n := s.get("vocab_size"), int) and n > 0), None)
    if words is None or all(section.get(TIED) is not False for section in sections):
        return NotApplicable(Reason(DoctorReason.HEAD_TIED))
    snapshot = local.resolve(str(case.weights), case.weights)
    try:
        found = headers.tensors(snapshot, [file.path for file in weight_files(snapshot.files)])
    except RepositoryError as error:
        return NotApplicable(Reason(DoctorReason.HEADERS_UNREADABLE, problem=error))
    wide = {name.rpartition(".")[0] for name, tensor in found.items() if _spans(tensor.shape, words)}
    if len(wide) != 1:
        narrow = NotApplicable(Reason(DoctorReason.HEAD_NARROW))
        return Fine(Reason(DoctorReason.HEAD_HELD)) if wide else narrow
    lacking = Reason(DoctorReason.HEAD_LACKING, key=TIED, tensor=wide.pop())
    return Trouble(lacking, Reason(DoctorRemedy.TIE_EMBEDDINGS, key=TIED), part=CONFIGURATION)


def _spans(shape: tuple[int, ...], words: int) -> bool:
    """Whether a tensor has a row for every word; vocabularies are padded by a few."""
    return len(shape) > 1 and any(words <= side <= words + PADDED for side in shape)


def context(case: Case) -> Result:
    """Whether the document's context is within what the model's files allow."""
    document = case.document or {}
    wanted = document.get("max_model_len") or document.get("context_size")
    if case.weights is None or case.engine is None or not isinstance(wanted, int):
        return NotApplicable(Reason(DoctorReason.CONTEXT_UNKNOWN))
    if (document.get("engine_args") or {}).get("hf_overrides"):
        return NotApplicable(Reason(DoctorReason.CONTEXT_OVERRIDDEN))
    version = case.installed.version if case.installed is not None else None
    snapshot = local.resolve(str(case.weights), case.weights)
    found = lengths.derive(snapshot, abilities.load(case.engine.name, version))
    if found is None or not found.named:
        return NotApplicable(Reason(DoctorReason.CONTEXT_UNNAMED))
    if wanted > found.tokens:
        long = Reason(DoctorReason.CONTEXT_TOO_LONG, wanted=wanted, quote=found.quote)
        return Trouble(long, Reason(DoctorRemedy.SET_CONTEXT, tokens=found.tokens), part=CONFIGURATION)
    return Fine(Reason(DoctorReason.CONTEXT, wanted=wanted, longest=found.tokens))


def _json(path: Path) -> dict[str, Any]:
    """A file's object; empty where there is none that can be read."""
    try:
        with path.open("rb") as file:
            data = json.loads(file.read(LARGEST))
    except (OSError, ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}
