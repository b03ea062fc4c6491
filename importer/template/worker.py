"""The process that renders: JSON lines in, JSON lines out, under limits, with nothing left to open.

Request   ``{"template": text, "mutable": bool, "variables": {…}, "jobs": [job]}``
Job       ``{"messages", "tools", "add_generation_prompt", "kwargs", "later"}``, ``later`` in seconds
Answer    ``{"variables": {name: [constants]}, "results": [{"text"} | {"error", "kind", "broke"}]}``

``kind``  ``syntax`` (does not compile), ``refused`` (template or data raised), ``limit`` or ``memory``.
``broke`` that nobody refused in so many words: ``raise_exception`` was not called.
"""

from __future__ import annotations

import json
import resource
import signal
import sys
from contextlib import suppress
from types import FrameType
from typing import Any

import jinja2

from importer.template import environment

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
WARMING_JOB: dict[str, Any] = {"messages": [], "tools": None, "add_generation_prompt": False, "kwargs": {}}


class OutOfTimeError(BaseException):
    """Raised by the timer; no ``except Exception`` on the way holds it up."""


class OutOfRoomError(Exception):
    """The rendering is longer than any prompt could be."""


class Compiler:
    """Compiles templates and remembers the last few: one template is asked in several exchanges."""

    def __init__(self) -> None:
        self._environments = {mutable: environment.make(mutable=mutable) for mutable in (False, True)}
        self._known: dict[tuple[str, bool], tuple[jinja2.Template, dict[str, list[Any]]]] = {}

    def compile(self, text: str, *, mutable: bool) -> tuple[jinja2.Template, dict[str, list[Any]]]:
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


def main(memory: int, seconds: float) -> None:
    """Serve requests from stdin until it closes.

    ``memory``   bytes of address space for the process.
    ``seconds``  of processor time for each request.
    """
    compiler = Compiler()
    for text in WARMING:
        _answer(
            compiler, seconds, {"template": text, "mutable": False, "variables": {}, "jobs": [WARMING_JOB]}
        )
    _confine(memory)
    signal.signal(signal.SIGPROF, _out_of_time)
    for line in sys.stdin.buffer:
        answer = json.dumps(_answer(compiler, seconds, json.loads(line)))
        sys.stdout.write(answer + "\n")
        sys.stdout.flush()


def _confine(memory: int) -> None:
    """From here on no file, socket or process can be opened."""
    limits = {"RLIMIT_AS": memory, "RLIMIT_NOFILE": 0, "RLIMIT_NPROC": 0, "RLIMIT_FSIZE": 0, "RLIMIT_CORE": 0}
    for name, value in limits.items():
        with suppress(ValueError, OSError):  # macOS knows the names and refuses some values
            resource.setrlimit(getattr(resource, name), (value, value))


def _out_of_time(_signal: int, _frame: FrameType | None) -> None:
    raise OutOfTimeError


def _answer(compiler: Compiler, seconds: float, request: dict[str, Any]) -> dict[str, Any]:
    """Render every job; once time is out, the rest are not tried."""
    results: list[dict[str, Any]] = []
    variables: dict[str, list[Any]] = {}
    jobs = request["jobs"]
    try:
        signal.setitimer(signal.ITIMER_PROF, seconds)
        try:
            template, variables = compiler.compile(request["template"], mutable=request["mutable"])
        except Exception as error:
            results = [_failure("syntax", error)] * len(jobs)
        else:
            for job in jobs:
                results.append(_render(template, request["variables"], job))
    except OutOfTimeError:
        late = {"error": f"took more than {seconds:g} s of processor time", "kind": "limit"}
        results += [late] * (len(jobs) - len(results))
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return {"variables": variables, "results": results}


def _render(template: jinja2.Template, variables: dict[str, Any], job: dict[str, Any]) -> dict[str, Any]:
    values = {
        **variables,
        "messages": job["messages"],
        "tools": job["tools"],
        "documents": None,
        "add_generation_prompt": job["add_generation_prompt"],
        **job["kwargs"],
    }
    environment.set_clock(job.get("later", 0))
    try:
        return {"text": _bounded(template, values)}
    except MemoryError:
        return {"error": "needs more memory than a rendering may take", "kind": "memory"}
    except (OutOfRoomError, RecursionError) as error:
        return _failure("limit", error)
    except Exception as error:
        return _failure("refused", error) | {"broke": type(error) not in MEANT}


def _bounded(template: jinja2.Template, values: dict[str, Any]) -> str:
    parts: list[str] = []
    size = 0
    for part in template.generate(values):
        size += len(part)
        if size > MAX_OUTPUT:
            raise OutOfRoomError(f"writes more than {MAX_OUTPUT:,} characters")
        parts.append(part)
    return "".join(parts)


def _failure(kind: str, error: Exception) -> dict[str, Any]:
    words = " ".join(str(error).split()) or type(error).__name__
    return {"error": words[:MAX_REASON], "kind": kind}
