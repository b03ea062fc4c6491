"""The kind of model in a repository, by its architecture, files, name and tags.

Architecture, files and name are strong facts, in this precedence. The Hub's tags are often wrong or
missing: they count only without a strong fact and without evidence for a chat model.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from importer.errors import RepositoryError
from importer.hub.gguf import made_from
from importer.hub.snapshot import Snapshot
from importer.reasons import Reason
from importer.signals.architecture import architectures, config_of, model_types
from importer.signals.card import metadata
from importer.signals.engine_capabilities import UNKNOWN, Abilities
from importer.signals.evidence import TASKS, Evidence, Rule, Source, warning
from importer.signals.family import match, own_name
from importer.signals.name import normalise
from importer.signals.quantisation import MLX, read
from importer.signals.reasons import KindReason, KindRemedy, NotChat
from importer.signals.tables import parser_table
from importer.signals.tasks import labels
from importer.signals.unserved import (
    by_adapter,
    by_architecture,
    by_config,
    is_ctranslate2,
    of_adapter,
    only_gguf,
    reads_alone,
    template_place,
)

NOT_CHAT = frozenset(kind.value for kind in NotChat)
# What serves a kind that no engine here serves, where the Hub names no library.
INSTEAD = {
    NotChat.SPEECH: KindRemedy.SPEECH_ENGINE,
    NotChat.IMAGE: KindRemedy.IMAGE_ENGINE,
    NotChat.ENCODER_DECODER: KindRemedy.TRANSFORMERS,
    NotChat.NO_TEXT: KindRemedy.TRANSFORMERS,
    NotChat.UNNAMED: KindRemedy.OWN_LIBRARY,
}
# Libraries of any model: a page that names one of them names no engine.
GENERAL_LIBRARIES = frozenset({"transformers", "sentence-transformers", "safetensors", "pytorch", "mlx"})
LIBRARY = re.compile(r"[A-Za-z][\w.-]{1,39}", re.ASCII)
# What an architecture of the engine's registry returns, and the kind of such a model.
_POOLED = {
    "embed": "embedding",
    "late-interaction": "embedding",
    "classify": "reranker",
    "token-classify": "classifier",
    "reward": "reward",
}

# Parts of class names that show the kind; the first kind that fits wins.
_ARCHITECTURES = {
    "draft": "eagle(?!2) speculator medusa dflash mtpmodel draft",
    "reward": "reward",
    "reranker": "forsequenceclassification fortokenclassification formultiplechoice forranking rerank",
    "speech": "whisper wav2vec hubert asr tts speecht5 granitespeech voxtralrealtime transcribe parakeet"
    " forspeech fortextto voicegen",
    "image": "stablediffusion flux unet transformer2d controlnet forsegmentation forobjectdetection"
    " forimageclassification fordepthestimation",
    "embedding": "embed(?!ded) ^col(?:pali|qwen|idefics|smol) bidirectional formaskedlm sentencetransformer"
    " ^(?:modern|distil|nomic|xlm)?(?:bert|roberta|mpnet|electra)(?!.*for(?!maskedlm|pretraining))"
    " ^clip ^siglip ^t5encodermodel"
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
    "text-classification": "classifier",
    "token-classification": "classifier",
    "zero-shot-classification": "classifier",
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


@dataclass(frozen=True, slots=True)
class KindFinding:
    """``kind`` and the facts that decided it, the deciding one first.

    ``kind`` is ``chat``, ``base``, ``guard``, ``ocr``, ``translation``, one of ``TASKS`` or of ``NOT_CHAT``,
    or ``gguf-only``. For that and an adapter ``made_from`` names the repository with the original weights, if
    the card, a tag of the Hub or the adapter's settings do.
    ``library`` is the model's library by the Hub, where it is made for one kind of model. ``remedy`` is what
    serves the model by its files, where that is another than is usual for the kind.
    """

    kind: str
    evidence: tuple[Evidence, ...]
    made_from: str | None = None
    library: str | None = None
    remedy: KindRemedy | None = None

    def error(self, repo: str) -> RepositoryError | None:
        """Return the error for a kind without a document, or ``None``."""
        if self.kind == "gguf-only":
            original = Reason(KindRemedy.ORIGINAL)
            if self.made_from:
                original = Reason(KindRemedy.MADE_FROM, repo=self.made_from)
            return RepositoryError("gguf-only", repo=repo, next=original)
        if self.kind in NOT_CHAT:
            kind = NotChat(self.kind)
            return RepositoryError("not-chat", repo=repo, what=Reason(kind), next=self._instead(kind))
        return None

    def _instead(self, kind: NotChat) -> Reason:
        """Return what serves such a model: its own library, else engines for its kind."""
        if kind is NotChat.DRAFT:
            return Reason(KindRemedy.DRAFTED)
        if kind is NotChat.ADAPTER:
            named = self.made_from and Reason(KindRemedy.ADAPTED, repo=self.made_from)
            return named or Reason(KindRemedy.ADAPTED_UNNAMED)
        if kind is NotChat.MLX_TASK:
            return Reason(KindRemedy.NO_MLX)
        if self.library is None:
            return Reason(self.remedy or INSTEAD[kind])
        return Reason(KindRemedy.LIBRARY, library=self.library)


def find_kind(snapshot: Snapshot, ignore_name: bool = False, able: Abilities = UNKNOWN) -> KindFinding:
    """Return the kind of model; ``ignore_name`` leaves out id, card and tags.

    ``able`` has the architectures of vLLM that pool or transcribe.
    """
    adapter = by_adapter(snapshot)
    if adapter is not None:
        return KindFinding(
            NotChat.ADAPTER, (adapter,), of_adapter(snapshot) or _original(snapshot, ignore_name)
        )
    strong = [*_from_architecture(snapshot, able), *_from_files(snapshot)]
    strong = [*_unserved(snapshot, able, strong), *strong]
    weak: list[Evidence] = []
    if not ignore_name:
        strong += _from_name(snapshot)
        weak += _from_tags(snapshot)
    strong = [_doubted(snapshot, e, weak, able) for e in _ranking_first(strong, weak)]
    decided = next((e for e in strong if e.value in NOT_CHAT or e.value in TASKS), None)
    if decided is None and only_gguf(snapshot):
        return _gguf(snapshot, ignore_name)
    library = None if ignore_name else _library(snapshot)
    if decided is not None and decided.value in TASKS and _is_mlx(snapshot):
        decided = replace(decided, value=NotChat.MLX_TASK.value)
        strong = [decided]
    if strong:
        first = decided or strong[0]
        others = tuple(e for e in strong if e is not first)
        return KindFinding(first.value, (first, *others), library=library, remedy=_remedy(snapshot, first))
    chats = tuple(_chats(snapshot, ignore_name))
    if chats:
        return KindFinding("chat", (*chats, *weak))
    if weak:
        return KindFinding(weak[0].value, tuple(weak), library=library)
    return KindFinding(*_without_template(snapshot))


def _unserved(snapshot: Snapshot, able: Abilities, strong: list[Evidence]) -> Iterator[Evidence]:
    """Yield the fact that no engine here generates text with the model, unless files show what it is."""
    if any(e.value in NOT_CHAT or e.value in TASKS for e in strong):
        return
    speaks = template_place(snapshot) is not None
    fact = by_architecture(snapshot, able, speaks=speaks) or (None if speaks else by_config(snapshot))
    if fact is not None:
        yield fact


def _remedy(snapshot: Snapshot, fact: Evidence) -> KindRemedy | None:
    """Return what serves the model by its files, where its kind alone does not say it."""
    if fact.value in (NotChat.IMAGE, NotChat.SPEECH) and reads_alone(str(fact.quote)):
        return KindRemedy.TRANSFORMERS
    return KindRemedy.CTRANSLATE2 if fact.value == NotChat.UNNAMED and is_ctranslate2(snapshot) else None


def _ranking_first(strong: list[Evidence], weak: list[Evidence]) -> list[Evidence]:
    """Return the facts with those of a reranker before the files that all sentence encoders have.

    A card whose task is ranking stands before an architecture that generates: such a reranker answers yes or
    no.
    """
    by_files = [e for e in strong if e.rule is Rule.KIND_FILES and e.value == "embedding"]
    ranks = [e for e in (*strong, *weak) if e.value == "reranker"]
    said = [e for e in ranks if e.source == "pipeline_tag"]
    first = ranks if by_files else said if all(e.value not in NOT_CHAT for e in strong) else []
    return [first[0], *(e for e in strong if e is not first[0])] if first else strong


def _doubted(snapshot: Snapshot, fact: Evidence, weak: list[Evidence], able: Abilities) -> Evidence:
    """Return the fact, with a warning for one score of a decoder that nothing says to rank texts.

    Reward models have the same class. They score a conversation, so they have a chat template.
    """
    if fact.value != "reranker" or fact.rule is not Rule.KIND_ARCHITECTURE:
        return fact
    name = str(fact.quote)
    decoder = name.replace("ForSequenceClassification", "ForCausalLM")
    ranks = "sentence_transformers" in config_of(snapshot) or any(e.value == "reranker" for e in weak)
    if decoder == name or decoder not in able.architectures or ranks or template_place(snapshot) is None:
        return fact
    return replace(fact, reason=warning(Reason(KindReason.ONE_SCORE, name=name)))


def _is_mlx(snapshot: Snapshot) -> bool:
    """Return whether the weights are MLX's, whose servers generate text and nothing else."""
    quantised = read(snapshot)
    return quantised is not None and quantised.method == MLX


