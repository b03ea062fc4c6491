"""Check the way in of a template: render every generated conversation, and compare each prompt."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace

from importer.chat_template.probe import HOPELESS, TemplateProbe
from importer.chat_template.render import Rendered, RenderJob, RenderRefused, Result
from importer.chat_template.request_coverage import conversations, parts, schemas, values
from importer.chat_template.request_coverage.compare import (
    NONE,
    check_frame,
    check_shapes,
    compare,
    shows,
)
from importer.chat_template.request_coverage.conversations import Conversation
from importer.chat_template.request_coverage.findings import (
    ORDER,
    ToolsShown,
    WayIn,
    WayInField,
    WayInFinding,
    WayInKind,
    WayInSeverity,
)
from importer.chat_template.request_coverage.traits import Shape, Trait
from importer.chat_template.samples import Thinking
from importer.frozen import frozen

# Jinja's words for a field of a message or a variable that was not sent.
UNSENT = re.compile(r"(?:has no attribute '(\w{1,60})'|^'(\w{1,60})' is undefined)")
IMAGE = re.compile(r"""['"]image""")
# What each conversation adds to the ones before it: the field to name where the template refuses it.
ADDED: Mapping[str, WayInField] = {
    "bare": WayInField.USER,
    "system": WayInField.SYSTEM,
    "two-systems": WayInField.SECOND_SYSTEM,
    "developer": WayInField.DEVELOPER,
    "twenty-turns": WayInField.ANSWER,
    "later-system": WayInField.LATER_SYSTEM,
    "two-questions": WayInField.SECOND_USER,
    "tools-and-system": WayInField.SYSTEM,
    "nested-tool": WayInField.NESTED_PARAMETER,
    "call": WayInField.CALL,
    "words-beside-call": WayInField.WORDS_BESIDE_CALL,
    "two-calls": WayInField.CALL,
    "several-rounds": WayInField.CALL,
    "long-result": WayInField.RESULT,
    "reasoning": WayInField.REASONING,
    "long-reasoning": WayInField.REASONING,
    "reasoning-and-words": WayInField.WORDS_BESIDE_CALL,
    "long-system": WayInField.SYSTEM,
    "long-turns": WayInField.ANSWER,
    "long-tool": WayInField.TOOL_DESCRIPTION,
    "long-words": WayInField.WORDS_BESIDE_CALL,
    "no-arguments": WayInField.CALL,
    "many-tools": WayInField.TOOL_NAME,
    **values.ADDED,
}
# Names of variables that may hold the tools of a template that never reads ``tools``.
ABOUT_TOOLS = re.compile(r"tool|func", re.IGNORECASE)
MOST_VARIABLES = 8
SECOND = frozenset({"two-calls", "several-rounds"})  # refused for the second call, not for the first
# Traits that a conversation of its own refuses as well, and findings on all tools at once.
TRIED = frozenset(
    {Trait.SYSTEM, Trait.DEVELOPER, Trait.TOOLS, Trait.RESULT_LAST, Trait.TWO_CALLS, Trait.TWO_ROUNDS,
     Trait.REASONING, Trait.WORDS_BESIDE_CALLS, Trait.NO_ARGUMENTS}
)  # fmt: skip
ALL_TOOLS = frozenset(
    {WayInKind.TOOLS_WITHOUT_SYSTEM, WayInKind.TOOLS_WITH_SYSTEM, WayInKind.TOOLS_AFTER_RESULT,
     WayInKind.TOOLS_LATER}
)  # fmt: skip
OFFERED = frozenset(m.field for m in (*conversations.FLAT, *conversations.DEEP))
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

    def compared(self, names: Iterable[str], dropped: frozenset[WayInField]) -> Iterator[WayInFinding]:
        """Yield the findings of the rendered conversations, without those on the ``dropped`` fields."""
        for name in names:
            prompt = self.prompt(name)
            if prompt is not None:
                yield from (f for f in compare(self.known[name], prompt) if f.field not in dropped)
            bare = self.failing.get("bare")
            if prompt is None or bare is None or name == "bare" or self.failing.get(name) != bare:
                yield from self.refused(name)  # what fails in every conversation is one finding

    def refused(self, name: str) -> Iterator[WayInFinding]:
        """Yield the refusal of a conversation: deliberate, for want of a field, or an accident."""
        result = self.failing.get(name)
        if result is None:
            return
        if result.kind in HOPELESS:
            if name == "bare":
                yield WayInFinding(_hopeless(result), conversation=name, words=result.words)
            return
        place, number = ADDED.get(name, WayInField.USER), (2,) if name in SECOND else (1,)
        unsent = UNSENT.search(result.words)
        if not result.broke:
            kind = WayInKind.FAILS if name == "bare" else WayInKind.REFUSED
            yield WayInFinding(kind, place, number, name, result.words)
        elif unsent is not None:
            yield WayInFinding(WayInKind.NEEDS_FIELD, place, number, name, unsent[1] or unsent[2])
        else:
            yield WayInFinding(WayInKind.FAILS, place, number, name, result.words)


def _hopeless(refusal: RenderRefused) -> WayInKind:
    return WayInKind.SYNTAX if refusal.kind == "syntax" else WayInKind.TOO_COSTLY


def check(probe: TemplateProbe, thinking: Thinking) -> WayIn:
    """Return the way in of the probe's template, with the form of messages that the probe has found."""
    tried = _Check(probe)
    plain, offering = conversations.plain(), conversations.offering()
    calling = conversations.calling(thinking.source == "rendered")
    tried.render([*plain, *offering, *calling, *values.conversations(), *schemas.conversations()])
    tools = _tools(tried)
    thinks = thinking.source == "rendered"
    shapes = NONE if tools == "broken" else check_shapes(probe, thinks=thinks)
    if tools == "none" and _shown_by_the_other(shapes.findings):
        tools = "lost"
    findings = [*_plain(tried, [c.name for c in plain]), *_frame(tried)]
    whole = any(f.kind is WayInKind.EVERYTHING_LOST for f in findings)
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
        findings += parts.check(probe, images=IMAGE.search(probe.template.text) is not None)
        findings += _of_shapes(shapes.findings, findings)
    checked = sum(len(c.marks) for c in tried.known.values() if tried.prompt(c.name) is not None)
    return WayIn(tools, tuple(_gravest_first(findings)), checked + shapes.checked)


def _shown_by_the_other(findings: Iterable[WayInFinding]) -> bool:
    """Return whether the template for requests without tools shows tools that the one for tools does not."""
    return any(f.field is WayInField.TOOL_NAME and Trait.TOOL_TEMPLATE in f.shape for f in findings)


def _of_shapes(found: Iterable[WayInFinding], known: Sequence[WayInFinding]) -> list[WayInFinding]:
    """Return the findings on shapes that no conversation of its own has given."""
    grave = {(f.kind, f.field) for f in known if f.severity is not WayInSeverity.NOTICE}
    hidden = OFFERED if any(f.kind in ALL_TOOLS for f in known) else frozenset[WayInField]()
    return [
        f for f in found
        if (f.kind, f.field) not in grave and f.field not in hidden and (f.field or not TRIED & set(f.shape))
    ]  # fmt: skip


def _gravest_first(findings: Iterable[WayInFinding]) -> list[WayInFinding]:
    """Return one finding for each kind and field, with all its numbers, in the first conversation."""
    first: dict[tuple[WayInKind, WayInField | None, Shape], WayInFinding] = {}
    for finding in findings:
        key = finding.kind, finding.field, finding.shape
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


def _tool_findings(tried: _Check, tools: ToolsShown) -> Iterator[WayInFinding]:
    """Yield the findings on all tools at once."""
    if tools == "none":
        yield WayInFinding(WayInKind.NO_TOOLS, conversation="tools")
    elif tools == "lost":
        yield WayInFinding(WayInKind.TOOLS_LOST, conversation="tools")
    elif tools == "refused":
        result = tried.failing["tools"]
        if result.kind in HOPELESS:
            yield WayInFinding(
                _hopeless(result), WayInField.TOOL_NAME, conversation="tools", words=result.words
            )
        else:
            kind = WayInKind.FAILS if result.broke else WayInKind.TOOLS_REFUSED
            place = WayInField.TOOL_NAME if result.broke else None
            yield WayInFinding(kind, place, conversation="tools", words=result.words)
    elif tools == "sometimes":
        alone = tried.shows_tools("tools")
        kind = WayInKind.TOOLS_WITHOUT_SYSTEM if alone else WayInKind.TOOLS_WITH_SYSTEM
        yield WayInFinding(kind, conversation="tools-and-system" if alone else "tools")
    if tools == "shown":
        for name, kind in (
            ("call", WayInKind.TOOLS_AFTER_RESULT),
            ("several-rounds", WayInKind.TOOLS_LATER),
        ):
            if tried.shows_tools(name) is False:
                yield WayInFinding(kind, conversation=name)


def _unsent(tried: _Check) -> Iterator[WayInFinding]:
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
            yield WayInFinding(WayInKind.NEEDS_FIELD, WayInField.TOOL_NAME, (1,), "tools", name)
            return


def _plain(tried: _Check, names: Sequence[str]) -> Iterator[WayInFinding]:
    findings = list(tried.compared(names, frozenset()))
    lost = {f.conversation for f in findings if f.kind is WayInKind.LOST and f.field is WayInField.USER}
    if {"bare", "twenty-turns"} <= lost:
        yield WayInFinding(WayInKind.EVERYTHING_LOST, WayInField.USER, (), "bare")
        return
    # What fails in every conversation is one finding, not one of each.
    accident = (WayInKind.FAILS, WayInKind.NEEDS_FIELD)
    rendered = "bare" not in tried.failing
    yield from (f for f in findings if rendered or f.kind not in accident or f.conversation == "bare")


def _frame(tried: _Check) -> Iterator[WayInFinding]:
    """Yield what the template itself writes into a prompt."""
    prompt, history = tried.prompt("bare"), tried.prompt("twenty-turns")
    if prompt is not None and history is not None:
        before, _, _ = history.partition(conversations.ANSWERS[0].text)
        yield from check_frame(conversations.USERS[0].text, prompt, before, tried.probe.ends)


def _offered(tried: _Check, tools: ToolsShown) -> Iterator[WayInFinding]:
    """Yield what the conversations with tools lose: of the tools themselves only where they are shown."""
    for name in ("tools", "tools-and-system", "nested-tool", "long-tool", "many-tools"):
        if tools == "refused" and tried.prompt(name) is None:
            continue  # the finding on all tools has the template's words
        dropped = frozenset[WayInField]() if tried.shows_tools(name) else OFFERED
        yield from tried.compared([name], dropped)


def _called(tried: _Check, names: Sequence[str]) -> Iterator[WayInFinding]:
    """Yield what the conversations with calls lose; a lost call is one finding, not one for each argument."""
    whole = list(tried.compared(["call"], frozenset()))
    if tried.prompt("call") is None:
        yield from whole
        return
    yield from whole
    yield from tried.compared([n for n in names if n != "call"], frozenset())
    yield from _values(tried)
    lost = {f.field for f in whole if f.kind is WayInKind.LOST}
    style = tried.probe.style
    if style.arguments == "text" and WayInField.CALL not in lost:
        yield from _text_arguments(tried)


def _values(tried: _Check) -> Iterator[WayInFinding]:
    """Yield what happens to values without a nonce in the arguments of calls."""
    for group in values.GROUPS:
        prompt = tried.prompt(group)
        yield from tried.refused(group) if prompt is None else values.compare(group, prompt)


def _text_arguments(tried: _Check) -> Iterator[WayInFinding]:
    """Yield a finding where an object in place of JSON text is refused or printed as Python prints it."""
    call = tried.known["call"]
    style = replace(tried.probe.style, arguments="object")
    [result] = tried.probe.render([RenderJob(call.messages(style), call.tools, add_generation_prompt=True)])
    found = [] if isinstance(result, RenderRefused) else list(compare(call, result.text))
    fields = {WayInField.ARGUMENT, WayInField.NESTED_ARGUMENT, WayInField.ARGUMENT_NAME}
    if isinstance(result, RenderRefused) or any(f.field in fields for f in found):
        yield WayInFinding(WayInKind.TEXT_ARGUMENTS, WayInField.ARGUMENT, (1,), "call")


def _contrasts(tried: _Check) -> Iterator[WayInFinding]:
    """Yield fields of tools that hold no nonce, and whose change does not change the prompt."""
    name = next(n for n in ("tools", "tools-and-system") if tried.shows_tools(n))
    base = tried.known[name]
    changes = {
        WayInField.REQUIRED: conversations.tools(optional=False),
        WayInField.TYPE: conversations.tools(counted="string"),
    }
    jobs = [
        RenderJob(base.messages(tried.probe.style), tools, add_generation_prompt=True)
        for tools in changes.values()
    ]
    for place, result in zip(changes, tried.probe.render(jobs), strict=True):
        if isinstance(result, Rendered) and result.text == tried.prompt(name):
            yield WayInFinding(WayInKind.LOST, place, (1,), name)


def _schemas(tried: _Check) -> Iterator[WayInFinding]:
    """Yield what happens to schemas of parameters beyond one plain type."""
    for place in schemas.CASES:
        prompt, failed = tried.prompt(place), tried.failing.get(place)
        if failed is not None and "tools" not in tried.failing:
            yield WayInFinding(WayInKind.FAILS, place, (1,), place, failed.words)
        elif prompt is not None:
            yield from schemas.compare(place, prompt)


def _images(tried: _Check) -> Iterator[WayInFinding]:
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
        yield WayInFinding(WayInKind.LOST, WayInField.IMAGE, (1,), "images")
    elif texts[1] == texts[2]:
        yield WayInFinding(WayInKind.LOST, WayInField.IMAGE, (2,), "images")
