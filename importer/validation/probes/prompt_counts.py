"""The probe of the prompt's tokens: each nonce conversation has those of the template's own text."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from importer.reasons import Reason, ReasonKind
from importer.validation import failures
from importer.validation.context import Context
from importer.validation.errors import ExchangeError, RequestRefused
from importer.validation.expectations import UNKNOWN_CONTEXT, CommonReason, Expectations, no_chat, no_tools
from importer.validation.fact import Rung
from importer.validation.failures import text_now
from importer.validation.mutations import CHANGES, Alteration
from importer.validation.outcome import Fail, NotApplicable, Outcome, Pass
from importer.validation.probes import prompt_rendered
from importer.validation.prompts import (
    NAME_RECALL,
    ROUNDS,
    SUM,
    TRIP,
    WEATHER,
    WORD,
    NoncePrompt,
    Part,
    Prompt,
    long,
    short,
)
from importer.validation.remedy import Remedy
from importer.validation.reply import Reply
from importer.validation.tokens import tokens_of, words_of


class PromptArrivesReason(ReasonKind):
    """The reasons of ``prompt-arrives``."""

    ALTERED = "altered", "{part}: {what}, so the prompt has {counted} tokens and not {expected}"
    CUT = "cut", "{part}: of {size} bytes a part is missing, {counted} tokens of {expected}"
    DIFFERS = "differs", "{part}: the prompt has {counted} tokens, and the template's text {expected}"
    REFUSED = "refused", "{part}: {size} bytes are refused, and {taken} are answered: {error}"
    FILTERED = (
        "filtered",
        "a text with markup, paths, statements and numbers is refused, and others are not: {error}",
    )
    OTHER_TOKENS = (
        "other-tokens",
        "the engine makes other tokens of the same text in {conversations} conversations",
    )
    ARRIVED = "arrived", "{conversations} conversations have the tokens of the template's text"


NAME = "prompt-arrives"
LESSON = (
    "A gateway dropped letters, tags or the system's turn, with HTTP 200: the model got another question."
)
BREAK = 4  # tokens between two parts of a text, and of letters that it keeps apart
SHOWN = 5  # parts that a remedy names
MOST = 640  # tokens of a conversation: a CPU reads them within a second
FULLEST = (Part.TOOLS, Part.SWITCH, Part.ROLES)  # parts that an older server may not know, first
NUMBERS = {"return_token_ids": True}  # vLLM's field for the numbers of a prompt's tokens


def needs(promise: Expectations) -> Reason | None:
    """Return why the probe does not apply: no chat, or an engine whose counts are not exact."""
    return no_chat(promise) or promise.lacks("usage")


@dataclass(frozen=True, slots=True)
class Sent:
    """A conversation with the tokens of its text, and the engine's count and numbers of them.

    ``counted`` and ``numbers`` are ``None`` where the engine gives none; ``refused`` is its refusal.
    """

    nonce: NoncePrompt
    tokens: tuple[int, ...]
    counted: int | None = None
    numbers: tuple[int, ...] | None = None
    refused: RequestRefused | None = None

    @property
    def differs(self) -> bool:
        """Return whether other tokens than those of the text arrived; a break may stand between two parts."""
        if self.nonce.part is Part.IN_PARTS:
            return self.counted is not None and abs(self.counted - len(self.tokens)) > BREAK
        other = self.numbers is not None and self.numbers != self.tokens
        return other or (self.counted is not None and self.counted != len(self.tokens))

    @property
    def size(self) -> int:
        """Return the bytes of the messages as JSON."""
        return len(json.dumps(self.nonce.prompt.messages))


def run(ctx: Context) -> Outcome:
    """Ask for one token in each conversation, and compare the prompt's tokens with the tokenizer's."""
    if ctx.render is None or not ctx.render.digest:
        return NotApplicable(Reason(CommonReason.NOT_RENDERED))
    chosen = _chosen(ctx)
    if not chosen:
        return NotApplicable(ctx.no_tokenizer)
    sent = [one for one in (_send(ctx, each) for each in chosen) if not _of_an_older_server(one)]
    sent += _ordinary(ctx)
    if all(one.counted is None and one.refused is None for one in sent):
        return NotApplicable(Reason(CommonReason.NOT_COUNTED))
    refused = judge_refusals(sent)
    if refused is not None:
        return refused
    differing = failures.of_servers(ctx, _fullest(sent))
    if differing is not None:
        return differing
    wrong = [one for one in sent if one.differs]
    if not wrong:
        return Pass(Reason(PromptArrivesReason.ARRIVED, conversations=len(sent)), trials=len(sent))
    return _explained(ctx, wrong)


def _chosen(ctx: Context) -> list[Sent]:
    """Return the conversations that the template takes and the context holds, with their tokens."""
    words = [text for _, text in words_of(ctx) if text.isascii()]
    best = max(words, key=lambda text: (text.startswith(" "), len(text)), default=WORD)
    nonces = [*short(_switches(ctx)), *long(best.strip())]
    of_tools = () if no_tools(ctx.promise) is None else (Part.TOOLS, Part.ROUND, Part.RESULTS)
    asked = [one for one in nonces if one.part not in of_tools]
    texts = [(one, text) for one in asked if (text := text_now(ctx, one.prompt)) is not None]
    tokens = tokens_of(ctx, tuple(text for _, text in texts))
    if tokens is None:
        return []
    room = min(ctx.promise.room(MOST), (ctx.promise.context or UNKNOWN_CONTEXT) - 1)
    fitting = [Sent(one, ids) for (one, _), ids in zip(texts, tokens, strict=True) if len(ids) <= room]
    largest: dict[Part, Sent] = {}
    for one in fitting:
        largest.setdefault(one.nonce.part, one)  # the sizes of a part come in descending order
    return list(largest.values())


def _ordinary(ctx: Context) -> Iterator[Sent]:
    """Yield questions that other probes ask, as far as they were answered: with names, places and numbers."""
    asked = (NAME_RECALL, SUM, *(() if no_tools(ctx.promise) else (WEATHER, TRIP, ROUNDS[-1])))
    texts = [(prompt, text) for prompt in asked if (text := text_now(ctx, prompt)) is not None]
    tokens = tokens_of(ctx, tuple(text for _, text in texts)) or ()
    for (prompt, _), ids in zip(texts, tokens, strict=False):
        try:
            counted = ctx.first(prompt).usage.prompt
        except ExchangeError:
            continue  # who asks it judges that
        yield Sent(NoncePrompt(Part.ORDINARY, prompt), ids, counted)


def _switches(ctx: Context) -> dict[str, object]:
    """Return variables of the template's own that change its text; engines may take none in a request."""
    analysis = None if ctx.render is None else ctx.render.analysis
    if analysis is None or ctx.promise.lacks("switches"):
        return {}
    plain = Prompt("nonce-plain", short({})[0].prompt.messages)
    for switches in (analysis.thinking.off, analysis.thinking.on):
        if switches and text_now(ctx, replace(plain, switches=switches)) != text_now(ctx, plain):
            return dict(switches)
    return {}