def _library(snapshot: Snapshot) -> str | None:
    name = snapshot.info.get("library_name")
    known = isinstance(name, str) and LIBRARY.fullmatch(name) and name not in GENERAL_LIBRARIES
    return str(name) if known else None


def _from_architecture(snapshot: Snapshot, able: Abilities) -> Iterator[Evidence]:
    config = config_of(snapshot)
    for name in architectures(snapshot):
        shown = next((k for k, parts in _ARCHITECTURES.items() if _has(name.lower(), parts)), None)
        kind = _by_registry(shown, name, config, able)
        if kind:
            reason = Reason(KindReason.ARCHITECTURE, name=name, of=kind)
            yield _fact(Rule.KIND_ARCHITECTURE, kind, "config.json", reason, name)
    for key in _DRAFT_KEYS:
        if key in config:
            yield _fact(Rule.KIND_ARCHITECTURE, "draft", "config.json", Reason(KindReason.KEY, key=key), key)


def _by_registry(shown: str | None, name: str, config: Mapping[str, Any], able: Abilities) -> str | None:
    """Return the kind by registry, else by class name; labels separate scores and classes."""
    if able.transcribes.get(name) == "only" or (shown == "speech" and name in able.transcribes):
        return "transcription"
    kind = shown or _POOLED.get(able.pooling.get(name, ""))
    if kind == "reranker" and not re.search("forranking|rerank", name.lower()):
        return "classifier" if "ForTokenClassification" in name or labels(config) != 1 else kind
    return kind


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
    card = metadata(snapshot)
    fields = [(key, info.get(key) or card.get(key)) for key in ("pipeline_tag", "library_name")]
    fields += [("tags", tag) for tag in tags] if isinstance(tags, (list, tuple)) else []
    for source, tag in fields:
        if isinstance(tag, str) and tag in _TAGS:
            yield _fact(Rule.KIND_TAG, _TAGS[tag], source, Reason(KindReason.TAG, field=source, tag=tag), tag)


