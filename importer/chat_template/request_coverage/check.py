"""Check what of a request a template writes: render every generated conversation, and compare each prompt.

The conversations hold schemas of tools as agents and MCP servers send them, values that hold no nonce (0,
booleans, null and what is empty), and contents in parts. Each such value stands under a nonce of its own: its
spelling is looked for between this name and the next one. Parts are judged for roles whose contents the
template takes in parts: there a single part comes out as the same text without parts would.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from importer.chat_template.cases import CaseStyle, Turn
from importer.chat_template.probe import HOPELESS, TemplateProbe
from importer.chat_template.render import Rendered, RenderJob, RenderRefused, Result
from importer.chat_template.request_coverage import conversations
from importer.chat_template.request_coverage.compare import (
    called_as_python,
    closed,
    compare,
    default_system,
    distinct_roles,
    judge,
    shows,
    unseen,
)
from importer.chat_template.request_coverage.conversations import (
    ANSWERS,
    CALLS,
    OFFERED,
    RESULTS,
    SYSTEM,
    USERS,
    Conversation,
    Mark,
    linked,
    nonce_name,
    nonce_number,
    said,
)
from importer.chat_template.request_coverage.findings import (
    ORDER,
    RARE,
    CoverageField,
    CoverageFinding,
    CoverageKind,
    CoverageSeverity,
    RequestCoverage,
    ToolsShown,
)
from importer.chat_template.samples import Function, SampleCall, Thinking, Tool
from importer.frozen import frozen

SCHEMA_ROOM = 400  # characters behind the last name
PLAIN = "string"
NULL = "null"


@frozen
class Case:
    """A parameter with a schema.

    ``words``  nonces that the prompt must hold.
    ``types``  types that must stand behind the parameter's name, where a plain type does.
    ``defs``   of the schema around the parameter.
    """

    schema: Mapping[str, Any]
    words: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    defs: Mapping[str, Any] | None = None


_INNER, _CONST, _ITEM = (nonce_name(f"schema {what}") for what in ("inner", "const", "item"))
_NUMBERS = [nonce_number("schema one"), nonce_number("schema two")]
_OBJECT = {"type": "object", "properties": {_INNER: {"type": PLAIN}}, "required": [_INNER]}
SCHEMA_CASES: Mapping[CoverageField, Case] = {
    CoverageField.TYPE_LIST: Case({"type": ["boolean", NULL]}, types=("boolean", NULL)),
    CoverageField.ANY_OF: Case({"anyOf": [{"type": "boolean"}, {"type": NULL}]}, types=("boolean", NULL)),
    CoverageField.REFERENCE: Case({"$ref": "#/$defs/Inner"}, (_INNER,), defs={"Inner": _OBJECT}),
    CoverageField.CONST: Case({"type": PLAIN, "const": _CONST}, (_CONST,)),
    CoverageField.NUMBER_ENUM: Case({"type": "integer", "enum": _NUMBERS}, tuple(map(str, _NUMBERS))),
    CoverageField.UNTYPED: Case({}),
    CoverageField.ITEM_ENUM: Case(
        {"type": "array", "items": {"type": PLAIN, "enum": [_ITEM, "x"]}}, (_ITEM,)
    ),
}


def schema_conversations() -> tuple[Conversation, ...]:
    """Return one conversation with a tool for each schema."""
    return tuple(
        Conversation(place, (said("user", USERS[0]),), (), (_tool(place),)) for place in SCHEMA_CASES
    )


def _names(place: CoverageField) -> tuple[str, str, str, str]:
    """Return the names of the tool, of its parameter and of a plain one, and the parameter's description."""
    tool, own, plain, meant = (
        nonce_name(f"schema {place} {what}") for what in ("tool", "of", "plain", "meant")
    )
    return tool, own, plain, meant


def _tool(place: CoverageField) -> Tool:
    case, (tool, own, plain, meant) = SCHEMA_CASES[place], _names(place)
    parameters: dict[str, object] = {
        "type": "object",
        "properties": {own: {**case.schema, "description": meant}, plain: {"type": PLAIN}},
        "required": [own],
    }
    if case.defs is not None:
        parameters["$defs"] = dict(case.defs)
    function: Function = {"name": tool, "description": "Look something up.", "parameters": parameters}
    return {"type": "function", "function": function}


