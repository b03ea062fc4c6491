"""Check what of a request a template writes: render every generated conversation, and compare each prompt.

The conversations hold schemas of tools as agents and MCP servers send them. A schema's value stands under a
nonce of its own: its spelling is looked for between this name and the next one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any

from importer.chat_template.probe import HOPELESS, TemplateProbe
from importer.chat_template.render import Rendered, RenderJob, RenderRefused, Result
from importer.chat_template.request_coverage import conversations
from importer.chat_template.request_coverage.compare import closed, compare, distinct_roles, shows, unseen
from importer.chat_template.request_coverage.conversations import (
    USERS,
    Conversation,
    nonce_name,
    nonce_number,
    said,
)
from importer.chat_template.request_coverage.findings import (
    ORDER,
    CoverageField,
    CoverageFinding,
    CoverageKind,
    RequestCoverage,
    ToolsShown,
)
from importer.chat_template.samples import Function, Thinking, Tool
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


def _behind(name: str, other: str, prompt: str) -> Iterator[str]:
    """Yield the text behind each place of a name, up to the other name, in small letters."""
    for found in re.finditer(re.escape(name), prompt):
        yield prompt[found.end() : found.end() + SCHEMA_ROOM].partition(other)[0].lower()


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
    "tools-and-system": CoverageField.SYSTEM,
    "nested-tool": CoverageField.NESTED_PARAMETER,
    "call": CoverageField.CALL,
    "words-beside-call": CoverageField.WORDS_BESIDE_CALL,
    "two-calls": CoverageField.CALL,
    "several-rounds": CoverageField.CALL,
    "reasoning": CoverageField.REASONING,
    "reasoning-and-words": CoverageField.WORDS_BESIDE_CALL,
    "no-arguments": CoverageField.CALL,
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
        place = ADDED.get(name, CoverageField.USER)
        number = (2,) if name in SECOND else (1,)
        unsent = UNSENT.search(result.words)
        if not result.broke:
            kind = CoverageKind.FAILS if name == "bare" else CoverageKind.REFUSED
            yield CoverageFinding(kind, place, number, name, result.words)
        elif unsent is not None:
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
    tried.render([*plain, *offering, *calling, *schema_conversations()])
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
    checked = sum(len(c.marks) for c in tried.known.values() if tried.prompt(c.name) is not None)
    return RequestCoverage(tools, tuple(_gravest_first(findings)), checked)


def _gravest_first(findings: Iterable[CoverageFinding]) -> list[CoverageFinding]:
    """Return one finding for each kind and field, with all its numbers, in the first conversation."""
    first: dict[tuple[CoverageKind, CoverageField | None], CoverageFinding] = {}
    for finding in findings:
        key = finding.kind, finding.field
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
        kind = CoverageKind.TOOLS_ONLY_WITHOUT_SYSTEM if alone else CoverageKind.TOOLS_ONLY_WITH_SYSTEM
        yield CoverageFinding(kind, conversation="tools-and-system" if alone else "tools")
    if tools == "shown":
        for name, kind in (
            ("call", CoverageKind.TOOLS_LOST_AFTER_RESULT),
            ("several-rounds", CoverageKind.TOOLS_LOST_LATER),
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


def _offered(tried: _Check, tools: ToolsShown) -> Iterator[CoverageFinding]:
    """Yield what the conversations with tools lose: of the tools themselves only where they are shown."""
    for name in ("tools", "tools-and-system", "nested-tool"):
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
    lost = {f.field for f in whole if f.kind is CoverageKind.LOST}
    style = tried.probe.style
    if style.arguments == "text" and CoverageField.CALL not in lost:
        yield from _text_arguments(tried)


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