def _chats(snapshot: Snapshot, ignore_name: bool) -> Iterator[Evidence]:
    """Yield facts that a chat model has and a base model mostly lacks."""
    where = template_place(snapshot)
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


def _without_template(snapshot: Snapshot) -> tuple[str, tuple[Evidence, ...]]:
    """Return ``base`` where the tokenizer's settings have no template; ``chat`` where nothing is known."""
    file = "tokenizer_config.json"
    if snapshot.json(file):
        reason = Reason(KindReason.NO_TEMPLATE, file=file)
        return "base", (_fact(Rule.KIND_TEMPLATE, "base", file, reason, ""),)
    reason = Reason(KindReason.NOTHING_ELSE)
    return "chat", (_fact(Rule.KIND_DEFAULT, "chat", Source.REPOSITORY, reason, ""),)


def _gguf(snapshot: Snapshot, ignore_name: bool) -> KindFinding:
    named = _original(snapshot, ignore_name)
    quote = next(f.path for f in snapshot.files if f.path.lower().endswith(".gguf"))
    fact = _fact(Rule.KIND_FILES, "gguf-only", quote, Reason(KindReason.ONLY_GGUF), quote)
    return KindFinding("gguf-only", (fact,), named)


def _original(snapshot: Snapshot, ignore_name: bool) -> str | None:
    return None if ignore_name else made_from(snapshot, metadata(snapshot))


def _fact(rule: Rule, kind: str, source: str, reason: Reason, quote: str) -> Evidence:
    return Evidence(rule, "kind", kind, source, reason, quote)