def compare_schemas(place: CoverageField, prompt: str) -> Iterator[CoverageFinding]:
    """Yield what the prompt does to the parameter of a schema."""
    case, (_, own, plain, meant) = SCHEMA_CASES[place], _names(place)
    if plain not in prompt:
        return  # plain parameters have the finding
    if any(word not in prompt for word in (own, meant, *case.words)):
        yield CoverageFinding(CoverageKind.LOST, place, (1,), place)
    elif any(PLAIN in text for text in _behind(plain, own, prompt)):
        texts = [*_behind(own, plain, prompt)]
        if not any(all(word in text for word in case.types) for text in texts):
            yield CoverageFinding(CoverageKind.LOST, place, (1,), place)
        elif case.types and _as_python(case.types[0], "".join(texts)):
            yield CoverageFinding(CoverageKind.REPR, place, (1,), place)


def _behind(name: str, other: str, prompt: str) -> Iterator[str]:
    """Yield the text behind each place of a name, up to the other name, in small letters."""
    for found in re.finditer(re.escape(name), prompt):
        yield prompt[found.end() : found.end() + SCHEMA_ROOM].partition(other)[0].lower()


def _as_python(word: str, text: str) -> bool:
    """Return whether a list of words is printed as Python prints it, and no object around it."""
    return f"['{word}'" in text and "'type'" not in text


# The values of each conversation: one that the template cannot render must not hide the others.
VALUE_GROUPS: Mapping[str, tuple[tuple[CoverageField, Any], ...]] = {
    "zero-and-booleans": (
        (CoverageField.NUMBER, 0),
        (CoverageField.BOOLEAN, False),
        (CoverageField.BOOLEAN, True),
    ),
    "null": ((CoverageField.NULL, None),),
    "empty": ((CoverageField.EMPTY, ""), (CoverageField.EMPTY, []), (CoverageField.EMPTY, {})),
}
ADDED_VALUES = {name: values[0][0] for name, values in VALUE_GROUPS.items()} | {
    "zero-and-booleans": CoverageField.BOOLEAN
}
# The spelling in JSON, and the one of Python where it is another.
SPELT: Mapping[str, tuple[str, str]] = {
    "0": (r"(?<![\w.])-?0(?:\.0)?(?![\w.])", ""),
    "False": (r"(?<!\w)false(?!\w)", r"(?<!\w)False(?!\w)"),
    "True": (r"(?<!\w)true(?!\w)", r"(?<!\w)True(?!\w)"),
    "None": (r"(?<!\w)null(?!\w)", r"(?<!\w)None(?!\w)"),
    "''": ("", ""),  # any text holds it
    "[]": (r"\[\s*\]", ""),
    "{}": (r"\{\s*\}", ""),
}
# The value of a member of a JSON object as text; quotes of JSON inside JSON have escapes.
AS_TEXT = re.compile(r'\\*"\s*:\s*\\*"(?:0|true|false|null|True|False|None|\[\]|\{\})\\*"')
OTHER = re.compile(r'\\*"\s*:\s*[^\s,}]')  # a member of a JSON object with any value
VALUE_ROOM = 200  # characters behind the last name


@frozen
class Value:
    """A value under the nonce ``name``; ``inner`` inside of another argument."""

    field: CoverageField
    name: str
    value: Any
    inner: bool


def _made(group: str) -> tuple[Value, ...]:
    return tuple(
        Value(field, nonce_name(f"value {group} {n} {inner}"), value, inner)
        for inner in (False, True)
        for n, (field, value) in enumerate(VALUE_GROUPS[group])
    )


VALUES: Mapping[str, tuple[Value, ...]] = {group: _made(group) for group in VALUE_GROUPS}


def _words(group: str) -> tuple[str, str, str, str]:
    """Return the names of the call, of an object and of a text, and the text."""
    of, held, beside, text = (nonce_name(f"value {group} {what}") for what in ("of", "in", "by", "text"))
    return of, held, beside, text


def value_conversations() -> tuple[Conversation, ...]:
    """Return one conversation with a call for each group of values."""
    return tuple(map(_conversation, VALUE_GROUPS))


def _conversation(group: str) -> Conversation:
    called, held, beside, text = _words(group)
    arguments: dict[str, object] = {one.name: one.value for one in VALUES[group] if not one.inner}
    arguments[held] = {one.name: one.value for one in VALUES[group] if one.inner}
    arguments[beside] = text
    turns = (
        said("user", USERS[0]),
        Turn("assistant", "", (SampleCall(called, arguments),)),
        said("tool", RESULTS[0]),
    )
    return Conversation(group, turns, (), OFFERED)


