"""The expectations of a served model, read once from the data of its document."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import field
from typing import Any

from importer.document import document_keys
from importer.document.document import Document
from importer.engines.base import as_request
from importer.frozen import frozen
from importer.hub.snapshot import listed, mapping
from importer.reasons import Reason, ReasonKind
from importer.signals.evidence import TASKS
from importer.signals.reasons import KINDS


class PromiseReason(ReasonKind):
    """Why a probe does not apply."""

    NOT_OFFERED = (
        lambda fields: f"{fields.get('engine') or 'the engine'} does not offer: {', '.join(fields['names'])}",
    )
    OFFER_UNKNOWN = "nobody knows whether the engine offers it"
    BASE_MODEL = "a base model completes text and does not chat"
    NO_TOOL_PARSER = "the document names no tool parser"
    NO_REASONING_PARSER = "the document names no reasoning parser"
    OTHER_TASK = (lambda fields: f"{KINDS[fields['of']]} does something else",)


class CommonReason(ReasonKind):
    """Reasons of several judges."""

    THOUGHT_UNREAD = "the model thinks and no parser takes the thoughts"
    CALL_UNREAD = "the model wrote a call that no parser took"
    STILL_WRITING = "the model was still writing at the limit of tokens"
    NO_THOUGHT = "the model answered without a thought"
    NOT_PROVED = "the template beside the weights is not the one that was proved"
    NO_TEMPLATE = "there is no chat template beside the weights"
    NOT_ASKED = "not asked: {why}"
    NO_TOKENIZER = "there is no tokenizer.json that could be asked"
    TOKENIZER_AWAY = (
        lambda fields: (
            f"tokenizer.json of {fields['model']} is not on this disk"
            + (
                f"; the Hub client's download of commit {fields['revision']} has it"
                if fields["revision"]
                else ""
            )
        ),
    )
    TOKENIZER_UNREAD = "tokenizer.json is here, and no engine is installed whose library reads it"


THOUGHT = 1792  # tokens of a short thought, before an answer
UNKNOWN_CONTEXT = 2048  # assumed where the document has no context; no served model has less
# Settings that invent or round numbers, or move positions away from those of the training.
ALTERING = (
    "load_format", "quantization", "kv_cache_dtype", "hf_overrides", "rope_scaling", "rope_theta",
    "kv_bits", "kv_cache_quantization_bits",
)  # fmt: skip

WARM = 1.0  # a temperature up to it spoils no answer of an intact model


@frozen
class Expectations:
    """The parts of a document that probes depend on.

    ``kind``             of the model; ``outputs`` what a request returns where it is no text.
    ``client_sampling``  values that this engine cannot be started with, under the request's names.
    ``markers``          strings that the proof has shown to be markup, where there was one.
    ``max_tokens``       the most tokens of an answer: half of the context.
    ``plain``            the most tokens of an answer without tools, where the engine is slow.
    ``prompt``           the most tokens of a long prompt, where the engine is slow.
    ``sampling``         the document's own ``parameters`` but for the model, under the request's names.
    ``context``          tokens of prompt and answer; ``None`` where the document has no limit.
    ``images``           images that a request may hold; 0 where the document has no limit for them.
    ``variables``        variables of the chat template at the start of the engine.
    ``stopwords``        stop words of the document, set at the start or sent by clients.
    ``altering``         settings that change the numbers of the weights or their arithmetic.
    ``offers``           features of the server (``engines.base.OFFERS``); ``None`` where they are unknown:
                         then a probe sends its request, and a refusal is an answer.
    ``detected``         features beyond the OpenAI API that such a server has answered.
    ``remote``           whether importer did not start the server.
    ``counted``          whether its counts of prompts tell long from short; ``None`` before it has answered.
    ``engine``           name and version of the engine; empty where they are unknown.
    """

    chats: bool = True
    kind: str = "chat"
    outputs: Mapping[str, Any] = field(default_factory=dict)
    tool_parser: str | None = None
    reasoning_parser: str | None = None
    client_sampling: Mapping[str, object] = field(default_factory=dict)
    markers: tuple[str, ...] = ()
    max_tokens: int = UNKNOWN_CONTEXT // 2
    plain: int | None = None
    prompt: int | None = None
    sampling: Mapping[str, Any] = field(default_factory=dict)
    context: int | None = None
    images: int = 0
    variables: Mapping[str, object] = field(default_factory=dict)
    stopwords: tuple[str, ...] = ()
    altering: Mapping[str, object] = field(default_factory=dict)
    offers: frozenset[str] | None = None
    detected: frozenset[str] = frozenset()
    engine: str = ""
    remote: bool = False
    counted: bool | None = None

    def lacks(self, *names: str) -> Reason | None:
        """Return why a probe that needs these features does not apply, or ``None``."""
        missing = [n for n in names if self.offers is not None and n not in self.offers]
        return (
            Reason(PromiseReason.NOT_OFFERED, names=tuple(missing), engine=self.engine) if missing else None
        )

    def limit(self, tokens: int, *, tools: bool = False) -> int:
        """Return the limit for an answer of so many tokens, with room for a thought if the model thinks.

        ``tools``  whether the request offers tools: a call has a length of its own.
        """
        room = tokens if tools else self.paced(tokens)
        return min(self.max_tokens, room + (THOUGHT if self.reasoning_parser else 0))

    def paced(self, most: int) -> int:
        """Return the tokens of an answer without a thought: ``most``, or fewer where the engine is slow."""
        return most if self.plain is None else min(most, self.plain)

    @property
    def slow(self) -> bool:
        """Return whether the engine is slow, so that probes make do with fewer and shorter answers."""
        return self.plain is not None

    def room(self, most: int) -> int:
        """Return the tokens of a long prompt: ``most``, or fewer where the engine is slow."""
        return most if self.prompt is None else min(most, self.prompt)

    @property
    def hot(self) -> bool:
        """Return whether the document's temperature spoils answers of an intact model."""
        temperature = self.sampling.get("temperature")
        return isinstance(temperature, int | float) and temperature > WARM

    @property
    def greedy(self) -> bool:
        """Return whether answers are drawn without chance."""
        return {**self.sampling, **self.client_sampling}.get("temperature") == 0

    def unsure(self, name: str) -> Reason | None:
        """Return why a probe of a feature beyond the OpenAI API does not apply: absent, or unknown."""
        if (self.remote or self.offers is None) and name not in self.detected:
            return self.lacks(name) or Reason(PromiseReason.OFFER_UNKNOWN)
        return self.lacks(name)


