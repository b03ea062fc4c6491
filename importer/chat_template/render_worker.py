"""The sandbox's side of rendering: the Jinja environment of transformers, a compiler and the jobs.

Runs inside the child process only. Differences from transformers: the clock is fixed, so a template renders
the same every day, and the operations with a long uninterruptible step are bounded.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import cache
from typing import Any, Literal, NoReturn

import jinja2
import jinja2.debug  # loaded lazily by Jinja when a template fails, too late once files are closed
import jinja2.ext
import jinja2.nodes
import jinja2.parser
import jinja2.sandbox

from importer.chat_template.render import (
    CLOCK,
    RefusalReason,
    Rendered,
    RenderExchange,
    RenderJob,
    RenderRefused,
    RenderResult,
    Result,
)
from importer.reasons import Reason
from importer.sandbox.limits import OutOfTimeError, processor

_later = timedelta()
MAX_POWER_BITS = 4096
MAX_REPEATED = 1_000_000
LOOKED_AT = (
    jinja2.nodes.Name,
    jinja2.nodes.Assign,
    jinja2.nodes.Compare,
    jinja2.nodes.Test,
    jinja2.nodes.Filter,
)
GUARDS = {"defined", "undefined", "default", "d"}  # tests and filters for a name that may be missing
MAX_OUTPUT = 100_000  # characters of one rendering; the longest of 436 real templates writes 8,314
MAX_REASON = 300
MAX_KNOWN = 4  # compiled templates kept
# Rendered before files are closed, to load the lazy modules of Python and Jinja: codecs, error pages.
WARMING = (
    "{{ 'é\\n' | tojson }}{{ lipsum(1) | length }}{{ strftime_now('%d %B') }}",
    "{{ missing.field }}",
    "{% if %}",
)
DELIBERATE = jinja2.exceptions.TemplateError  # of raise_exception; its subclasses are accidents
Compiled = tuple[jinja2.Template, dict[str, list[Any]]]


class GenerationBlock(jinja2.ext.Extension):
    """``{% generation %} … {% endgeneration %}``: marks the assistant's text; renders as its body."""

    tags = {"generation"}  # noqa: RUF012 - Jinja reads a plain class attribute

    def parse(self, parser: jinja2.parser.Parser) -> jinja2.nodes.Node:
        """Parse the block as a call with a body that is rendered in place."""
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    def _body(self, caller: Callable[[], str]) -> str:
        return caller()


class BoundedSandbox(jinja2.sandbox.ImmutableSandboxedEnvironment):
    """The immutable sandbox; too large powers and repetitions fail before they are computed."""

    intercepted_binops = frozenset({"**", "*"})

    def call_binop(self, context: jinja2.runtime.Context, operator: str, left: Any, right: Any) -> Any:
        """Return the result of an operator, bounded where Python computes it in one uninterruptible step.

        Raises SecurityError.
        """
        if operator == "**" and isinstance(left, int) and isinstance(right, int):
            if left.bit_length() * abs(right) > MAX_POWER_BITS:
                raise jinja2.exceptions.SecurityError("a power too large to compute")
        elif operator == "*":
            _check_product(left, right)
        return super().call_binop(context, operator, left, right)


class MutableSandbox(BoundedSandbox):
    """A sandbox for the few published templates that append to lists; transformers' sandbox rejects them."""

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """Return whether Jinja's plain sandbox allows it: lists and dictionaries may change."""
        return jinja2.sandbox.SandboxedEnvironment.is_safe_attribute(self, obj, attr, value)


def _check_product(left: Any, right: Any) -> None:
    if isinstance(left, int) and isinstance(right, int):
        if left.bit_length() + right.bit_length() > MAX_POWER_BITS:
            raise jinja2.exceptions.SecurityError("a product too large to compute")
        return
    for text, count in ((left, right), (right, left)):
        if (
            isinstance(text, (str, list, tuple))
            and isinstance(count, int)
            and len(text) * count > MAX_REPEATED
        ):
            raise jinja2.exceptions.SecurityError("a repetition too long to keep")


def tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    """Return JSON in transformers' form: no HTML escapes, non-ASCII unescaped."""
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def raise_exception(message: str) -> NoReturn:
    """Raise TemplateError: a template's own refusal of a conversation."""
    raise jinja2.exceptions.TemplateError(message)


def strftime_now(form: str) -> str:
    """Return the date of the fixed clock."""
    return (CLOCK + _later).strftime(form)


def set_clock(seconds: float) -> None:
    """Set the clock to ``seconds`` after ``CLOCK``."""
    global _later  # noqa: PLW0603 - the worker renders one job at a time
    _later = timedelta(seconds=seconds)


def make(*, mutable: bool = False) -> BoundedSandbox:
    """Return a fresh environment; ``mutable`` lets the template change its own lists."""
    kind = MutableSandbox if mutable else BoundedSandbox
    environment = kind(
        trim_blocks=True, lstrip_blocks=True, extensions=[GenerationBlock, jinja2.ext.loopcontrols]
    )
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = strftime_now
    return environment


