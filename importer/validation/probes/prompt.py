"""Probes of the prompt: the template's text and its tokens reach the model unaltered."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any
from unicodedata import normalize

from importer.chat_template.request_coverage.findings import (
    CoverageField,
    CoverageFinding,
    CoverageKind,
    CoverageSeverity,
)
from importer.chat_template.study import TemplateAnalysis
from importer.decisions.request_coverage import ON_TOOLS, needs_tools
from importer.engines.tokenizer import Tokenized, TokenTable
from importer.frozen import frozen
from importer.hub.snapshot import listed, mapping
from importer.reasons import Reason
from importer.signals import evidence
from importer.validation import failures, proof_check, tokens
from importer.validation.context import Context, in_turn, together
from importer.validation.diagnosis import ANOTHER_READ, miswritten
from importer.validation.errors import ExchangeError, RequestRefused, TemplateRefusedError
from importer.validation.expectations import (
    UNKNOWN_CONTEXT,
    CommonReason,
    Expectations,
    always,
    no_chat,
    no_tools,
)
from importer.validation.failures import text_now
from importer.validation.mutations import CHANGES
from importer.validation.outcome import (
    Fail,
    NotApplicable,
    Outcome,
    Stage,
    differs,
    holding,
    needless,
    note,
    quoted,
)
from importer.validation.probe import Rests, probe
from importer.validation.probes.ends import words_between
from importer.validation.prompts import (
    CALLED,
    CALLED_EMPTY,
    GREETED,
    GREETING,
    NAME_RECALL,
    ONE_TOKEN,
    ROUNDS,
    SUM,
    SYSTEM,
    TAGGED,
    TALK,
    TRIP,
    WEATHER,
    WEATHER_ANSWERED,
    WEATHER_TWO_TOOLS,
    WORD,
    Message,
    NoncePrompt,
    Part,
    Prompt,
    long,
    short,
)
from importer.validation.remedy import Need, Remedy, template
from importer.validation.rendering import PromptRendering
from importer.validation.reply import Reply
from importer.validation.tokens import KINDS, OWN, TEXT, OtherTokens, letters, round_trip, tokens_of, words_of
from importer.validation.tool_markup import call_markup, thinking_markup, without_thinking

NOT_COUNTED = "the engine does not count the prompt's tokens"
NOT_RENDERED = "nobody can tell what the template writes"
SLACK = 8  # tokens: a template may write the date, and importer renders a fixed one
SHARE = 0.05
FORM = 6  # tokens: white space may differ
# Variables that an engine sets for each request.
TAKEN = ("messages", "tools", "add_generation_prompt", "continue_final_message", "bos_token", "eos_token")
ANSWER = str(GREETED.messages[-1]["content"])
RESULT_TOLD = replace(WEATHER_ANSWERED, messages=(*WEATHER_ANSWERED.messages, GREETED.messages[-1]))
NO = ("false", "no", "off")


@probe(
    "prompt-rendered",
    "A template was not read, a gateway dropped letters or the system's turn: nobody saw the prompt.",
    needs=no_chat,
    observes=Stage.MESSAGES,
    rests_on=Rests.REQUESTS,
)
def prompt_rendered(ctx: Context) -> Outcome:
    """Judge the rendered prompt, then compare its tokens and its length with those that the engine counts."""
    text = ctx.rendered(GREETING)
    if ctx.render is None or text is None:
        return needless(NOT_RENDERED)
    parts = {
        "template": partial(_written, ctx, ctx.render, text),
        "tokens": partial(_arrived, ctx),
        "counts": partial(_counted, ctx, ctx.render),
    }
    # Where the engine may read another template, no alteration of a request is looked for first.
    order = ("template", "counts", "tokens") if ctx.render.others else (*parts,)
    return in_turn({name: parts[name] for name in order})


def _written(ctx: Context, render: PromptRendering, text: str) -> Outcome:
    """Judge what the template writes with the variables of the document, and whether the engine has these."""
    unset = [name for name in ctx.promise.variables if name in TAKEN or not render.knows(name)]
    outcomes: dict[str, Outcome | None] = {
        "beginning": judge_beginning(text, render.bos),
        "variables": judge_variables(unset),
    }
    greeted, unasked = ctx.rendered(GREETED), ctx.rendered(replace(GREETING, begins=False))
    if greeted is not None and unasked is not None:
        outcomes["turn"] = judge_turn(text, unasked, greeted.partition(ANSWER)[0])
        if not no_tools(ctx.promise):
            outcomes["turn behind results"] = _behind_results(ctx, text.removeprefix(unasked).strip())
    if ctx.proof is not None and not proof_check.same_template(ctx, ctx.proof):
        not_proved = Reason(CommonReason.NOT_PROVED)
        outcomes["template"] = Fail(not_proved, Stage.TEMPLATE, Reason(Remedy.IMPORT_AGAIN))
    outcomes["switches"] = judge_switches(
        {k: v for k, v in ctx.promise.variables.items() if isinstance(v, str)},
        lambda name, value: ctx.rendered(replace(GREETING, switches={name: value})),
    )
    if ctx.promise.variables and not ctx.promise.lacks("switches"):
        switched = replace(GREETING, name="greeting-told", switches=ctx.promise.variables, extra=ONE_TOKEN)
        outcomes["start"] = judge_start(*(ctx.first(each).usage.prompt for each in (GREETING, switched)))
    return together(outcomes)


def _counted(ctx: Context, render: PromptRendering) -> Outcome:
    """Compare the engine's counts of chats with those of the rendered texts."""
    prompts = (GREETING,) if no_tools(ctx.promise) else (GREETING, WEATHER)
    known = {prompt.name: counts for prompt in prompts if (counts := ctx.counted(prompt)) is not None}
    outcomes = {name: judge_counts(*counts, render.others) for name, counts in known.items()}
    if not no_tools(ctx.promise):
        short, longer = (ctx.counted(prompt) for prompt in (WEATHER_TWO_TOOLS, ROUNDS[-1]))
        outcomes |= {} if short is None or longer is None else {"history": judge_history(short, longer)}
    return together(outcomes) if outcomes else needless(NOT_COUNTED)