def promise_of(document: Document, offers: frozenset[str] | None = None) -> Expectations:
    """Return the expectations of a document in the shape of LocalAI; absent keys promise nothing."""
    section = document.get("importer") or {}
    named = document.get("max_model_len") or document.get("context_size")
    limit = None if isinstance(named, str) else named  # auto: the engine measures its memory
    context = limit or UNKNOWN_CONTEXT
    parameters = document.get("parameters") or {}
    return Expectations(
        chats=section.get("kind") not in {"base", *TASKS},
        kind=str(section.get("kind") or "chat"),
        outputs=section.get("outputs") or {},
        tool_parser=document_keys.parser(document, "tool_parser"),
        reasoning_parser=document_keys.parser(document, "reasoning_parser"),
        client_sampling=as_request(section.get("client_sampling") or {}),
        markers=tuple(listed(mapping(section.get("proof")).get("markers"))),
        max_tokens=max(1, int(context) // 2),
        sampling=as_request({k: v for k, v in parameters.items() if k != "model" and v is not None}),
        context=None if limit is None else int(limit),
        images=_images(document),
        variables=document.get("chat_template_kwargs") or {},
        stopwords=tuple(w for w in document.get("stopwords") or () if isinstance(w, str)),
        altering=_altering(document),
        offers=offers,
        engine=" ".join(str(v) for v in map((section.get("engine") or {}).get, ("name", "version")) if v),
    )


def _altering(document: Document) -> dict[str, object]:
    """Return the altering settings by their dotted names; ``load_format`` only where it loads no weights."""
    settings = dict(document) | {
        f"engine_args.{k}": v for k, v in (document.get("engine_args") or {}).items()
    }
    known = {
        k: v for k, v in settings.items() if k.rpartition(".")[2] in ALTERING and v not in (None, "auto")
    }
    return {k: v for k, v in known.items() if not k.endswith("load_format") or v == "dummy"}


def _images(document: Document) -> int:
    """Return the number of images of a request; two where the document only declares vision."""
    limit = (document.get("limit_mm_per_prompt") or {}).get("image")
    if isinstance(limit, Mapping):
        limit = limit.get("count")
    if isinstance(limit, int):
        return limit
    return 2 if "vision" in (document.get("known_usecases") or ()) else 0


def other_task(promise: Expectations, kinds: Container[str]) -> Reason | None:
    """Return why a probe for some kinds of models does not apply."""
    return None if promise.kind in kinds else Reason(PromiseReason.OTHER_TASK, of=promise.kind)


def always(_promise: Expectations) -> None:
    """Apply to every document."""


def no_chat(promise: Expectations) -> Reason | None:
    """Return why a chat probe does not apply."""
    return None if promise.chats else Reason(PromiseReason.BASE_MODEL)


def chats_with(feature: str) -> Callable[[Expectations], Reason | None]:
    """Return the condition of a probe of chats that needs a feature of the server."""
    return lambda promise: no_chat(promise) or promise.lacks(feature)


def no_tools(promise: Expectations) -> Reason | None:
    """Return why a tool probe does not apply."""
    return no_chat(promise) or (None if promise.tool_parser else Reason(PromiseReason.NO_TOOL_PARSER))


def no_reasoning(promise: Expectations) -> Reason | None:
    """Return why a reasoning probe does not apply."""
    return no_chat(promise) or (
        None if promise.reasoning_parser else Reason(PromiseReason.NO_REASONING_PARSER)
    )