def compare_values(group: str, prompt: str) -> Iterator[CoverageFinding]:
    """Yield what the prompt does to the values of a group; none if it shows no argument of the call."""
    called, held, beside, text = _words(group)
    if text not in prompt:
        return  # arguments with nonces have the finding
    names = [held, beside, *(one.name for one in VALUES[group])]
    stops = sorted(at for name in names if (at := prompt.find(name)) >= 0)
    python = called_as_python(called, prompt)
    for one in VALUES[group]:
        if one.inner and held not in prompt:
            continue
        kind = _judge(one, prompt, stops, python=python)
        if kind is not None:
            yield CoverageFinding(kind, one.field, (1,), group)


def _judge(one: Value, prompt: str, stops: list[int], *, python: bool) -> CoverageKind | None:
    at = prompt.find(one.name)
    if at < 0:
        return CoverageKind.LOST
    begin = at + len(one.name)
    stop = next((place for place in stops if place > at), begin + VALUE_ROOM)
    written, (as_json, as_python) = prompt[begin:stop], SPELT[repr(one.value)]
    if AS_TEXT.match(written):
        return CoverageKind.ALTERED
    if re.search(as_json, written):
        return None
    if as_python and re.search(as_python, written):
        return None if python else CoverageKind.REPR
    if OTHER.match(written):
        return CoverageKind.ALTERED
    return (
        None if one.field is CoverageField.EMPTY else CoverageKind.LOST
    )  # nothing between two tags is empty


IMAGE_PART: Mapping[str, str] = {"type": "image"}


@frozen
class _Role:
    """A conversation with a content of two texts; the first is the role's text in other conversations."""

    role: str
    turns: tuple[Turn, ...]
    first: Mark
    second: Mark
    tools: tuple[Tool, ...] | None = None

    @property
    def conversation(self) -> Conversation:
        """Return the conversation, with both texts to look for in their order."""
        marks = (self.first, self.second)
        return Conversation(f"{self.role}-parts", self.turns, marks, self.tools)

    def messages(self, style: CaseStyle, parts: Sequence[Mapping[str, str]] = ()) -> list[dict[str, object]]:
        """Return the messages; the content of the last message with the role consists of the parts."""
        messages = linked(self.conversation.messages(style))
        at = max(i for i, message in enumerate(messages) if message["role"] == self.role)
        messages[at] |= {"content": list(parts)}
        return messages


def _part(field: CoverageField, of: Mark) -> tuple[Mark, Mark]:
    place = f"{field} 2"
    second = replace(
        of, field=field, number=2, text=conversations.nonce_text(place), ends=conversations.nonce_ends(place)
    )
    return replace(of, ordered=True), replace(second, ordered=True)


_ASK = said("user", USERS[0])
ROLES = (
    _Role("user", (_ASK,), *_part(CoverageField.USER_PART, USERS[0])),
    _Role("system", (said("system", SYSTEM), _ASK), *_part(CoverageField.SYSTEM_PART, SYSTEM)),
    _Role(
        "assistant", (_ASK, said("assistant", ANSWERS[0]), said("user", USERS[1])),
        *_part(CoverageField.ANSWER_PART, ANSWERS[0]),
    ),
    _Role(
        "tool", (_ASK, Turn("assistant", "", (CALLS[0][0],)), said("tool", RESULTS[0])),
        *_part(CoverageField.RESULT_PART, RESULTS[0]), OFFERED,
    ),
)  # fmt: skip


def _text(mark: Mark) -> Mapping[str, str]:
    return {"type": "text", "text": mark.text}


def check_parts(probe: TemplateProbe, *, images: bool) -> Iterator[CoverageFinding]:
    """Yield texts of a content in parts that the prompt lacks; ``images`` puts one between two texts."""
    tried: list[tuple[_Role, bool]] = []
    jobs: list[RenderJob] = []
    for one in ROLES:
        first, second = _text(one.first), _text(one.second)
        contents = [[first], [first, second]]
        if images and one.role == "user":
            contents.append([first, IMAGE_PART, second])
        tools = probe.no_tools if one.tools is None else one.tools
        for parts in contents:
            tried.append((one, len(parts) == 1))
            jobs.append(RenderJob(one.messages(probe.style, parts), tools, add_generation_prompt=True))
    takes = False
    for (one, single), result in zip(tried, probe.render(jobs), strict=True):
        prompt = result.text if isinstance(result, Rendered) else None
        if single:
            takes = prompt is not None and judge(one.first, prompt) is None
        elif takes and prompt is not None:
            for found in compare(one.conversation, prompt):
                yield replace(found, field=one.second.field)