def _behind_results(ctx: Context, begun: str) -> Fail | None:
    """Judge the beginning of a turn behind a tool's result; some formats go on in the turn of the call.

    ``begun``  what begins a turn behind a user's.
    """
    answered = replace(RESULT_TOLD, name="result-answered", begins=False)
    asked = replace(RESULT_TOLD, name="result-told", messages=RESULT_TOLD.messages[:-1])
    told, prompt, unasked = map(ctx.rendered, (answered, asked, replace(asked, begins=False)))
    if told is None or prompt is None or unasked is None:
        return None
    history = told.partition(ANSWER)[0]
    header = history.removeprefix(prompt).strip()
    alike = bool(begun and header) and (header.startswith(begun) or begun.startswith(header))
    return judge_turn(prompt, unasked, history) if alike else None


def judge_beginning(text: str, bos: str) -> Fail | None:
    """Judge a rendered prompt; ``bos`` is the token that begins a text, or empty."""
    if bos and text.startswith(bos * 2):
        once = template(Need.BEGIN_ONCE, bos=bos)
        return differs("the beginning of a prompt", quoted(bos * 2), quoted(bos), Stage.TEMPLATE, once)
    return None


def judge_turn(prompt: str, without_turn: str, history: str) -> Fail | None:
    """Judge the beginning of a turn: the prompt, the prompt without it, and the history up to an answer."""
    header = history.removeprefix(prompt)
    if prompt != without_turn or not history.startswith(prompt) or not re.search(r"\w", header):
        return None
    return miswritten("the end of a prompt", "no turn", quoted(header.strip()), Need.HEED_GENERATION_PROMPT)


def judge_variables(unset: list[str]) -> Fail | None:
    """Judge template variables of the document that a request of the document cannot set."""
    if not unset:
        return None
    remedy = Reason(Remedy.TAKE_OUT_VARIABLE, variable=unset[0], variables=tuple(unset))
    return differs(
        "variables of the document", ", ".join(unset), "those that the template has", Stage.START, remedy
    )


def judge_start(plain: int | None, switched: int | None) -> Fail | None:
    """Judge prompt tokens of a request, and of one with the template variables of the document."""
    if plain == switched:
        return None
    remedy = Reason(Remedy.START_WITH, names=("chat_template_kwargs",))
    return differs(
        "prompt_tokens", plain, f"{switched} as with the document's variables", Stage.START, remedy
    )


def judge_history(short: tuple[int, int], longer: tuple[int, int]) -> Fail | None:
    """Judge tokens of the chat and of the rendered text, without calls and results and with some."""
    more, rendered = longer[0] - short[0], longer[1] - short[1]
    if abs(more - rendered) <= FORM:
        return None
    return differs("tokens of calls and results", more, rendered, Stage.PROMPT, trials=2)


