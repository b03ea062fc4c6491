"""Checks of a document and the model's folder against the installed engine."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from importer import backends
from importer.chat_template import find
from importer.decisions.decision import RUST
from importer.document import document_keys
from importer.document.document import Document
from importer.engines import registries
from importer.engines.deaths import CONFIGURATION, ENGINE, ENVIRONMENT, Attribution
from importer.engines.doctor.case import (
    SOUND,
    VLLM,
    DoctorCase,
    Fine,
    Result,
    Trouble,
    of_error,
    text_of,
    version,
)
from importer.engines.doctor.kinds import DoctorReason, DoctorRemedy
from importer.engines.doctor.packages import again
from importer.engines.vllm import SINCE, is_rust
from importer.errors import EngineError, RepositoryError, UsageError
from importer.hub import local, tensor_headers
from importer.hub.content import TOKENIZERS, weight_files
from importer.hub.folders import holds
from importer.hub.snapshot import listed, mapping
from importer.reasons import Reason
from importer.signals import context as lengths
from importer.signals.comparison import OF_COPIES, findings

TOKENIZER, SETTINGS = "tokenizer.json", "tokenizer_config.json"
MARKER = re.compile(r"<[^<>\s{}'\"]{2,40}>")
# A word, a digit or a sign, behind the mark of a space or not.
PLAIN = re.compile(r"[\u0120\u2581]?(?:[A-Za-z]{1,40}|[!-@\[-`{-~])")
CONFIGS = ("config.json", "params.json")  # Mistral's own files have the other
TIED = "tie_word_embeddings"
PADDED = 1024  # rows
ROPE = "rope_theta"
PARAMETERS = "rope_parameters"
NUMBER = re.compile(r"\d[\d_]*(?:\.\d*)?(?:e\+?\d+)?")
DECLARED = re.compile(
    r"^class (?:TextConfig|ModelConfig|ModelArgs)\b.*(?:\n(?!\S).*)*?"
    r"\n    rope_theta: *(?:(?:float|int)\b[\w |]*|(?:Optional|Union)\[[^=\n]*\] *)(?:= *(\S+)|#|$)",
    re.MULTILINE,
)


def tokenizer_settings(case: DoctorCase) -> Result:
    """Return whether the tokenizer is the one of its settings and of the vocabulary."""
    if case.weights is None:
        return None
    added = dict(_added(case.json(TOKENIZER).get("added_tokens")))
    declared = dict(_decoder(case.json(SETTINGS).get("added_tokens_decoder")))
    both = [i for i in sorted(declared) if i in added]
    if not both:
        return None
    remedy = Reason(DoctorRemedy.FETCH_TOKENIZER)
    different = [i for i in both if added[i] != declared[i]]
    if 2 * len(different) > len(both):  # fewer may have been renamed in one file
        i = different[0]
        differ = Reason(
            DoctorReason.ADDED_TOKENS_FOREIGN,
            number=i, given=added[i], told=declared[i], file=TOKENIZER, settings=SETTINGS,
        )  # fmt: skip
        return Trouble(differ, remedy, part=CONFIGURATION)
    lost = next(_lost(case, case.weights), None)
    if lost is not None:
        marker = Reason(DoctorReason.MARKER_LOST, marker=lost, file=TOKENIZER)
        return Trouble(marker, remedy, part=CONFIGURATION)
    return SOUND


def _lost(case: DoctorCase, folder: Path) -> Iterator[str]:
    """Yield markers of the template that the vocabulary has, and that no text can become: no added tokens
    any more.
    """
    data = case.json(TOKENIZER)
    model = mapping(data.get("model"))
    vocabulary, merges = mapping(model.get("vocab")), listed(model.get("merges"))
    added = {text for _, text in _added(data.get("added_tokens"))}
    template = find.find(local.resolve(str(folder), folder))
    markers = dict.fromkeys(MARKER.findall(template.text)) if template is not None else {}
    reachable = [marker for marker in markers if marker in vocabulary and marker not in added]
    merged = {"".join(m if isinstance(m, list) else str(m).split(" ")) for m in merges}
    yield from (marker for marker in reachable if merged and marker not in merged)


def _added(tokens: Any) -> Iterator[tuple[int, str]]:
    for token in listed(tokens):
        if isinstance(token, dict) and isinstance(token.get("id"), int):
            yield token["id"], str(token.get("content"))


def _decoder(table: Any) -> Iterator[tuple[int, str]]:
    for number, token in table.items() if isinstance(table, dict) else ():
        if number.isdecimal() and isinstance(token, dict):
            yield int(number), str(token.get("content"))


def ends(case: DoctorCase) -> Result:
    """Return whether the end tokens are markers, and none of them a plain word; 0 stands for none, too."""
    if case.weights is None:
        return None
    data = case.json(TOKENIZER)
    vocabulary = mapping(mapping(data.get("model")).get("vocab"))
    if not vocabulary:
        return None
    added = {number for number, _ in _added(data.get("added_tokens"))}
    words = {i: text for text, i in vocabulary.items() if i not in added and PLAIN.fullmatch(text)}
    files = ("generation_config.json", "config.json")  # engines read the first one that names any
    named = ((file, case.json(file).get("eos_token_id")) for file in files)
    file, ends = next((one for one in named if one[1]), ("", []))
    numbers = (i for i in (ends if isinstance(ends, list) else [ends]) if isinstance(i, int) and i)
    number = next((i for i in numbers if i in words), None)
    if number is None:
        return SOUND
    word = Reason(DoctorReason.END_IS_WORD, file=file, number=number, word=words[number])
    remedy = Reason(DoctorRemedy.DROP_END, number=number, file=file)
    return Trouble(word, remedy, part=CONFIGURATION)


def context(case: DoctorCase) -> Result:
    """Return whether the document's context is within the limit of the model's files."""
    document = case.document or {}
    requested = document.get("max_model_len") or document.get("context_size")
    overridden = (document.get("engine_args") or {}).get("hf_overrides")
    if case.weights is None or case.engine is None or not isinstance(requested, int) or overridden:
        return None
    version = case.installed.version if case.installed is not None else None
    snapshot = local.resolve(str(case.weights), case.weights)
    limit = lengths.derive(snapshot, registries.load_capabilities(case.engine.name, version))
    if limit is None or not limit.named:
        return None
    reason = Reason(DoctorReason.CONTEXT, wanted=requested, longest=limit.tokens)
    if requested > limit.tokens:
        return Trouble(reason, Reason(DoctorRemedy.SET_CONTEXT, tokens=limit.tokens), part=CONFIGURATION)
    return Fine(reason)


def snapshot(case: DoctorCase) -> Result:
    """Return whether the folder has all weights, each file to its end, an output layer, and a tokenizer."""
    if case.weights is None:
        return None
    folder = case.weights
    files = local.listing(folder)
    own = tensor_headers.examined(
        local.resolve(str(folder), folder), [f.path for f in weight_files(files)], exact=False, offline=True
    )
    engine = "" if case.engine is None else backends.serving(case.engine.name).name
    found = next((one for one in findings(own, engine) if one.stops), None)
    if found is not None:
        reason = Reason(DoctorReason.FOLDER, folder=folder, problem=found.reason)
        part: Attribution = ENVIRONMENT if found.reason.kind in OF_COPIES else CONFIGURATION
        return Trouble(reason, _remedy(folder), part=part)
    lacking = [] if any(map(own.has, CONFIGS)) else ["config.json"]
    if not any(TOKENIZERS.fullmatch(file.path) for file in files):
        lacking.append("tokenizer")
    for file in lacking:
        missing = Reason(DoctorReason.FILE_MISSING, file=file)
        return Trouble(Reason(DoctorReason.FOLDER, folder=folder, problem=missing), _remedy(folder))
    if not weight_files(files) and not holds(folder, (".bin",)):
        return of_error(EngineError("no-weights", path=folder), Reason(DoctorRemedy.IMPORT_WEIGHTS))
    return headless(case) or SOUND


def headless(case: DoctorCase) -> Trouble | None:
    """Return the trouble of weights without an output layer, where config.json does not tie it to the
    embedding: vLLM draws one.
    """
    config = case.config()
    sections = [config, nested] if isinstance(nested := config.get("text_config"), dict) else [config]
    words = next((n for s in sections if isinstance(n := s.get("vocab_size"), int) and n > 0), None)
    if case.weights is None or words is None or all(section.get(TIED) is not False for section in sections):
        return None
    snapshot = local.resolve(str(case.weights), case.weights)
    try:
        tensors = tensor_headers.tensors(snapshot, [file.path for file in weight_files(snapshot.files)])
    except RepositoryError:
        return None
    wide = {name.rpartition(".")[0] for name, tensor in tensors.items() if _spans(tensor.shape, words)}
    if len(wide) != 1:
        return None
    lacking = Reason(DoctorReason.HEAD_LACKING, key=TIED, tensor=wide.pop())
    return Trouble(lacking, Reason(DoctorRemedy.TIE_EMBEDDINGS, key=TIED), part=CONFIGURATION)


def _spans(shape: tuple[int, ...], words: int) -> bool:
    """Return whether a tensor has a row for every word; vocabularies are padded by a few."""
    return len(shape) > 1 and any(words <= side <= words + PADDED for side in shape)


def _remedy(folder: Path) -> Reason:
    if folder.parent.name == "snapshots":
        return Reason(DoctorRemedy.FETCH_SNAPSHOT, folder=folder.parent.parent)
    return Reason(DoctorRemedy.FETCH_AGAIN)


def rope(case: DoctorCase) -> Result:
    """Return whether the engine's class for the model reads ``rope_theta`` at its place in the config."""
    config = case.config()
    nested = config.get("text_config")
    inside = isinstance(nested, dict) and not {ROPE, PARAMETERS}.isdisjoint(nested)
    section = nested if isinstance(nested, dict) and inside else config
    inner = section.get(PARAMETERS)
    value = inner.get(ROPE) if isinstance(inner, dict) else None
    if section.get(ROPE) is not None or not isinstance(value, int | float):
        return None
    read = _reading(case, str(config.get("model_type")))
    if read is None:
        return None
    module, default = read
    if default == value:
        return SOUND
    place = "text_config" if inside else "the top"
    remedy = Reason(DoctorRemedy.WRITE_ROPE, key=ROPE, value=value, place=place)
    unread = Reason(DoctorReason.ROPE, key=ROPE, place=PARAMETERS, module=module)
    # Without a default the engine ends; with another one, long answers go wrong.
    return Trouble(unread, remedy, stops=default is None, part=ENGINE)