def _send(ctx: Context, one: Sent) -> Sent:
    prompt = one.nonce.sent or one.nonce.prompt
    if ctx.promise.unsure("tokenize") is None:
        prompt = replace(prompt, extra={**prompt.extra, **NUMBERS})
    try:
        reply = ctx.first(prompt)
    except RequestRefused as refused:
        return replace(one, refused=refused)
    return replace(one, counted=reply.usage.prompt, numbers=numbers_of(reply))


def _of_an_older_server(one: Sent) -> bool:
    """Return whether a server refuses another form of a conversation, and so does not alter it."""
    return one.refused is not None and one.nonce.sent is not None and not one.refused.broke


def numbers_of(reply: Reply) -> tuple[int, ...] | None:
    """Return the numbers of the prompt's tokens, where the engine shows them."""
    given = next((data.get("prompt_token_ids") for data in reply.raw), None)
    return tuple(given) if isinstance(given, list) and given else None


def _fullest(sent: Sequence[Sent]) -> Prompt:
    """Return the conversation with tools, variables or most turns."""
    of = {one.nonce.part: one for one in sent}
    return next((of[part] for part in FULLEST if part in of), sent[0]).nonce.prompt


def judge_refusals(sent: Sequence[Sent]) -> Fail | None:
    """Judge refusals of conversations that the context holds; that of a plain one is raised, and a loss."""
    first = next((one for one in sent if one.refused is not None), None)
    if first is None or first.refused is None:
        return None
    if first.refused.lost:
        raise first.refused
    taken = [one for one in sent if one.refused is None]
    if taken and first.nonce.part is Part.FILTERED:
        reason = Reason(PromptArrivesReason.FILTERED, rung=Rung.GATEWAY, error=first.refused.reason)
        return Fail(reason, "engine", Reason(Remedy.NO_FILTER), trials=len(sent))
    longer = [one for one in taken if one.size >= first.size]
    if not taken or longer or first.nonce.part not in (Part.LONG_USER, Part.LONG_SYSTEM):
        raise first.refused
    reason = Reason(
        PromptArrivesReason.REFUSED, rung=Rung.GATEWAY, part=first.nonce.part, size=first.size,
        taken=max(one.size for one in taken), error=first.refused.reason,
    )  # fmt: skip
    return Fail(reason, "engine", Reason(Remedy.RAISE_BODY_LIMIT, size=first.size), trials=len(sent))