# Jinja's words for a field of a message or a variable that was not sent.
UNSENT = re.compile(r"(?:has no attribute '(\w{1,60})'|^'(\w{1,60})' is undefined)")
IMAGE = re.compile(r"""['"]image""")
# What each conversation adds to the ones before it: the field to name where the template refuses it.
ADDED: Mapping[str, CoverageField] = {
    "bare": CoverageField.USER,
    "system": CoverageField.SYSTEM,
    "two-systems": CoverageField.SECOND_SYSTEM,
    "developer": CoverageField.DEVELOPER,
    "twenty-turns": CoverageField.ANSWER,
    "later-system": CoverageField.LATER_SYSTEM,
    "two-questions": CoverageField.SECOND_USER,
    "tools-and-system": CoverageField.SYSTEM,
    "nested-tool": CoverageField.NESTED_PARAMETER,
    "call": CoverageField.CALL,
    "words-beside-call": CoverageField.WORDS_BESIDE_CALL,
    "two-calls": CoverageField.CALL,
    "several-rounds": CoverageField.CALL,
    "long-result": CoverageField.RESULT,
    "reasoning": CoverageField.REASONING,
    "long-reasoning": CoverageField.REASONING,
    "reasoning-and-words": CoverageField.WORDS_BESIDE_CALL,
    "long-system": CoverageField.SYSTEM,
    "long-turns": CoverageField.ANSWER,
    "long-tool": CoverageField.TOOL_DESCRIPTION,
    "long-words": CoverageField.WORDS_BESIDE_CALL,
    "no-arguments": CoverageField.CALL,
    "many-tools": CoverageField.TOOL_NAME,
    **ADDED_VALUES,
}
# Names of variables that may hold the tools of a template that never reads ``tools``.
ABOUT_TOOLS = re.compile(r"tool|func", re.IGNORECASE)
MOST_VARIABLES = 8
SECOND = frozenset({"two-calls", "several-rounds"})  # refused for the second call, not for the first
AFTER_CALLS = ("call", "words-beside-call", "two-calls")  # with a result: an answer is due
CHECK_OFFERED = frozenset(m.field for m in (*conversations.FLAT, *conversations.DEEP))
Answers = Mapping[str, Result]


@frozen
class _Check:
    """The results of all conversations by name, and the conversations."""

    probe: TemplateProbe
    results: dict[str, Result] = field(default_factory=dict)
    known: dict[str, Conversation] = field(default_factory=dict)
    failing: dict[str, RenderRefused] = field(default_factory=dict)  # at a server, with transformers

    def render(self, group: Iterable[Conversation]) -> None:
        """Render conversations in one exchange, all with the generation prompt."""
        group = tuple(group)
        jobs = [
            RenderJob(c.messages(self.probe.style), self.tools(c), add_generation_prompt=True) for c in group
        ]
        self.results.update(zip([c.name for c in group], self.probe.render(jobs), strict=True))
        self.known.update({c.name: c for c in group})
        requests = [replace(job, tools=c.tools) for job, c in zip(jobs, group, strict=True)]
        for one, result in zip(group, self.probe.served(requests), strict=True):
            if isinstance(result, RenderRefused):
                self.failing[one.name] = result

    def tools(self, conversation: Conversation) -> Sequence[Mapping[str, object]] | None:
        """Return the tools of a conversation; a template for tool use may need some in any request."""
        return self.probe.no_tools if conversation.tools is None else conversation.tools

    def prompt(self, name: str) -> str | None:
        """Return a rendered prompt; ``None`` where the template refused the conversation."""
        result = self.results.get(name)
        return result.text if isinstance(result, Rendered) else None

    def shows_tools(self, name: str) -> bool | None:
        """Return whether a prompt names an offered tool; ``None`` without a prompt."""
        prompt = self.prompt(name)
        return None if prompt is None else shows(prompt, self.known[name].offered)

    def compared(self, names: Iterable[str], dropped: frozenset[CoverageField]) -> Iterator[CoverageFinding]:
        """Yield the findings of the rendered conversations, without those on the ``dropped`` fields."""
        for name in names:
            prompt = self.prompt(name)
            if prompt is not None:
                yield from (f for f in compare(self.known[name], prompt) if f.field not in dropped)
            bare = self.failing.get("bare")
            if prompt is None or bare is None or name == "bare" or self.failing.get(name) != bare:
                yield from self.refused(name)  # what fails in every conversation is one finding

    def refused(self, name: str) -> Iterator[CoverageFinding]:
        """Yield the refusal of a conversation: deliberate, for want of a field, or an accident."""
        result = self.failing.get(name)
        if result is None:
            return
        if result.kind in HOPELESS:
            if name == "bare":
                yield CoverageFinding(_hopeless(result), conversation=name, words=result.words)
            return
        place = None if name in RARE else ADDED.get(name, CoverageField.USER)
        number = (2,) if name in SECOND else (1,)
        unsent = UNSENT.search(result.words)
        if not result.broke:
            kind = CoverageKind.FAILS if name == "bare" else CoverageKind.REFUSED
            yield CoverageFinding(kind, place, number, name, result.words)
        elif unsent is not None and place is not None:
            yield CoverageFinding(CoverageKind.NEEDS_FIELD, place, number, name, unsent[1] or unsent[2])
        else:
            yield CoverageFinding(CoverageKind.FAILS, place, number, name, result.words)