def _reading(case: DoctorCase, kind: str) -> tuple[str, float | None] | None:
    """Return the module whose class needs the value at the top, and its default; ``None`` for other
    classes.
    """
    modules = {"mlx-vlm": ("mlx_vlm",), "vllm-mlx": ("mlx_lm", "mlx_vlm"), "mlx": ("mlx_lm",)}
    for module in (
        modules.get(case.engine.name, ()) if case.engine is not None and kind.isidentifier() else ()
    ):
        for pattern in (f"{module}/models/{kind}/config.py", f"{module}/models/{kind}.py"):
            for file in case.files(pattern):
                text = text_of(file)
                found = None if PARAMETERS in text else DECLARED.search(text)
                if found is None or not NUMBER.fullmatch(found[1] or "0"):
                    return None
                return f"{module}.models.{kind}", float(found[1]) if found[1] else None
    return None


BINARY = "vllm/vllm-rs"
PYTHON_REMEDY = Reason(DoctorRemedy.PYTHON_FRONTEND)


def frontend(case: DoctorCase) -> Result:
    """Return whether the installed build has the frontend of the document, and can start it."""
    if case.document is None or not case.runs(*VLLM) or not is_rust(case.document):
        return None
    if case.installed is None:
        return None
    here = case.installed.version
    if version(here)[: len(SINCE)] < SINCE:
        old = Reason(DoctorReason.FRONTEND_OLD, engine=case.installed.engine, version=here)
        return Trouble(old, PYTHON_REMEDY, part=CONFIGURATION)
    if case.places() and not any(case.files(BINARY)):
        return Trouble(Reason(DoctorReason.FRONTEND_MISSING, version=here), again(case))
    rejected = _rejected(case.document, here)
    if rejected is not None:
        reason = Reason(DoctorReason.FRONTEND_PARSER, parser=rejected)
        return Trouble(reason, PYTHON_REMEDY, part=CONFIGURATION)
    return SOUND


def _rejected(document: Document, here: str) -> str | None:
    """Return a parser for both kinds that is named for one alone."""
    tool = document_keys.parser(document, "tool_parser")
    reasoning = document_keys.parser(document, "reasoning_parser")
    try:
        joint = registries.load("vllm", here, RUST).joint
    except UsageError:
        return None
    return next((n for n in (tool, reasoning) if n in joint), None) if tool != reasoning else None