def judge_switches(switches: Mapping[str, str], write: Callable[[str, object], str | None]) -> Fail | None:
    """Judge the variables of the document that are texts; ``write`` renders with another value of one."""
    for name, value in switches.items():
        if value.strip().casefold() in NO and write(name, value) == write(name, True) != write(name, False):
            remedy = Reason(Remedy.WITHOUT_QUOTES, variable=name)
            return differs(f"{name} {value!r} to the template", "true", "false", Stage.START, remedy)
    return None


def judge_counts(chat: int, rendered: int, others: tuple[str, ...] = ()) -> Fail | None:
    """Judge prompt tokens of a chat and of the rendered text; ``others`` hold another template."""
    if abs(chat - rendered) <= SLACK + SHARE * rendered:
        return None
    what, expected = "prompt_tokens", f"{rendered} as the template renders it"
    if others:
        one = Reason(Remedy.ONE_TEMPLATE, files=others)
        return differs(what, chat, expected, Stage.TEMPLATE, one, trials=2, notes=(ANOTHER_READ,))
    return differs(what, chat, expected, Stage.PROMPT, Reason(Remedy.OTHER_VERSION_TEMPLATE), trials=2)


BREAK = 4  # tokens between two parts of a text, and of letters that it keeps apart
SHOWN = 5  # parts that a remedy names
OF_TOOL_PARTS = (Part.TOOLS, Part.SCHEMAS, Part.ROUND, Part.RESULTS)
MOST = 640  # tokens of a conversation: a CPU reads them within a second
EQUAL_COUNTS = (Part.ROLES, Part.REPEATED, Part.SCHEMAS)  # an alteration may leave their counts as they are
FULLEST = (Part.TOOLS, Part.SWITCH, Part.ROLES)  # parts that an older server may not know, first
NOISE = 0.5  # by which log-probabilities of one prompt differ in batches
FAR = 1e6  # beyond any logarithm of a probability
LIKELIEST: Mapping[str, Any] = {"max_tokens": 1, "logprobs": True, "top_logprobs": 3, "temperature": 0}
NUMBERS = {"return_token_ids": True}  # vLLM's field for the numbers of a prompt's tokens


@frozen
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


def _arrived(ctx: Context) -> Outcome:
    """Ask for one token in each conversation, and compare the prompt's tokens with the tokenizer's."""
    if (lacking := ctx.promise.lacks("usage")) is not None:
        return NotApplicable(lacking)
    chosen = _chosen(ctx)
    if not chosen:
        return NotApplicable(ctx.no_tokenizer)
    sent = [one for one in (_send(ctx, each) for each in chosen) if not _of_an_older_server(one)]
    sent += _ordinary(ctx)
    if all(one.counted is None and one.refused is None for one in sent):
        return needless(NOT_COUNTED)
    refused = judge_refusals(sent)
    if refused is not None:
        return refused
    fullest = _fullest(sent)
    differing = failures.of_repetition(ctx, fullest.nonce.prompt, fullest.counted)
    if differing is not None:
        return differing
    wrong = [one for one in sent if one.differs]
    if wrong:
        return _explained(ctx, wrong)
    whole = holding(f"{len(sent)} conversations have the tokens of the template's text", len(sent))
    return _of_equal_counts(ctx, sent) or whole


def _chosen(ctx: Context) -> list[Sent]:
    """Return the conversations that the template takes and the context holds, with their tokens."""
    words = [text for _, text in words_of(ctx) if text.isascii()]
    best = max(words, key=lambda text: (text.startswith(" "), len(text)), default=WORD)
    nonces = [*short(_switches(ctx)), *long(best.strip())]
    of_tools = () if no_tools(ctx.promise) is None else OF_TOOL_PARTS
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


def _of_equal_counts(ctx: Context, sent: Sequence[Sent]) -> Fail | None:
    """Return the fault of a conversation that arrives altered with as many tokens.

    The likeliest first tokens are those behind the altered text, not those behind the template's.
    """
    if ctx.promise.lacks("completions", "logprobs"):
        return None
    for one in sent:
        as_sent = one.nonce.part is not Part.SCHEMAS or not ctx.promise.lacks("tools-as-sent")
        if one.nonce.part in EQUAL_COUNTS and one.numbers is None and as_sent:
            alteration = _by_likeliest(ctx, one)
            if alteration is not None:
                return _failure([one], alteration)
    return None