def _hopeless(refusal: RenderRefused) -> CoverageKind:
    return CoverageKind.SYNTAX if refusal.kind == "syntax" else CoverageKind.TOO_COSTLY


def check(probe: TemplateProbe, thinking: Thinking) -> RequestCoverage:
    """Return what the probe's template writes of requests, in the form of messages that the probe found."""
    tried = _Check(probe)
    plain, offering = conversations.plain(), conversations.offering()
    calling = conversations.calling(thinking.source == "rendered")
    rare = conversations.rare(thinking.source == "rendered")
    tried.render([*plain, *offering, *calling, *value_conversations(), *schema_conversations(), *rare])
    tools = _tools(tried)
    findings = [*_plain(tried, [c.name for c in plain]), *_frame(tried, tools)]
    whole = any(f.kind is CoverageKind.EVERYTHING_LOST for f in findings)
    if tools not in ("none", "broken") and not whole:
        findings += _offered(tried, tools)
        if tools != "refused" or tried.prompt("call") is not None:
            findings += _called(tried, [c.name for c in calling])
    if tools in ("shown", "sometimes"):
        findings += [*_contrasts(tried), *_schemas(tried)]
    findings += _tool_findings(tried, tools)
    if tools in ("lost", "none"):
        findings += _unsent(tried)
    findings += _images(tried)
    if not whole:
        findings += check_parts(probe, images=IMAGE.search(probe.template.text) is not None)
        findings += _of_rare(tried, tools, findings)
    checked = sum(len(c.marks) for c in tried.known.values() if tried.prompt(c.name) is not None)
    return RequestCoverage(tools, tuple(_gravest_first(findings)), checked)


def _of_rare(tried: _Check, tools: ToolsShown, known: Sequence[CoverageFinding]) -> Iterator[CoverageFinding]:
    """Yield what rare conversations lose, of all that ordinary ones keep."""
    found = {(f.kind, f.field) for f in known if f.severity is not CoverageSeverity.NOTICE}
    if tools != "shown":
        return
    for one in tried.compared(RARE, frozenset()):
        if (one.kind, one.field) not in found:
            yield one


def _gravest_first(findings: Iterable[CoverageFinding]) -> list[CoverageFinding]:
    """Return one finding for each kind and field, with all its numbers, in the first conversation."""
    first: dict[tuple[CoverageKind, CoverageField | None, str], CoverageFinding] = {}
    for finding in findings:
        key = finding.kind, finding.field, finding.conversation if finding.conversation in RARE else ""
        known = first.setdefault(key, finding)
        first[key] = replace(known, numbers=tuple(sorted({*known.numbers, *finding.numbers})))
    return sorted(first.values(), key=lambda f: ORDER.index(f.severity))


def _tools(tried: _Check) -> ToolsShown:
    alone, beside = (
        None if name in tried.failing else tried.shows_tools(name) for name in ("tools", "tools-and-system")
    )
    if alone and beside:
        return "shown"
    if alone or beside:
        # A template that refuses a system turn, or demands one, shows the tools wherever it renders.
        return "shown" if None in (alone, beside) else "sometimes"
    call = tried.prompt("call")
    calls = call is not None and shows(call, [conversations.CALLS[0][0].name])
    if "tools" in tried.failing:
        return "broken" if "bare" in tried.failing else "refused"
    return "lost" if calls else "none"


