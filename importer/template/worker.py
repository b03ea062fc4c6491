"""What renders inside the sandbox: templates compiled as transformers compiles them, under limits.

The kinds of a refusal: ``syntax`` (does not compile), ``refused`` (template or data raised), ``limit`` or
``memory``. ``broke`` says that nobody refused in so many words: ``raise_exception`` was not called.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Literal

import jinja2

from importer.reasons import Reason
from importer.sandbox.codec import codec_of
from importer.sandbox.limits import OutOfTimeError, processor
from importer.template import environment
from importer.template.render import Exchange, Job, RefusalReason, Refused, Rendered, Rendering, Result

MAX_OUTPUT = 100_000  # characters of one rendering; the longest of 436 real templates writes 8,314
MAX_REASON = 300
MAX_KNOWN = 4  # compiled templates kept
# Rendered before files are closed, so that what Python and Jinja load lazily is loaded: codecs, error pages.
WARMING = (
    "{{ 'é\\n' | tojson }}{{ lipsum(1) | length }}{{ strftime_now('%d %B') }}",
    "{{ missing.field }}",
    "{% if %}",
)
# What raise_exception raises, and a sandbox: engines have other ones.
MEANT = (jinja2.exceptions.TemplateError, jinja2.exceptions.SecurityError)
Compiled = tuple[jinja2.Template, dict[str, list[Any]]]


class OutOfRoomError(Exception):
    """The rendering is longer than any prompt could be."""


class Compiler:
    """Compiles templates and remembers the last few: one template is asked in several exchanges."""

    def __init__(self) -> None:
        self._environments = {mutable: environment.make(mutable=mutable) for mutable in (False, True)}
        self._known: dict[tuple[str, bool], Compiled] = {}

    def compile(self, text: str, *, mutable: bool) -> Compiled:
        """The template and the variables a caller may set."""
        key = (text, mutable)
        if key not in self._known:
            chosen = self._environments[mutable]
            tree = chosen.parse(text)
            found = environment.variables(tree, chosen.globals)
            compiled = chosen.from_string(tree), found
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            self._known[key] = compiled
        return self._known[key]


@cache
def compiler() -> Compiler:
    """The one of this process."""
    return Compiler()


class Local:
    """Renders here: only for a task of the sandbox, which limits what that may take."""

    def render(
        self,
        template: str,
        jobs: Sequence[Job],
        variables: Mapping[str, Any] | None = None,
        *,
        mutable: bool = False,
    ) -> Rendering:
        """As the sandbox's own task renders; a template that may change what it is given has its own copy."""
        form = codec_of(Exchange)
        sent = json.dumps(form.encode(Exchange(template, jobs, variables or {}, mutable)))
        return render(form.decode(json.loads(sent)))


def warm() -> None:
    """Render what loads the rest of Jinja and Python."""
    for text in WARMING:
        render(Exchange(text, [Job([])]))


def render(exchange: Exchange) -> Rendering:
    """Render every job; once time is out, the rest are not tried."""
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
        late = Refused(Reason(RefusalReason.TIME, seconds=exchange.seconds), "limit")
        results += [late] * (len(exchange.jobs) - len(results))
    return Rendering(tuple(results), variables)


def _render(template: jinja2.Template, variables: Mapping[str, Any], job: Job) -> Result:
    values = {
        **variables,
        "messages": job.messages,
        "tools": job.tools,
        "documents": None,
        "add_generation_prompt": job.add_generation_prompt,
        **job.kwargs,
    }
    environment.set_clock(job.later)
    try:
        return Rendered(_bounded(template, values))
    except MemoryError:
        return Refused(Reason(RefusalReason.MEMORY), "memory")
    except OutOfRoomError:
        return Refused(Reason(RefusalReason.LENGTH, limit=MAX_OUTPUT), "limit")
    except RecursionError as error:
        return _failure("limit", error)
    except Exception as error:
        return _failure("refused", error, broke=type(error) not in MEANT)


def _bounded(template: jinja2.Template, values: dict[str, Any]) -> str:
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
) -> Refused:
    words = " ".join(str(error).split()) or type(error).__name__
    return Refused(Reason(RefusalReason.RAISED, words=words[:MAX_REASON]), kind, broke)
