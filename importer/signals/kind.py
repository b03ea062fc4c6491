"""The kind of model in a repository, by its architecture, files, name and tags.

Architecture, files and name are strong facts, in this precedence. The Hub's tags are often wrong or
missing: they count only without a strong fact and without evidence for a chat model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from importer.errors import RepositoryError
from importer.hub.snapshot import Snapshot
from importer.reasons import Reason
from importer.signals.architecture import architectures, config_of, model_types
from importer.signals.evidence import Evidence, Rule, Source
from importer.signals.family import base_models, match, own_name
from importer.signals.name import joined, normalise
from importer.signals.tables import parser_table


class NotChat(StrEnum):
    """Kinds of models that are not for chat."""

    EMBEDDING = "embedding"
    RERANKER = "reranker"
    REWARD = "reward"
    SPEECH = "speech"
    IMAGE = "image"
    DRAFT = "draft"


class KindRemedy(StrEnum):
    """Remedies for a model that cannot be imported."""

    DRAFTED = "drafted"
    OTHER_ENGINE = "other-engine"
    MADE_FROM = "made-from"
    ORIGINAL = "original"


NOT_CHAT = frozenset(kind.value for kind in NotChat)

# Parts of class names that show the kind; the first kind that fits wins.
_ARCHITECTURES = {
    "draft": "eagle(?!2) speculator medusa dflash mtpmodel draft",
    "reward": "reward",
    "reranker": "forsequenceclassification fortokenclassification formultiplechoice",
    "speech": "whisper wav2vec hubert asr tts speecht5 granitespeech voxtralrealtime transcribe parakeet"
    " forspeech fortextto voicegen",
    "image": "stablediffusion flux unet transformer2d controlnet forsegmentation forobjectdetection"
    " forimageclassification fordepthestimation",
    "embedding": "embed(?!ded) ^col(?:pali|qwen|idefics|smol) bidirectional formaskedlm sentencetransformer"
    " ^(?:modern|distil|nomic|xlm)?(?:bert|roberta|mpnet|electra) ^clip ^siglip ^t5encodermodel"
    " ^(?:qwen[23]|llama|mistral|gemma[23]?|gemma3text|gte(?:new)?|new)model$",
    "ocr": "ocr docling",
    "translation": "^m2m100 ^marian ^nllb",
}

_FILES = {
    "modules.json": "embedding",
    "config_sentence_transformers.json": "embedding",
    "sentence_bert_config.json": "embedding",
    "1_Pooling/config.json": "embedding",
    "model_index.json": "image",
}

_TAGS = {
    "feature-extraction": "embedding",
    "sentence-similarity": "embedding",
    "sentence-transformers": "embedding",
    "text-ranking": "reranker",
    "text-classification": "reranker",
    "token-classification": "reranker",
    "automatic-speech-recognition": "speech",
    "text-to-speech": "speech",
    "text-to-audio": "speech",
    "text-to-image": "image",
    "text-to-video": "image",
    "image-to-image": "image",
    "image-to-video": "image",
    "image-classification": "image",
    "image-segmentation": "image",
    "object-detection": "image",
    "diffusers": "image",
    "translation": "translation",
}

_DRAFT_KEYS = ("speculators_model_type", "speculators_config", "dflash_config", "eagle_config")
_CHAT_WORDS = re.compile(r"(?:^|-)(?:instruct|chat|it|think(?:ing)?|reasoning|assistant|sft|dpo|rlhf)(?:-|$)")
_TEMPLATE_FILES = ("chat_template.jinja", "chat_template.json", "additional_chat_templates/tool_use.jinja")


class KindReason(StrEnum):
    """Reasons for the kind of a model."""

    ARCHITECTURE = "architecture"
    KEY = "key"
    FILE = "file"
    KIND_BY_NAME = "name-says-kind"
    TAG = "tag"
    TEMPLATE = "template"
    MODEL_TYPE = "model-type"
    CONVERSATIONAL = "conversational"
    NAME_HAS_WORD = "name-has-word"
    FAMILY = "family"
    NO_TEMPLATE = "no-template"
    NOTHING_ELSE = "nothing-else"
    ONLY_GGUF = "only-gguf"


@dataclass(frozen=True, slots=True)
class KindFinding:
    """``kind`` and the facts that decided it, the deciding one first.

    ``kind`` is ``chat``, ``base``, ``guard``, ``ocr``, ``translation``, one of ``NOT_CHAT``, or
    ``gguf-only``; then ``made_from`` names the repository with the original weights, if the card does.
    """

    kind: str
    evidence: tuple[Evidence, ...]
    made_from: str | None = None

    def error(self, repo: str) -> RepositoryError | None:
        """Return the error for a kind without a document, or ``None``."""
        if self.kind == "gguf-only":
            original = Reason(KindRemedy.ORIGINAL)
            if self.made_from:
                original = Reason(KindRemedy.MADE_FROM, repo=self.made_from)
            return RepositoryError("gguf-only", repo=repo, next=original)
        if self.kind in NOT_CHAT:
            kind = NotChat(self.kind)
            instead = KindRemedy.DRAFTED if kind is NotChat.DRAFT else KindRemedy.OTHER_ENGINE
            return RepositoryError("not-chat", repo=repo, what=Reason(kind), next=Reason(instead))
        return None


def find_kind(snapshot: Snapshot, ignore_name: bool = False) -> KindFinding:
    """Return the kind of model; ``ignore_name`` leaves out id, card and tags."""
    strong = [*_from_architecture(snapshot), *_from_files(snapshot)]
    weak: list[Evidence] = []
    if not ignore_name:
        strong += _from_name(snapshot)
        weak += _from_tags(snapshot)
    refused = next((e for e in strong if e.value in NOT_CHAT), None)
    if refused is None and _only_gguf(snapshot):
        return _gguf(snapshot, ignore_name)
    if strong:
        first = refused or strong[0]
        return KindFinding(first.value, (first, *(e for e in strong if e is not first)))
    chats = tuple(_chats(snapshot, ignore_name))
    if chats:
        return KindFinding("chat", (*chats, *weak))
    if weak:
        return KindFinding(weak[0].value, tuple(weak))
    return KindFinding(*_without_template(snapshot))


def _from_architecture(snapshot: Snapshot) -> Iterator[Evidence]:
    for name in architectures(snapshot):
        kind = next((k for k, parts in _ARCHITECTURES.items() if _has(name.lower(), parts)), None)
        if kind:
            reason = Reason(KindReason.ARCHITECTURE, name=name, of=kind)
            yield _fact(Rule.KIND_ARCHITECTURE, kind, "config.json", reason, name)
    config = config_of(snapshot)
    for key in _DRAFT_KEYS:
        if key in config:
            yield _fact(Rule.KIND_ARCHITECTURE, "draft", "config.json", Reason(KindReason.KEY, key=key), key)


def _has(name: str, parts: str) -> bool:
    return any(re.search(part, name) for part in parts.split())


def _from_files(snapshot: Snapshot) -> Iterator[Evidence]:
    for path, kind in _FILES.items():
        if snapshot.has(path):
            yield _fact(Rule.KIND_FILES, kind, path, Reason(KindReason.FILE, file=path, of=kind), path)


def _from_name(snapshot: Snapshot) -> Iterator[Evidence]:
    row_match = match(parser_table(), own_name(snapshot))
    if row_match is not None and row_match.kind != "chat":
        reason = Reason(KindReason.KIND_BY_NAME, of=row_match.kind)
        yield _fact(Rule.KIND_NAME, row_match.kind, "parser_defaults.json", reason, row_match.quote)


def _from_tags(snapshot: Snapshot) -> Iterator[Evidence]:
    info = snapshot.info
    tags = info.get("tags")
    fields = [("pipeline_tag", info.get("pipeline_tag")), ("library_name", info.get("library_name"))]
    fields += [("tags", tag) for tag in tags] if isinstance(tags, (list, tuple)) else []
    for source, tag in fields:
        if isinstance(tag, str) and tag in _TAGS:
            yield _fact(Rule.KIND_TAG, _TAGS[tag], source, Reason(KindReason.TAG, field=source, tag=tag), tag)


def _chats(snapshot: Snapshot, ignore_name: bool) -> Iterator[Evidence]:
    """Yield facts that a chat model has and a base model mostly lacks."""
    where = _template_place(snapshot)
    if where:
        yield _fact(Rule.KIND_TEMPLATE, "chat", where, Reason(KindReason.TEMPLATE, where=where), where)
    for model_type in model_types(snapshot):
        row = parser_table().find_type(model_type)
        if row is not None:
            quote = f"model_type: {model_type}"
            reason = Reason(KindReason.MODEL_TYPE, quote=quote, family=row.label)
            yield _fact(Rule.KIND_MODEL_TYPE, "chat", "config.json", reason, quote)
    if ignore_name:
        return
    tags = snapshot.info.get("tags")
    if isinstance(tags, (list, tuple)) and "conversational" in tags:
        yield _fact(Rule.KIND_TAG, "chat", "tags", Reason(KindReason.CONVERSATIONAL), "conversational")
    words = _CHAT_WORDS.search(normalise(own_name(snapshot)).name)
    if words:
        quote = words.group().strip("-")
        yield _fact(Rule.KIND_NAME, "chat", Source.NAME, Reason(KindReason.NAME_HAS_WORD, word=quote), quote)
    row_match = match(parser_table(), own_name(snapshot))
    if row_match is not None and row_match.kind == "chat" and row_match.parsers:
        reason = Reason(KindReason.FAMILY, family=row_match.row.label)
        yield _fact(Rule.KIND_NAME, "chat", "parser_defaults.json", reason, row_match.quote)


def _template_place(snapshot: Snapshot) -> str | None:
    listed = next((f for f in _TEMPLATE_FILES if snapshot.has(f) or f in snapshot.texts), None)
    if listed:
        return listed
    folder = next((f.path for f in snapshot.files if f.path.startswith("additional_chat_templates/")), None)
    if folder:
        return folder
    for path in ("tokenizer_config.json", "processor_config.json"):
        if snapshot.json(path).get("chat_template"):
            return path
    config = snapshot.info.get("config")
    inside = config.get("tokenizer_config") if isinstance(config, dict) else None
    template = isinstance(inside, dict) and inside.get("chat_template")
    return Source.HUB if template else None


def _without_template(snapshot: Snapshot) -> tuple[str, tuple[Evidence, ...]]:
    """Return ``base`` where the tokenizer's settings have no template; ``chat`` where nothing is known."""
    file = "tokenizer_config.json"
    if snapshot.json(file):
        reason = Reason(KindReason.NO_TEMPLATE, file=file)
        return "base", (_fact(Rule.KIND_TEMPLATE, "base", file, reason, ""),)
    reason = Reason(KindReason.NOTHING_ELSE)
    return "chat", (_fact(Rule.KIND_DEFAULT, "chat", Source.REPOSITORY, reason, ""),)


def _only_gguf(snapshot: Snapshot) -> bool:
    weights = {f.path.rpartition(".")[2].lower() for f in snapshot.files}
    return "gguf" in weights and not weights & {"safetensors", "bin", "pt", "pth", "npz"}


def _gguf(snapshot: Snapshot, ignore_name: bool) -> KindFinding:
    made_from = None if ignore_name else next(iter(base_models(snapshot)), None)
    quote = next(f.path for f in snapshot.files if f.path.lower().endswith(".gguf"))
    fact = _fact(Rule.KIND_FILES, "gguf-only", quote, Reason(KindReason.ONLY_GGUF), quote)
    named = made_from if made_from and "/" in joined(normalise(made_from)) else None
    return KindFinding("gguf-only", (fact,), named)


def _fact(rule: Rule, kind: str, source: str, reason: Reason, quote: str) -> Evidence:
    return Evidence(rule, "kind", kind, source, reason, quote)