def _tool_findings(tried: _Check, tools: ToolsShown) -> Iterator[CoverageFinding]:
    """Yield the findings on all tools at once."""
    if tools == "none":
        yield CoverageFinding(CoverageKind.NO_TOOLS, conversation="tools")
    elif tools == "lost":
        yield CoverageFinding(CoverageKind.TOOLS_LOST, conversation="tools")
    elif tools == "refused":
        result = tried.failing["tools"]
        if result.kind in HOPELESS:
            yield CoverageFinding(
                _hopeless(result), CoverageField.TOOL_NAME, conversation="tools", words=result.words
            )
        else:
            kind = CoverageKind.FAILS if result.broke else CoverageKind.TOOLS_REFUSED
            place = CoverageField.TOOL_NAME if result.broke else None
            yield CoverageFinding(kind, place, conversation="tools", words=result.words)
    elif tools == "sometimes":
        alone = tried.shows_tools("tools")
        kind = CoverageKind.TOOLS_WITHOUT_SYSTEM if alone else CoverageKind.TOOLS_WITH_SYSTEM
        yield CoverageFinding(kind, conversation="tools-and-system" if alone else "tools")
    if tools == "shown":
        for name, kind in (
            ("call", CoverageKind.TOOLS_AFTER_RESULT),
            ("several-rounds", CoverageKind.TOOLS_LATER),
        ):
            if tried.shows_tools(name) is False:
                yield CoverageFinding(kind, conversation=name)


def _unsent(tried: _Check) -> Iterator[CoverageFinding]:
    """Yield the variable or the field of a system turn that would show the tools; no server sends it."""
    ask, offered = tried.known["tools"], tried.known["tools"].tools
    named = [n for n in tried.probe.variables if n != "tools" and ABOUT_TOOLS.search(n)][:MOST_VARIABLES]
    messages = ask.messages(tried.probe.style)
    system = {"role": "system", "content": conversations.SYSTEM.text}
    jobs = [
        *(
            RenderJob([{**system, "tools": held}, *messages], offered, add_generation_prompt=True)
            for held in (offered, json.dumps(offered))
        ),
        *(RenderJob(messages, offered, True, {name: offered}) for name in named),
    ]
    for name, result in zip(["tools", "tools", *named], tried.probe.render(jobs), strict=True):
        if isinstance(result, Rendered) and shows(result.text, ask.offered):
            yield CoverageFinding(CoverageKind.NEEDS_FIELD, CoverageField.TOOL_NAME, (1,), "tools", name)
            return


def _plain(tried: _Check, names: Sequence[str]) -> Iterator[CoverageFinding]:
    findings = list(tried.compared(names, frozenset()))
    lost = {f.conversation for f in findings if f.kind is CoverageKind.LOST and f.field is CoverageField.USER}
    if {"bare", "twenty-turns"} <= lost:
        yield CoverageFinding(CoverageKind.EVERYTHING_LOST, CoverageField.USER, (), "bare")
        return
    # What fails in every conversation is one finding, not one of each.
    accident = (CoverageKind.FAILS, CoverageKind.NEEDS_FIELD)
    rendered = "bare" not in tried.failing
    yield from (f for f in findings if rendered or f.kind not in accident or f.conversation == "bare")


def _frame(tried: _Check, tools: ToolsShown) -> Iterator[CoverageFinding]:
    """Yield what the template itself writes into a prompt."""
    prompt, history = tried.prompt("bare"), tried.prompt("twenty-turns")
    roles = {} if history is None else distinct_roles(tried.known["twenty-turns"], history)
    if not all(roles.values()):
        yield CoverageFinding(CoverageKind.LOST, CoverageField.ROLE, (1,), "twenty-turns")
    if prompt is not None and history is not None:
        before, _, _ = history.partition(conversations.ANSWERS[0].text)
        yield from unseen(conversations.USERS[0].text, prompt)
        asking = ("bare", "system", "twenty-turns", *(AFTER_CALLS if tools in ("shown", "sometimes") else ()))
        prompts = {name: text for name in asking if (text := tried.prompt(name)) is not None}
        yield from closed(prompts, before, tried.probe.ends)
        yield from default_system(prompt, tried.prompt("system") or "")