def _by_likeliest(ctx: Context, one: Sent) -> Reason | None:
    """Return the alteration behind which a conversation is answered as it is; ``None`` for no other."""
    own = ctx.rendered(one.nonce.prompt)
    if own is None:
        return None
    try:
        came = ctx.ask(one.nonce.prompt, **LIKELIEST)
        apart = _apart(came, ctx.behind(own, None, **LIKELIEST))
        if not NOISE < apart < math.inf:
            return None
        places = {text: place for place, text in _altered(ctx, one.nonce.prompt) if text != own}
        counts = map(len, tokens_of(ctx, tuple(places)) or ())
        alike = [text for text, count in zip(places, counts, strict=False) if count == len(one.tokens)]
        others = {text: _apart(came, ctx.behind(text, None, **LIKELIEST)) for text in alike}
    except ExchangeError:
        return None
    nearest = min(others, key=lambda text: others[text], default=None)
    if nearest is None or apart <= 4 * others[nearest]:
        return None
    return CHANGES[places[nearest]][0]


def _apart(one: Reply, other: Reply) -> float:
    """Return how far the likeliest first tokens of two answers are apart; infinite where one shows none."""
    first, second = _likeliest(one), _likeliest(other)
    if not (first and second):
        return math.inf
    return sum(abs(first.get(token, 0.0) - second.get(token, 0.0)) for token in {*first, *second})


def _likeliest(reply: Reply) -> dict[str, float]:
    """Return the logarithms of the likeliest first tokens."""
    listings = (listed(mapping(entry).get("top_logprobs")) for entry in reply.logprobs[:1])
    tops = (mapping(top) for tops in listings for top in tops)
    pairs = ((top.get("token"), top.get("logprob")) for top in tops)
    numbers = ((token, n) for token, n in pairs if isinstance(n, int | float) and -FAR < n < FAR)
    return {token: float(n) for token, n in numbers if isinstance(token, str)}


def _of_an_older_server(one: Sent) -> bool:
    """Return whether a server refuses another form of a conversation, and so does not alter it."""
    return one.refused is not None and one.nonce.sent is not None and not one.refused.broke


def numbers_of(reply: Reply) -> tuple[int, ...] | None:
    """Return the numbers of the prompt's tokens, where the engine shows them."""
    given = next((data.get("prompt_token_ids") for data in reply.raw), None)
    return tuple(given) if isinstance(given, list) and given else None


def _fullest(sent: Sequence[Sent]) -> Sent:
    """Return the conversation with tools, variables or most turns."""
    of = {one.nonce.part: one for one in sent}
    return next((of[part] for part in FULLEST if part in of), sent[0])


def judge_refusals(sent: Sequence[Sent]) -> Fail | None:
    """Judge refusals of conversations that the context holds; that of a plain one is raised, and a loss."""
    first = next((one for one in sent if one.refused is not None), None)
    if first is None or first.refused is None:
        return None
    if first.refused.lost:
        raise first.refused
    taken = [one for one in sent if one.refused is None]
    if taken and first.nonce.part is Part.FILTERED:
        what = "a text with markup, paths, statements and numbers"
        return differs(what, first.refused.reason, "an answer", Stage.GATEWAY, trials=len(sent))
    longer = [one for one in taken if one.size >= first.size]
    if not taken or longer or first.nonce.part not in (Part.LONG_USER, Part.LONG_SYSTEM):
        raise first.refused
    what, larger = f"{first.size} bytes of messages", Reason(Remedy.RAISE_BODY_LIMIT, size=first.size)
    answered = f"an answer, as to {max(one.size for one in taken)}"
    return differs(what, first.refused.reason, answered, Stage.GATEWAY, larger, trials=len(sent))


def _explained(ctx: Context, wrong: Sequence[Sent]) -> Outcome:
    """Return the failure of wrong prompts, with the first alteration that explains their counts."""
    if ctx.render is not None and ctx.render.others:
        remedy = Reason(Remedy.ONE_TEMPLATE, files=ctx.render.others)
        return replace(_failure(wrong, None), remedy=remedy)
    alteration = explanation(ctx, wrong)
    if alteration is None and _rendered_alike(ctx, wrong):
        what = f"the engine makes other tokens of the same text in {len(wrong)} conversations"
        return holding(what, len(wrong))
    return _failure(wrong, alteration)


def _rendered_alike(ctx: Context, wrong: Sequence[Sent]) -> bool:
    """Return whether the engine counts each text as its chat: then its tokenizer makes other tokens."""
    counts = [
        ctx.counted(one.nonce.prompt) for one in wrong if one.numbers is None and one.nonce.sent is None
    ]
    return bool(counts) and all(each is not None and each[0] == each[1] for each in counts)