def variables(tree: jinja2.nodes.Template, known: Collection[str]) -> dict[str, list[Any]]:
    """Return the variables that a caller may set, each with the constants it is compared with.

    These are names that the template reads and never sets, and names that it tests for a definition first;
    ``known`` are the environment's own.
    """
    read: set[str] = set()
    stored: set[str] = set()
    tested: set[str] = set()
    copies: dict[str, set[str]] = {}
    compared: list[tuple[set[str], list[Any]]] = []
    for node in tree.find_all(LOOKED_AT):
        if isinstance(node, jinja2.nodes.Name):
            (read if node.ctx == "load" else stored).add(node.name)
        elif isinstance(node, jinja2.nodes.Assign):
            if isinstance(node.target, jinja2.nodes.Name):
                copies.setdefault(node.target.name, set()).update(_names(node.node))
        elif isinstance(node, jinja2.nodes.Compare):
            constants = [c.value for c in node.find_all(jinja2.nodes.Const)]
            compared.append((_names(node), [c for c in constants if isinstance(c, (str, int))]))
        elif isinstance(node, (jinja2.nodes.Test, jinja2.nodes.Filter)) and node.name in GUARDS:
            tested |= {node.node.name} if isinstance(node.node, jinja2.nodes.Name) else set()
    names = ((read - stored) | tested) - {"loop", *known}
    by_name: dict[str, list[Any]] = {n: [] for n in sorted(names)}
    for looked_at, constants in compared:
        origins = looked_at.union(*(copies.get(n, set()) for n in looked_at))
        for name in origins & by_name.keys():
            by_name[name] += [c for c in constants if c not in by_name[name]]
    return by_name


def _names(node: jinja2.nodes.Node) -> set[str]:
    names = {n.name for n in node.find_all(jinja2.nodes.Name)}
    return names | {node.name} if isinstance(node, jinja2.nodes.Name) else names


class OutOfRoomError(Exception):
    """The rendering is longer than any prompt."""


class Compiler:
    """Compiles templates and caches the last few: one template has several exchanges."""

    def __init__(self) -> None:
        self._environments = {mutable: make(mutable=mutable) for mutable in (False, True)}
        self._known: dict[tuple[str, bool], Compiled] = {}

    def compile(self, text: str, *, mutable: bool) -> Compiled:
        """Return the template and the variables a caller may set."""
        key = (text, mutable)
        if key not in self._known:
            chosen = self._environments[mutable]
            tree = chosen.parse(text)
            settable = variables(tree, chosen.globals)
            compiled = chosen.from_string(tree), settable
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            self._known[key] = compiled
        return self._known[key]


@cache
def compiler() -> Compiler:
    """Return the compiler of this process."""
    return Compiler()


class Local:
    """Renders in this process: only within a task of the sandbox and its limits."""

    def render(
        self,
        template: str,
        jobs: Sequence[RenderJob],
        variables: Mapping[str, object] | None = None,
        *,
        mutable: bool = False,
    ) -> RenderResult:
        """Render every job; a template that may change its arguments has its own copy of them."""
        copies = json.loads(json.dumps([[job.messages, job.tools, dict(job.kwargs)] for job in jobs]))
        own = [
            replace(job, messages=messages, tools=tools, kwargs=kwargs)
            for job, (messages, tools, kwargs) in zip(jobs, copies, strict=True)
        ]
        return render(RenderExchange(template, own, variables or {}, mutable))


def warm() -> None:
    """Render templates that load the lazy modules of Jinja and Python."""
    for text in WARMING:
        render(RenderExchange(text, [RenderJob([])]))


def render(exchange: RenderExchange) -> RenderResult:
    """Render every job; once the time is used up, the rest fail untried."""
    results: list[Result] = []
    variables: dict[str, list[Any]] = {}
    try:
        with processor(exchange.seconds):
            try:
                template, variables = compiler().compile(exchange.template, mutable=exchange.mutable)
            except Exception as error:
                results = [_failure("syntax", error)] * len(exchange.jobs)
            else:
                for job in exchange.jobs:
                    results.append(_render(template, exchange.variables, job))
    except OutOfTimeError:
        late = RenderRefused(Reason(RefusalReason.TIME, seconds=exchange.seconds), "limit")
        results += [late] * (len(exchange.jobs) - len(results))
    return RenderResult(tuple(results), variables)


def _render(template: jinja2.Template, variables: Mapping[str, object], job: RenderJob) -> Result:
    values = {
        **variables,
        "messages": job.messages,
        "tools": job.tools,
        "documents": None,
        "add_generation_prompt": job.add_generation_prompt,
        **job.kwargs,
    }
    set_clock(job.later)
    try:
        return Rendered(_bounded(template, values))
    except MemoryError:
        return RenderRefused(Reason(RefusalReason.MEMORY), "memory")
    except OutOfRoomError:
        return RenderRefused(Reason(RefusalReason.LENGTH, limit=MAX_OUTPUT), "limit")
    except RecursionError as error:
        return _failure("limit", error)
    except Exception as error:
        return _failure("refused", error, broke=type(error) is not DELIBERATE)


def _bounded(template: jinja2.Template, values: dict[str, object]) -> str:
    parts: list[str] = []
    size = 0
    for part in template.generate(values):
        size += len(part)
        if size > MAX_OUTPUT:
            raise OutOfRoomError
        parts.append(part)
    return "".join(parts)


def _failure(
    kind: Literal["syntax", "refused", "limit"], error: Exception, *, broke: bool = False
) -> RenderRefused:
    words = " ".join(str(error).split()) or type(error).__name__
    return RenderRefused(Reason(RefusalReason.RAISED, words=words[:MAX_REASON]), kind, broke)