def _offered(tried: _Check, tools: ToolsShown) -> Iterator[CoverageFinding]:
    """Yield what the conversations with tools lose: of the tools themselves only where they are shown."""
    for name in ("tools", "tools-and-system", "nested-tool", "long-tool", "many-tools"):
        if tools == "refused" and tried.prompt(name) is None:
            continue  # the finding on all tools has the template's words
        dropped = frozenset[CoverageField]() if tried.shows_tools(name) else CHECK_OFFERED
        yield from tried.compared([name], dropped)


def _called(tried: _Check, names: Sequence[str]) -> Iterator[CoverageFinding]:
    """Yield what the conversations with calls lose; a lost call is one finding, not one for each argument."""
    whole = list(tried.compared(["call"], frozenset()))
    if tried.prompt("call") is None:
        yield from whole
        return
    yield from whole
    yield from tried.compared([n for n in names if n != "call"], frozenset())
    yield from _values(tried)
    lost = {f.field for f in whole if f.kind is CoverageKind.LOST}
    style = tried.probe.style
    if style.arguments == "text" and CoverageField.CALL not in lost:
        yield from _text_arguments(tried)


def _values(tried: _Check) -> Iterator[CoverageFinding]:
    """Yield what happens to values without a nonce in the arguments of calls."""
    for group in VALUE_GROUPS:
        prompt = tried.prompt(group)
        yield from tried.refused(group) if prompt is None else compare_values(group, prompt)


def _text_arguments(tried: _Check) -> Iterator[CoverageFinding]:
    """Yield a finding where an object in place of JSON text is refused or printed as Python prints it."""
    call = tried.known["call"]
    style = replace(tried.probe.style, arguments="object")
    [result] = tried.probe.render([RenderJob(call.messages(style), call.tools, add_generation_prompt=True)])
    found = [] if isinstance(result, RenderRefused) else list(compare(call, result.text))
    fields = {CoverageField.ARGUMENT, CoverageField.NESTED_ARGUMENT, CoverageField.ARGUMENT_NAME}
    if isinstance(result, RenderRefused) or any(f.field in fields for f in found):
        yield CoverageFinding(CoverageKind.TEXT_ARGUMENTS, CoverageField.ARGUMENT, (1,), "call")


def _contrasts(tried: _Check) -> Iterator[CoverageFinding]:
    """Yield fields of tools that hold no nonce, and whose change does not change the prompt."""
    name = next(n for n in ("tools", "tools-and-system") if tried.shows_tools(n))
    base = tried.known[name]
    changes = {
        CoverageField.REQUIRED: conversations.tools(optional=False),
        CoverageField.TYPE: conversations.tools(counted="string"),
    }
    jobs = [
        RenderJob(base.messages(tried.probe.style), tools, add_generation_prompt=True)
        for tools in changes.values()
    ]
    for place, result in zip(changes, tried.probe.render(jobs), strict=True):
        if isinstance(result, Rendered) and result.text == tried.prompt(name):
            yield CoverageFinding(CoverageKind.LOST, place, (1,), name)


def _schemas(tried: _Check) -> Iterator[CoverageFinding]:
    """Yield what happens to schemas of parameters beyond one plain type."""
    for place in SCHEMA_CASES:
        prompt, failed = tried.prompt(place), tried.failing.get(place)
        if failed is not None and "tools" not in tried.failing:
            yield CoverageFinding(CoverageKind.FAILS, place, (1,), place, failed.words)
        elif prompt is not None:
            yield from compare_schemas(place, prompt)


def _images(tried: _Check) -> Iterator[CoverageFinding]:
    """Yield images without a place in the prompt, for a template that mentions images."""
    if not IMAGE.search(tried.probe.template.text):
        return
    style = tried.probe.style
    jobs = [
        RenderJob(conversations.images(n, style), tried.probe.no_tools, add_generation_prompt=True)
        for n in range(3)
    ]
    results = tried.probe.render(jobs)
    texts = [r.text for r in results if isinstance(r, Rendered)]
    if len(texts) < len(results) or conversations.USERS[0].text not in texts[0]:
        return  # content in parts is not for this template
    if texts[0] == texts[1]:
        yield CoverageFinding(CoverageKind.LOST, CoverageField.IMAGE, (1,), "images")
    elif texts[1] == texts[2]:
        yield CoverageFinding(CoverageKind.LOST, CoverageField.IMAGE, (2,), "images")