def explanation(ctx: Context, wrong: Sequence[Sent]) -> Reason | None:
    """Return the first alteration after which each text has as many tokens as the engine counted."""
    altered = [_altered(ctx, one.nonce.prompt) for one in wrong]
    texts = tuple(dict.fromkeys(text for changes in altered for _, text in changes))
    tokens = dict(zip(texts, tokens_of(ctx, texts) or (), strict=False))
    fits = [
        {place for place, text in changes if _fits(ctx, len(tokens.get(text, ())), one.counted)}
        for one, changes in zip(wrong, altered, strict=True)
    ]
    every = set.intersection(*fits) or fits[0]
    return CHANGES[min(every)][0] if every else None


def _fits(ctx: Context, tokens: int, counted: int | None) -> bool:
    """Return whether a text has the counted tokens; a server may add the one that begins a text."""
    bos = ctx.render is not None and bool(ctx.render.bos)
    return tokens > 0 and counted in (tokens, tokens + 1 if bos else tokens)


def _altered(ctx: Context, prompt: Prompt) -> list[tuple[int, str]]:
    """Return the texts of a conversation after each change in ``CHANGES``, with the change's place."""
    changed = ((place, change(prompt)) for place, (_, change) in enumerate(CHANGES))
    texts = (
        (n, o if isinstance(o, str) else text_now(ctx, o)) for n, o in changed if repr(o) != repr(prompt)
    )
    return [(place, text) for place, text in texts if text]


def _failure(wrong: Sequence[Sent], alteration: Reason | None) -> Fail:
    parts = tuple(dict.fromkeys(one.nonce.part for one in wrong))[:SHOWN]
    remedy = Reason(Remedy.REQUESTS_UNALTERED, parts=parts, what=alteration)
    first, *rest = (_missed(one) for one in wrong)
    notes = (*(() if alteration is None else (alteration,)), *(one.reason for one in rest))
    return replace(first, stage=Stage.PROMPT, remedy=remedy, trials=len(wrong), notes=notes)


def _missed(one: Sent) -> Fail:
    counted = one.counted if one.counted is not None else len(one.numbers or ())
    if counted == len(one.tokens):
        return differs(f"the prompt of {one.nonce.part}", "other tokens", "those of the template's text")
    what = f"prompt_tokens of {one.nonce.part} in {one.size} bytes"
    return differs(what, counted, f"{len(one.tokens)} as the template renders it")


# What a client does about what a vendor's template does not take.
MUST = {
    CoverageField.SECOND_SYSTEM: "clients must merge system turns",
    CoverageField.LATER_SYSTEM: "clients must send the system turn first",
    CoverageField.DEVELOPER: "clients must send the role system",
    CoverageField.SYSTEM: "clients must put instructions into a user's turn",
}


TEMPLATE_COVERAGE_MOST = 6  # findings that a row lists
BROKEN = (CoverageKind.FAILS, CoverageKind.NEEDS_FIELD, CoverageKind.SYNTAX, CoverageKind.TOO_COSTLY)
REMEDIES = {
    CoverageKind.ASCII_ESCAPED: Need.NO_ESCAPING,
    CoverageKind.TEXT_ARGUMENTS: Need.WRITE_ARGUMENTS,
    CoverageKind.TOOLS_LOST_AFTER_RESULT: Need.SHOW_TOOLS,
    CoverageKind.TOOLS_LOST_LATER: Need.SHOW_TOOLS,
    **dict.fromkeys(BROKEN, Need.TAKE_CONVERSATION),
    **dict.fromkeys(ON_TOOLS, Need.RENDER_TOOLS),
}
LOSSES = (CoverageKind.EVERYTHING_LOST, CoverageKind.LOST, CoverageKind.CUT, CoverageKind.OUT_OF_ORDER)
LOST_WHOLE = (*LOSSES, *BROKEN, *ON_TOOLS, CoverageKind.CLOSED, CoverageKind.DOUBLED,
              CoverageKind.TOOLS_LOST_AFTER_RESULT, CoverageKind.TOOLS_LOST_LATER)  # fmt: skip
# A turn that every client sends, and the names of the tools on offer.
ORDINARY = frozenset(
    {
        None, CoverageField.SYSTEM, CoverageField.USER, CoverageField.ANSWER, CoverageField.ROLE,
        CoverageField.CALL, CoverageField.RESULT, CoverageField.TOOL_NAME,
    }
)  # fmt: skip