def _explained(ctx: Context, wrong: Sequence[Sent]) -> Outcome:
    """Return the failure of wrong prompts, with the first alteration that explains their counts."""
    rendered = prompt_rendered.run(ctx)
    if isinstance(rendered, Fail) and rendered.attribution == "configuration":
        return _failure(wrong, None, follows=rendered)
    if ctx.render is not None and ctx.render.others:
        remedy = Reason(Remedy.ONE_TEMPLATE, files=ctx.render.others)
        return replace(_failure(wrong, None), attribution="configuration", remedy=remedy)
    started = failures.of_start(ctx, [(one.nonce.prompt, one.counted) for one in wrong])
    if started is not None:
        return started
    alteration = explanation(ctx, wrong)
    if alteration is None and _rendered_alike(ctx, wrong):
        return Pass(
            Reason(PromptArrivesReason.OTHER_TOKENS, rung=Rung.TOKENS, conversations=len(wrong)),
            trials=len(wrong),
        )
    return _failure(wrong, alteration)


def _rendered_alike(ctx: Context, wrong: Sequence[Sent]) -> bool:
    """Return whether the engine counts each text as its chat: then its tokenizer makes other tokens."""
    counts = [
        ctx.counted(one.nonce.prompt) for one in wrong if one.numbers is None and one.nonce.sent is None
    ]
    return bool(counts) and all(each is not None and each[0] == each[1] for each in counts)


def explanation(ctx: Context, wrong: Sequence[Sent]) -> Alteration | None:
    """Return the first alteration after which each text has as many tokens as the engine counted."""
    altered = [_altered(ctx, one.nonce.prompt) for one in wrong]
    texts = tuple(dict.fromkeys(text for changes in altered for _, text in changes))
    tokens = dict(zip(texts, tokens_of(ctx, texts) or (), strict=False))
    fits = [
        {place for place, text in changes if len(tokens.get(text, ())) == one.counted}
        for one, changes in zip(wrong, altered, strict=True)
    ]
    every = set.intersection(*fits) or fits[0]
    return CHANGES[min(every)][0] if every else None


def _altered(ctx: Context, prompt: Prompt) -> list[tuple[int, str]]:
    """Return the texts of a conversation after each change in ``CHANGES``, with the change's place."""
    changed = ((place, change(prompt)) for place, (_, change) in enumerate(CHANGES))
    return [(n, text) for n, other in changed if other != prompt and (text := text_now(ctx, other))]


def _failure(wrong: Sequence[Sent], alteration: Alteration | None, follows: Fail | None = None) -> Fail:
    first, *rest = _facts(wrong, alteration)
    trials = len(wrong)
    if follows is not None:
        return Fail(
            first, follows.attribution, follows.remedy, trials, notes=tuple(rest),
            follows=(prompt_rendered.NAME,),
        )  # fmt: skip
    parts = tuple(dict.fromkeys(one.nonce.part for one in wrong))[:SHOWN]
    remedy = Reason(Remedy.REQUESTS_UNALTERED, parts=parts)
    return Fail(first, "engine", remedy, trials, notes=tuple(rest))


def _facts(wrong: Iterable[Sent], alteration: Alteration | None) -> Iterator[Reason]:
    for one in wrong:
        counted = one.counted if one.counted is not None else len(one.numbers or ())
        fields = {"part": one.nonce.part, "counted": counted, "expected": len(one.tokens)}
        cut = one.nonce.part in (Part.LONG_USER, Part.LONG_SYSTEM) and counted < len(one.tokens)
        if alteration is not None:
            yield Reason(PromptArrivesReason.ALTERED, rung=Rung.MESSAGES, what=alteration, **fields)
        elif cut:
            yield Reason(PromptArrivesReason.CUT, rung=Rung.MESSAGES, size=one.size, **fields)
        else:
            yield Reason(PromptArrivesReason.DIFFERS, rung=Rung.MESSAGES, **fields)
