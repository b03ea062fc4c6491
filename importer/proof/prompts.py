"""The prompts of an engine beside those of transformers: conversation by conversation, for each form of
contents that the engine can be started with.

Ours is the chat template in the sandbox. A template is rendered with each form of messages that templates ask
for; the renderings that lose the least are what the template means. An engine's prompt that equals one of
them is equal.

What the compared prompts say about a document: the form of contents, warnings, and weaker proofs.

Conversations whose prompts are compared: requests as clients send them, each text in them unique.

A leaf is one text of a conversation with its place, so that a prompt shows which of them it lost. The form of
messages is that of OpenAI's API; ``shaped`` turns them into the forms that chat templates ask for.

The difference between two prompts of one conversation: its kind, its place, and its weight.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

from importer import backends
from importer.chat_template.cases import CaseStyle
from importer.chat_template.find import Template
from importer.chat_template.render import Rendered, RenderJob, Renders, Result, date_at, now
from importer.chat_template.samples import Function, Tool
from importer.chat_template.study import TemplateAnalysis
from importer.chat_template.vocabulary import Vocabulary
from importer.decisions.decision import PromptVerdict
from importer.engines.deaths import Accident
from importer.engines.parsers import Answer, Conversation, Tokens
from importer.errors import EngineError
from importer.frozen import frozen
from importer.hub.snapshot import mapping
from importer.proof.result import (
    LOSSES,
    FormatOutcome,
    FrontendPrompts,
    PromptCase,
    PromptDifference,
)
from importer.reasons import Reason

PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9"
    "awAAAABJRU5ErkJggg=="
)


class Field(StrEnum):
    """The places of texts."""

    CONTENT = "content"
    ARGUMENTS = "arguments"
    NAME = "name"
    REASONING = "reasoning"
    TOOL = "tool"


@frozen
class Leaf:
    """One value of a conversation: ``message`` is its number, ``None`` for the tools on offer."""

    message: int | None
    role: str
    field: Field
    value: Any


PLACE = {
    "type": "object",
    "description": "Ground <b>station</b> & mast",
    "properties": {"lat": {"type": "number"}, "label": {"type": ["string", "null"], "default": None}},
}
TOOLS: tuple[Tool, ...] = (
    {
        "type": "function",
        "function": {
            "name": "read_gauge",
            "description": 'Read a gauge\'s level, e.g. "Zürich".',
            "parameters": {
                "type": "object",
                "properties": {
                    "river": {"type": "string", "description": "Name of a river."},
                    "unit": {"type": "string", "enum": ["metre", "fathom"]},
                    "stations": {"type": "array", "items": {"type": "string"}},
                    "place": PLACE,
                    "live": {"type": "boolean", "default": True},
                },
                "required": ["river"],
            },
        },
    },
)
SIMPLE = {"river": "Isar"}
NESTED = {
    "river": "Weser & <Aller>",
    "stations": ["Minden", "Höxter"],
    "place": {"lat": 52.5, "label": None},
    "live": True,
}


def _user(content: Any) -> dict[str, object]:
    return {"role": "user", "content": content}


def _text(text: str) -> list[dict[str, object]]:
    return [{"type": "text", "text": text}]


def _called(*arguments: Mapping[str, object], **more: Any) -> dict[str, object]:
    calls = [
        {
            "id": f"c4ll{n:05}",
            "type": "function",
            "function": {"name": "read_gauge", "arguments": json.dumps(a, ensure_ascii=False)},
        }
        for n, a in enumerate(arguments)
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls, **more}


def _result(content: Any, number: int = 0) -> dict[str, object]:
    return {"role": "tool", "tool_call_id": f"c4ll{number:05}", "name": "read_gauge", "content": content}


ASK = _user("How high stands the river?")
IMAGE = {"type": "image_url", "image_url": {"url": PIXEL}}
CONVERSATIONS: Mapping[PromptCase, Conversation] = {
    PromptCase.PLAIN: Conversation([_user("Name a harbour on the Elbe.")]),
    PromptCase.SYSTEM: Conversation([{"role": "system", "content": "Reply like a ferryman."}, ASK]),
    PromptCase.TURNS: Conversation(
        [ASK, {"role": "assistant", "content": "Two fathoms under the keel."}, _user("Since Tuesday?")]
    ),
    PromptCase.USER_PARTS: Conversation([_user(_text("Which lock opens at dawn?"))]),
    PromptCase.SYSTEM_PARTS: Conversation(
        [{"role": "system", "content": _text("Keep to nautical words.")}, ASK]
    ),
    PromptCase.TOOLS: Conversation([ASK], TOOLS),
    PromptCase.CALL: Conversation([ASK, _called(SIMPLE), _result("Calm, 312 cm.")], TOOLS),
    PromptCase.RESULT_PARTS: Conversation([ASK, _called(SIMPLE), _result(_text("Rising, 417 cm."))], TOOLS),
    PromptCase.RESULTS: Conversation(
        [ASK, _called(SIMPLE, {"river": "Naab"}), _result("Low, 95 cm."), _result("Ebbing, 140 cm.", 1)],
        TOOLS,
    ),
    PromptCase.NESTED: Conversation([ASK, _called(NESTED), _result("Falling, 288 cm.")], TOOLS),
    PromptCase.REASONING: Conversation(
        [
            ASK,
            _called(SIMPLE, reasoning="A gauge must be read.", reasoning_content="A gauge must be read."),
            _result("Steady, 201 cm."),
        ],
        TOOLS,
    ),
    PromptCase.IMAGE: Conversation([_user([*_text("Seen at noon:"), IMAGE, *_text("Which boat is this?")])]),
}


def leaves(conversation: Conversation) -> tuple[Leaf, ...]:
    """Return every value of a conversation that its prompt should hold, in their order."""
    tools = (leaf for tool in conversation.tools for leaf in _tool_leaves(tool["function"]))
    return (*tools, *(leaf for n, m in enumerate(conversation.messages) for leaf in _leaves(n, m)))


def _leaves(number: int, message: Mapping[str, Any]) -> Iterator[Leaf]:
    role, content = message["role"], message.get("content")
    if message.get("reasoning"):
        yield Leaf(number, role, Field.REASONING, message["reasoning"])
    for part in content if isinstance(content, list) else ():
        if "text" in part:
            yield Leaf(number, role, Field.CONTENT, part["text"])
    if isinstance(content, str) and content:
        yield Leaf(number, role, Field.CONTENT, content)
    for call in message.get("tool_calls") or ():
        yield Leaf(number, role, Field.NAME, call["function"]["name"])
        for value in json.loads(call["function"]["arguments"]).values():
            yield Leaf(number, role, Field.ARGUMENTS, value)


def _tool_leaves(function: Function) -> Iterator[Leaf]:
    yield Leaf(None, "", Field.TOOL, function["name"])
    yield Leaf(None, "", Field.TOOL, function["description"])
    for name in mapping(function["parameters"]["properties"]):
        yield Leaf(None, "", Field.TOOL, name)


# The forms of messages that templates ask for; the first is that of engines.
SHAPES: tuple[CaseStyle, ...] = (
    CaseStyle(),
    CaseStyle(arguments="text"),
    CaseStyle(empty="null"),
    CaseStyle(empty="absent"),
    CaseStyle(arguments="text", empty="null"),
    CaseStyle(arguments="text", empty="absent"),
    CaseStyle(parts=True),
    CaseStyle(parts=True, arguments="text"),
    CaseStyle(parts=True, empty="absent"),
    CaseStyle(flat=True),
    CaseStyle(flat=True, arguments="text"),
    CaseStyle(reasoning="thinking"),
    CaseStyle(reasoning="tool_plan"),
)


def shaped(conversation: Conversation, shape: CaseStyle) -> list[dict[str, object]]:
    """Return the messages of a conversation in the form of ``shape``."""
    return [_shaped(message, shape) for message in conversation.messages]


def _shaped(message: Mapping[str, Any], shape: CaseStyle) -> dict[str, object]:
    turn = {k: v for k, v in message.items() if k not in ("content", "reasoning", "reasoning_content")}
    thought = message.get("reasoning")
    if thought and shape.reasoning in ("thinking", "tool_plan"):
        turn[shape.reasoning] = thought
    elif thought:
        turn |= {"reasoning": thought, "reasoning_content": thought}
    content = message.get("content")
    if content is not None:
        turn["content"] = _content(content, parts=shape.parts)
    elif shape.empty != "absent":
        turn["content"] = "" if shape.empty == "text" else None
    if "tool_calls" in turn:
        turn["tool_calls"] = [_call(call, shape) for call in turn["tool_calls"]]
    return turn


def _content(content: Any, *, parts: bool) -> Any:
    if isinstance(content, str):
        return _text(content) if parts else content
    if any(part["type"] != "text" for part in content):
        return [part if part["type"] == "text" else {"type": "image"} for part in content]
    return content if parts else "\n".join(part["text"] for part in content)


def _call(call: Mapping[str, Any], shape: CaseStyle) -> dict[str, object]:
    function = dict(call["function"])
    if shape.arguments == "object":
        function["arguments"] = json.loads(function["arguments"])
    return {"id": call["id"], **function} if shape.flat else {**call, "function": function}


def cases(*, images: bool) -> Sequence[PromptCase]:
    """Return the cases, those with images only where the model sees."""
    return [case for case in PromptCase if images or case is not PromptCase.IMAGE]


PART = re.compile(r"""["']type["']\s*:\s*["'](?:text|image)["']""")
CONSTANTS = {"True": "true", "False": "false", "None": "null"}
EXCERPT = 60