@probe(
    "template-coverage",
    "Templates dropped the system beside tools, escaped quotes, ended some turns, or wrote the time of day.",
    needs=no_chat,
    observes=Stage.TEMPLATE,
    rests_on=Rests.NOTHING,
)
def template_coverage(ctx: Context) -> Outcome:
    """Judge what the template beside the weights renders; no request is sent."""
    analysis, turns = None if ctx.render is None else ctx.render.analysis, _turns(ctx)
    if analysis is None or analysis.request_coverage is None:
        return turns
    own = proof_check.of_import(ctx)
    whole = judge_template_coverage(analysis, ctx.promise, own=own)
    meant = own and turns.remedy == ALIKE  # templates of classifiers; answers show the rest
    if isinstance(turns, Fail) and not isinstance(whole, Fail) and not meant:
        return turns
    return whole


def judge_template_coverage(
    analysis: TemplateAnalysis, promise: Expectations, *, own: bool = True
) -> Outcome:
    """Judge the findings on a template, the gravest first; what it does not take is a note of a pass.

    ``own``  whether it is the one of the import: then no more than the loss of an ordinary turn is a fault.
    """
    request_coverage = analysis.request_coverage
    findings = [f for f in (request_coverage.findings if request_coverage else ()) if _concerns(f, promise)]
    meant = [f for f in findings if by_design(f) or (own and not loses_turn(f))]
    defects = [f for f in findings if f not in meant]
    if not defects:
        checked = request_coverage.checked if request_coverage else 0
        must = (note(MUST[one.field]) for one in meant if one.field in MUST)
        whole = holding(f"{checked} nonces reach the prompt unaltered and in order")
        return replace(whole, notes=(*_problems(meant), *dict.fromkeys(must)))
    within = (defects[0].conversation,) if defects[0].conversation else ()
    first, *rest = _problems(defects)
    return Fail(first, Stage.TEMPLATE, remedy(defects[0]), notes=tuple(rest), within=within)


def _concerns(finding: CoverageFinding, promise: Expectations) -> bool:
    """Return whether a finding is a defect of a request that the document promises to serve."""
    if finding.severity is CoverageSeverity.NOTICE:
        return False
    if finding.field is CoverageField.IMAGE:
        return promise.images > 0
    of_tools = needs_tools(finding) or finding.kind in ON_TOOLS
    return not of_tools or no_tools(promise) is None


def by_design(finding: CoverageFinding) -> bool:
    """Return whether vendors' templates do the same, whose models are trained so."""
    return finding.field in MUST and finding.field is not CoverageField.SYSTEM


def loses_turn(finding: CoverageFinding) -> bool:
    """Return whether a turn that has a place is lost or doubled, or letters beyond ASCII are numbers."""
    lost = finding.kind in LOST_WHOLE and finding.field in ORDINARY and not finding.placeless
    return lost or finding.kind is CoverageKind.ASCII_ESCAPED


def _problems(findings: Sequence[CoverageFinding]) -> list[Reason]:
    return [one.reason for one in findings[:TEMPLATE_COVERAGE_MOST]]


def remedy(finding: CoverageFinding) -> Reason:
    """Return the change for a finding: always another template."""
    if finding.kind is CoverageKind.DOUBLED and finding.field is CoverageField.SYSTEM:
        return template(Need.SYSTEM_ONCE)
    if finding.kind in LOSSES:
        tools = finding.group == "tool"
        told = {"tools": tools, "where": finding.conversation, "problem": finding.reason}
        return template(Need.RENDER_EVERYTHING, **told)
    return template(REMEDIES.get(finding.kind, Need.RENDER_UNALTERED))


LATER = 3661.0  # seconds: the hour, the minute and the second are others, the day is the same
BRACES = 1000  # that begin no JSON; a prompt with its tools has fewer
ALIKE = template(Need.BEGIN_TURNS_ALIKE)


def _turns(ctx: Context) -> Outcome:
    """Judge conversations as the template renders them."""
    if ctx.render is None or not ctx.render.digest:
        return needless(NOT_RENDERED)
    talk = TALK if _shows(ctx, TALK) else _in_parts(TALK)
    opening = replace(talk, name=f"{talk.name}-opening", messages=talk.messages[:1])
    text = _rendered(ctx, talk)
    outcomes: dict[str, Outcome | None] = {
        "tags": judge_tagged(_rendered(ctx, TAGGED)),
        talk.name: judge_ends(text, _rendered(ctx, opening), ctx.render.stops),
        "later": judge_clock(*(_at(ctx.render, SYSTEM, later) for later in (0.0, LATER))),
    }
    if no_tools(ctx.promise) is None:
        outcomes["arguments"] = judge_empty(_rendered(ctx, CALLED), _rendered(ctx, CALLED_EMPTY))
        outcomes["calls"] = judge_calls(words_between(ctx), ctx.render.stops)
    return together(outcomes)


def _rendered(ctx: Context, prompt: Prompt) -> str:
    return ctx.rendered(prompt) or ""


def _shows(ctx: Context, prompt: Prompt) -> bool:
    """Return whether a template shows plain contents; those of vision models may need parts."""
    return prompt.messages[0]["content"] in _rendered(ctx, prompt)


def _in_parts(prompt: Prompt) -> Prompt:
    turns: Iterator[Message] = (
        {**m, "content": [{"type": "text", "text": m["content"]}]} for m in prompt.messages
    )
    return replace(prompt, name=f"{prompt.name}-in-parts", messages=tuple(turns))


def _at(render: PromptRendering, prompt: Prompt, later: float) -> str | None:
    try:
        return render.at(prompt, later)
    except TemplateRefusedError:
        return None


def judge_ends(text: str, opening: str, stops: Sequence[str]) -> Fail | None:
    """Judge a question, an answer and a question, beside the first question alone; ``stops`` end an answer.

    Where one of them ends the question, one ends the answer, too; and an answer begins as a new one does.
    """
    question, answer, other = (message["content"] for message in TALK.messages)
    if not all(part in text for part in (question, answer, other)) or question not in opening:
        return None
    before, new = beginnings(text, opening)
    behind = text.partition(answer)[2].partition(other)[0]
    if any(stop in before for stop in stops) and not any(stop in behind for stop in stops):
        return miswritten("what stands behind an earlier answer", quoted(behind), "its end", Need.END_TURNS)
    return judge_beginnings(before, new)


def beginnings(text: str, opening: str) -> tuple[str, str]:
    """Return the text between TALK's question and its answer, and behind the question without an answer."""
    question, answer = (message["content"] for message in TALK.messages[:2])
    return text.partition(question)[2].partition(answer)[0], opening.partition(question)[2]


def judge_tagged(text: str) -> Fail | None:
    """Judge a question with a tag in it, as the template renders it; the tag itself may be changed."""
    parts = [part.strip() for part in TAGGED.messages[0]["content"].split("</think>")]
    lost = [part for part in parts if part not in text]
    if len(lost) != 1:
        return None
    came = f"{quoted(lost[0])} is lost"
    return miswritten("words beside a user's </think>", came, None, Need.TAKE_THOUGHTS_OFF)


def judge_empty(called: str, empty: str) -> Fail | None:
    """Judge conversations with a call with arguments and one without; many formats are no JSON."""
    with_some, with_none = (names_in_json(text) for text in (called, empty))
    if "find_events" not in with_some or not empty or "list_events" in with_none:
        return None
    return miswritten("a call without arguments", "no JSON", "JSON as other calls", Need.WRITE_EMPTY)


def judge_calls(between: str, stops: Sequence[str]) -> Fail | None:
    """Judge the text between two calls in one turn: what ends a turn there loses the second."""
    token = next((stop for stop in stops if stop and stop in between), None)
    if token is None:
        return None
    remedy = Reason(Remedy.TAKE_OUT_END, token=token)
    return differs(
        "a token between two calls of one turn that ends answers", quoted(token), None, Stage.TOKENS, remedy
    )


def names_in_json(text: str) -> set[str]:
    """Return each ``name`` in the JSON objects in ``text``, alone or inside another."""
    found: list[Any] = []
    decoder, start, braces = json.JSONDecoder(object_hook=found.append), text.find("{"), 0
    while start >= 0 and braces < BRACES:
        try:
            _, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            end, braces = start + 1, braces + 1
        start = text.find("{", end)
    return {name for value in found if isinstance(name := value.get("name"), str)}


def judge_beginnings(earlier: str, new: str) -> Fail | None:
    """Judge the text between a question and its answer: of an earlier turn, and of the new one."""
    before, now = ("".join(without_thinking(part).casefold().split()) for part in (earlier, new))
    if before.startswith(now) or now.startswith(before):
        return None
    what = "the beginning of a new answer"
    return miswritten(what, quoted(new), quoted(earlier), Need.BEGIN_TURNS_ALIKE)


def judge_clock(first: str | None, later: str | None) -> Fail | None:
    """Judge a conversation, and the same one later on the same day; a date is no fault."""
    if later is None or later == first:
        return None
    return miswritten("a prompt, an hour later", "another", "the same, for a cache", Need.NO_CLOCK)