@dataclass(frozen=True, slots=True, order=True)
class Wholeness:
    """What a prompt lacks: the numbers of absent values, printed parts and values that are not in JSON."""

    absent: int
    parts: int
    nulls: int
    foreign: int


def wholeness(text: str, leaves: Sequence[Leaf]) -> Wholeness:
    """Return what a prompt of these values lacks."""
    structured = [leaf.value for leaf in leaves if isinstance(leaf.value, (list, dict))]
    foreign = sum(not any(form in text for form in _json_forms(value)) for value in structured)
    return Wholeness(len([*absent(text, leaves)]), len(PART.findall(text)), text.count("None"), foreign)


def absent(text: str, leaves: Iterable[Leaf]) -> Iterator[Leaf]:
    """Yield the values without a trace in the text; of lists and objects every text in them is looked for."""
    for leaf in leaves:
        if not all(any(form in text for form in _forms(word)) for word in _words(leaf.value)):
            yield leaf


def _words(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, item in value.items():
            yield name
            yield from _words(item)
    elif isinstance(value, list):
        for item in value:
            yield from _words(item)


def _forms(word: str) -> set[str]:
    """Return a text as it may stand in a prompt: itself, in JSON, in JSON for pages, in Python's quotes."""
    escaped = json.dumps(word)[1:-1]
    paged = escaped
    for character in "<>&'":
        paged = paged.replace(character, f"\\u{ord(character):04x}")
    return {word, word.strip(), escaped, json.dumps(word, ensure_ascii=False)[1:-1], paged, repr(word)[1:-1]}


def _json_forms(value: Any) -> Iterator[str]:
    for ascii_only in (False, True):
        yield json.dumps(value, ensure_ascii=ascii_only)
        yield json.dumps(value, ensure_ascii=ascii_only, separators=(",", ":"))
        yield json.dumps(json.dumps(value, ensure_ascii=ascii_only))[1:-1]


def difference(case: str, ours: str, theirs: str, leaves: Sequence[Leaf]) -> Reason | None:
    """Return the finding of two prompts, or ``None`` for equal ones."""
    if ours == theirs:
        return None
    at = _first_difference(ours, theirs)
    fields = {"case": case, "ours": _excerpt(ours, at), "theirs": _excerpt(theirs, at)}
    there = place_at(ours, at, leaves)
    lost = _lost(ours, theirs, there, leaves)
    if lost is not None:
        return Reason(PromptDifference.DROPPED, place=lost, **fields)
    if len(PART.findall(theirs)) > len(PART.findall(ours)):
        return Reason(PromptDifference.PARTS_PRINTED, place=there, **fields)
    same = _plain_words(ours) == _plain_words(theirs)
    return Reason(PromptDifference.FORM if same else PromptDifference.OTHER, place=there, **fields)


def _lost(ours: str, theirs: str, there: str, leaves: Sequence[Leaf]) -> str | None:
    """Return the place of a value that only our text has; a name stands in several places and is counted."""
    known = {id(leaf) for leaf in absent(ours, leaves)}
    lost = [leaf for leaf in absent(theirs, leaves) if id(leaf) not in known]
    if lost:
        return place(next((leaf for leaf in lost if leaf.message is not None), lost[0]))
    names = {leaf.value for leaf in leaves if leaf.field is Field.NAME}
    if any(theirs.count(name) < ours.count(name) for name in names):
        return f"{there.partition('.')[0]}.{Field.NAME}" if "." in there else there
    return None


def moved(ours: str, theirs: str, before: str, after: str) -> bool:
    """Return whether our text has something between two texts, and the other has white space alone."""
    between = [text.partition(before)[2].partition(after)[0].strip() for text in (ours, theirs)]
    return bool(between[0]) and not between[1]


def place(leaf: Leaf | None) -> str:
    """Return the place of a value: ``tools``, or role and field as ``tool.content``."""
    if leaf is None:
        return "prompt"
    return "tools" if leaf.message is None else f"{leaf.role}.{leaf.field}"


def place_at(text: str, at: int, leaves: Sequence[Leaf]) -> str:
    """Return the place of the first value that ends behind a position of the text; names are no places."""
    start = 0
    for leaf in leaves:
        words = [] if leaf.field is Field.NAME else [*_words(leaf.value)]
        found = max((text.find(form, start) for form in _forms(words[0])), default=-1) if words else -1
        if found >= 0:
            start = found
            if found + len(words[0]) > at:
                return place(leaf)
    return place(None)


def _without_entities(text: str) -> str:
    """Return the text without HTML's entities; unchanged where a number is too long for Python."""
    try:
        return html.unescape(text)
    except ValueError:
        return text


def _plain_words(text: str) -> list[str]:
    """Return the words and signs of a text in one order, in Python's and JSON's values alike."""
    for python, constant in CONSTANTS.items():
        text = re.sub(rf"\b{python}\b", constant, text)
    text = re.sub(r"\\u([0-9a-f]{4})", lambda match: chr(int(match[1], 16)), text)
    return sorted(re.findall(r"""\w+|[^\w\s"'\\]""", _without_entities(text)))


def _first_difference(one: str, other: str) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((n for n, (a, b) in pairs if a != b), min(len(one), len(other)))


def _excerpt(text: str, at: int) -> str:
    return text[max(0, at - 12) : at + EXCERPT - 12]


IMAGES = ("image", "<|vision", "[IMG]")
# A template writes up to 100,000 characters in the sandbox, and an engine may write more. Comparing takes
# 0.5 s for each million characters of ours.
LONGEST = 100_000  # characters of an engine's prompt that are compared
MOST_COMPARED = 4_000_000  # characters of ours, for all prompts of one engine
DATES = "strftime_now"  # the function of a template that reads the clock


@frozen
class Reference:
    """The prompts that a template means for one conversation, the most likely first; or its refusal."""

    texts: tuple[str, ...]
    refused: bool = False


@frozen
class Ours:
    """A template that is rendered by ourselves, with the variables of the repository's vocabulary.

    ``images`` is whether the model is known to see images.
    """

    template: Template
    vocabulary: Vocabulary
    renderer: Renders
    analysis: TemplateAnalysis
    images: bool = False

    def references(
        self,
        asked: Sequence[PromptCase],
        variables: Mapping[str, object] | None = None,
        *,
        moments: Sequence[float] = (0.0,),
    ) -> dict[PromptCase, Reference]:
        """Return the reference of each case.

        ``moments`` are times of the engine's rendering in seconds after the fixed time: a prompt of any of
        them is meant.
        """
        found: dict[PromptCase, Reference] = {}
        for offered in (False, True):
            some = [case for case in asked if bool(CONVERSATIONS[case].tools) is offered]
            text = self.template.text if offered else self.template.plain or self.template.text
            forms = [(later, shape) for later in moments for shape in SHAPES]
            jobs = [self._job(case, shape, variables or {}, later) for case in some for later, shape in forms]
            if jobs:
                results = self.renderer.render(text, jobs, self.vocabulary.variables).results
                for number, case in enumerate(some):
                    own = results[number * len(forms) : (number + 1) * len(forms)]
                    found[case] = _reference(case, own)
        return found

    def _job(
        self, case: PromptCase, shape: CaseStyle, variables: Mapping[str, object], later: float
    ) -> RenderJob:
        conversation = CONVERSATIONS[case]
        return RenderJob(
            shaped(conversation, shape), [*conversation.tools] or None, add_generation_prompt=True,
            kwargs=variables, later=later,
        )  # fmt: skip


def _reference(case: PromptCase, results: Sequence[Result]) -> Reference:
    """Return the renderings that lose the least, in the order of the shapes."""
    texts = [result.text for result in results if isinstance(result, Rendered)]
    if not texts:
        return Reference((), refused=True)
    parts = leaves(CONVERSATIONS[case])
    ranked = {text: wholeness(text, parts) for text in texts}
    best = min(ranked.values())
    return Reference(tuple(text for text, rank in ranked.items() if rank == best))


class Frontend(Protocol):
    """The part of an engine that turns messages into a prompt; vLLM has two from 0.33 on."""

    @property
    def name(self) -> str:
        """Return ``vllm``, ``vllm-rust``, ``mlx`` or ``mlx-vlm``."""

    def version(self) -> str:
        """Return the version that the frontend reports."""

    def render(self, tokens: Tokens, conversations: Sequence[Conversation]) -> Mapping[str, Sequence[Answer]]:
        """Return for each form of contents, the default first, the answers; raises EngineError."""


def compare(ours: Ours, tokens: Tokens, engine: Frontend) -> FrontendPrompts:
    """Return the differences of an engine's prompts in each form of contents.

    A frontend that does not start with the template gives a reason. Raises SandboxError.
    """
    shows = names_images(ours.template)
    asked = cases(images=shows and ours.images and backends.of(engine.name).sees)
    begun = now()
    try:
        version = engine.version()
        by_form, accident = _rendered(engine, tokens, asked)
    except EngineError as error:
        failed = Reason(PromptVerdict.NOT_STARTED, problem=error.message)
        return FrontendPrompts(engine.name, "", failed=failed)
    if accident is not None:
        failed = Reason(PromptVerdict.NOT_STARTED, problem=accident)
        return FrontendPrompts(engine.name, version, failed=failed)
    judge = _Judge(ours, asked, _moments(ours.template, begun))
    outcomes = {
        form: judge.outcome(dict(zip(asked, answers, strict=True))) for form, answers in by_form.items()
    }
    unseen = shows and PromptCase.IMAGE not in asked
    return FrontendPrompts(engine.name, version, outcomes, unseen=unseen)


def _moments(template: Template, begun: float) -> tuple[float, ...]:
    """Return the begin and the end of the engine's rendering, where a date may have changed between them."""
    ended = now()
    changed = date_at(begun) != date_at(ended)
    return (begun, ended) if changed and DATES in template.text + template.plain else (ended,)


def _rendered(
    engine: Frontend, tokens: Tokens, asked: Sequence[PromptCase]
) -> tuple[Mapping[str, Sequence[Answer]], Reason | None]:
    """Return the answers, asked twice where a busy machine affected one; and the accident that stayed."""
    conversations = [CONVERSATIONS[case] for case in asked]
    by_form, accident = engine.render(tokens, conversations), None
    for again in (True, False):
        refused = (a for answers in by_form.values() for a in answers if isinstance(a, Reason))
        accident = next((reason for reason in refused if isinstance(reason.kind, Accident)), None)
        if accident is not None and again:
            by_form = engine.render(tokens, conversations)
    return by_form, accident


class _Judge:
    """Judges the answers of one engine; further references are rendered where the first ones differ."""

    def __init__(self, ours: Ours, asked: Sequence[PromptCase], moments: Sequence[float]) -> None:
        self._ours, self._asked, self._moments = ours, asked, moments
        self._known: dict[str, dict[PromptCase, Reference]] = {}
        self._left = MOST_COMPARED

    def outcome(self, answers: Mapping[PromptCase, Answer]) -> FormatOutcome:
        """Return the outcome of one form of contents."""
        findings = tuple(f for case, a in answers.items() if (f := self._finding(case, a)) is not None)
        format_ = next((a.format for a in answers.values() if not isinstance(a, Reason)), None)
        # A conversation that both refuse has no prompt to compare.
        known = self._references({})
        neither = sum(isinstance(a, Reason) and known[case].refused for case, a in answers.items())
        return FormatOutcome(len(answers) - neither, findings, format_)

    def _finding(self, case: PromptCase, answer: Answer) -> Reason | None:
        reference = self._references({})[case]
        if isinstance(answer, Reason):
            if reference.refused:
                return None
            return Reason(PromptDifference.REFUSED, case=case, place="prompt", words=answer)
        if reference.refused or answer.text in reference.texts:
            return None
        text = answer.text[: LONGEST + 1]  # longer than any of ours, so it equals none
        if case is PromptCase.IMAGE:
            return self._image(case, text, reference)
        return self._nearest(case, text, reference)

    def _nearest(self, case: PromptCase, text: str, reference: Reference) -> Reason | None:
        """Return the lightest finding over all that the template may mean, the likeliest first of many."""
        parts = leaves(CONVERSATIONS[case])
        texts = dict.fromkeys(reference.texts)
        for variables in self._switches():
            switched = self._references(variables)[case].texts
            if text in switched:
                name, value = next(iter(variables.items()))
                return Reason(
                    PromptDifference.SWITCHED, case=case, place="prompt", variable=name, value=value
                )
            texts |= dict.fromkeys(switched)
        found = [f for one in self._few([*texts]) if (f := difference(case, one, text, parts)) is not None]
        order = [*PromptDifference]
        return max(found, key=lambda f: order.index(PromptDifference(f.kind)), default=None)

    def _few(self, texts: Sequence[str]) -> Iterator[str]:
        """Yield the first text, and the others while there are characters left to compare."""
        for number, text in enumerate(texts):
            if number and self._left < len(text):
                return
            self._left -= len(text)
            yield text

    def _image(self, case: PromptCase, text: str, reference: Reference) -> Reason | None:
        """Return what is lost beside an image; its own token is the engine's, so texts are not equal."""
        parts = leaves(CONVERSATIONS[case])
        found = difference(case, reference.texts[0], text, parts)
        if found is not None and found.kind in LOSSES:
            return found
        before, after = (leaf.value for leaf in parts)
        if moved(reference.texts[0], text, before, after):
            excerpts = {"ours": reference.texts[0][:EXCERPT], "theirs": text[:EXCERPT]}
            return Reason(PromptDifference.MOVED, case=case, place=place(parts[0]), **excerpts)
        return None

    def _switches(self) -> list[Mapping[str, object]]:
        thinking = self._ours.analysis.thinking
        return [variables for variables in (thinking.on, thinking.off) if variables]

    def _references(self, variables: Mapping[str, object]) -> dict[PromptCase, Reference]:
        key = repr(sorted(variables.items()))
        if key not in self._known:
            self._known[key] = self._ours.references(self._asked, variables, moments=self._moments)
        return self._known[key]


def names_images(template: Template) -> bool:
    """Return whether the template names images."""
    return any(word in template.text for word in IMAGES)