UNKNOWN = "<unk>"
ENOUGH = 20  # words of a vocabulary; fewer have no verdict
LEAST = 0.05  # of them that a text yields at least; of whole tokenizers it is more than half


@probe(
    "tokenizer-whole",
    "Tokenizers saved again lost accents or merges; one token beyond the embedding ended the engine.",
    needs=always,
    tasks=evidence.TASKS,
    observes=Stage.TOKENS,
    rests_on=Rests.NOTHING,
)
def tokenizer_whole(ctx: Context) -> Outcome:
    """Judge numbers of tokens, texts there and back, and drawn tokens."""
    outcomes: dict[str, Outcome | None] = {}
    if ctx.table is not None and ctx.table.beyond:
        outcomes["numbers"] = judge_beyond(ctx.table)
    pools = ctx.promise.kind in evidence.TASKS  # tokenizers of such models drop letters by design
    if ctx.merges is not None and ctx.merges.exchanged:
        words = " and ".join(ctx.merges.exchanged)
        outcomes["merges"] = _altered_by_tokenizer(f"the numbers of {words}", "exchanged", "their own")
    result = None if pools else round_trip(ctx)
    if result is None:
        return together(outcomes) if outcomes else NotApplicable(ctx.no_tokenizer)
    outcomes["text"] = judge_tokenizer(result, chats=no_chat(ctx.promise) is None)
    if not no_chat(ctx.promise):
        seen = ctx.look(SUM)
        outcomes["markers"] = judge_markers(seen.written if seen is not None else ctx.raw(SUM) or "")
        drawn = tokens.compare_sampled(ctx)
        outcomes |= {} if drawn is None else {"drawn": judge_drawn(drawn)}
    return together(outcomes)


def judge_tokenizer(result: Tokenized, *, chats: bool = True) -> Fail | None:
    """Judge texts through the tokenizer and back; some vocabularies lack a letter, and spaces may move.

    Tokens of bytes keep all, accents as they are composed. A chat is not gone on with behind an end.
    """
    text, kinds = result.back[0], result.back[2]
    if UNKNOWN not in text and letters(text) != letters(TEXT):
        return _altered_by_tokenizer("a text, to tokens and back", quoted(text), quoted(TEXT))
    if result.sampled >= ENOUGH and result.reached < LEAST * result.sampled:
        return _altered_by_tokenizer("words of the vocabulary in use", result.reached, result.sampled)
    if result.exact and kinds != normalize("NFC", KINDS):
        return _altered_by_tokenizer("a text, to tokens and back", quoted(kinds), quoted(KINDS))
    if not result.steady:
        return _altered_by_tokenizer("the tokens of one text", "others each time", "the same")
    if result.split:
        return _altered_by_tokenizer(f"the marker {result.split[0]} in a prompt", "split", "one token")
    if chats and result.behind:
        return _altered_by_tokenizer("the end of each text", quoted(result.behind[0]), "none")
    return None


def _altered_by_tokenizer(what: str, came: object, expected: object) -> Fail:
    return differs(what, came, expected, Stage.TOKENS, OWN)


def judge_drawn(drawn: OtherTokens) -> Fail | None:
    """Judge the tokens of greedy answers: a model draws those that it has learnt."""
    if not drawn.many:
        return None
    what = f"tokens that the tokenizer makes of an answer, such as {drawn.example!r}"
    return _altered_by_tokenizer(what, f"{drawn.other} of {drawn.tokens} others", "those drawn")


def judge_markers(written: str) -> Fail | None:
    """Judge an answer without tools: a call's marker must not close a thought."""
    thought = thinking_markup(written)
    behind = written.partition(thought)[2] if thought is not None and "/" not in thought else ""
    crossed = call_markup(behind) if thinking_markup(behind) is None else None
    if crossed is None:
        return None
    return _altered_by_tokenizer("the marker that closes a thought", quoted(crossed), "one of thoughts")


ROWS_SHOWN = 3  # tokens of a reason


def judge_beyond(table: TokenTable) -> Fail:
    """Return the fault of tokens that a message may hold, and the embedding has no row for."""
    names = tuple(token.content or str(token.number) for token in table.beyond[:ROWS_SHOWN])
    remedy = Reason(Remedy.TAKE_OUT_ADDED, tokens=names)
    return differs(
        "tokens of the tokenizer", ", ".join(names), f"one of {table.rows} rows each", Stage.TOKENS, remedy
    )
