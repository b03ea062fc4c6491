"""The Jinja environment in which transformers compiles chat templates, rebuilt from its behaviour.

Runs inside the worker process only. Differences from transformers: the clock stands still, so that a
template renders the same every day, and the few operations that cost time in one uninterruptible step
are bounded.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from datetime import UTC, datetime, timedelta
from typing import Any, NoReturn

import jinja2
import jinja2.debug  # loaded lazily by Jinja when a template fails, too late once files are closed
import jinja2.ext
import jinja2.nodes
import jinja2.parser
import jinja2.sandbox

CLOCK = datetime(2026, 1, 15, 12, 0, 0, tzinfo=UTC)
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
GUARDS = {"defined", "undefined", "default", "d"}  # what a template does to a name that may be missing


class GenerationBlock(jinja2.ext.Extension):
    """``{% generation %} … {% endgeneration %}``: marks what the assistant wrote; renders as its body."""

    tags = {"generation"}  # noqa: RUF012 - Jinja reads a plain class attribute

    def parse(self, parser: jinja2.parser.Parser) -> jinja2.nodes.Node:
        """Read the block as a call whose body is rendered in place."""
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    def _body(self, caller: Callable[[], str]) -> str:
        return caller()


class BoundedSandbox(jinja2.sandbox.ImmutableSandboxedEnvironment):
    """The immutable sandbox, with powers and repetitions refused before they are computed."""

    intercepted_binops = frozenset({"**", "*"})

    def call_binop(self, context: jinja2.runtime.Context, operator: str, left: Any, right: Any) -> Any:
        """Bound what Python would compute in one step that no signal can interrupt."""
        if operator == "**" and isinstance(left, int) and isinstance(right, int):
            if left.bit_length() * abs(right) > MAX_POWER_BITS:
                raise jinja2.exceptions.SecurityError("a power too large to compute")
        elif operator == "*":
            _check_product(left, right)
        return super().call_binop(context, operator, left, right)


class MutableSandbox(BoundedSandbox):
    """For the few published templates that append to lists, which transformers' own sandbox refuses."""

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        """What the plain sandbox allows: lists and dictionaries of the template may change."""
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
    """JSON as transformers writes it: no HTML escapes, non-ASCII kept."""
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


def raise_exception(message: str) -> NoReturn:
    """How a template refuses a conversation."""
    raise jinja2.exceptions.TemplateError(message)


def strftime_now(form: str) -> str:
    """The date, on a clock that stands still."""
    return (CLOCK + _later).strftime(form)


def set_clock(seconds: float) -> None:
    """So much later than ``CLOCK`` it is from now on."""
    global _later  # noqa: PLW0603 - the worker renders one job at a time
    _later = timedelta(seconds=seconds)


def make(*, mutable: bool = False) -> BoundedSandbox:
    """A fresh environment; ``mutable`` lets the template change its own lists."""
    kind = MutableSandbox if mutable else BoundedSandbox
    environment = kind(
        trim_blocks=True, lstrip_blocks=True, extensions=[GenerationBlock, jinja2.ext.loopcontrols]
    )
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = raise_exception
    environment.globals["strftime_now"] = strftime_now
    return environment


def variables(tree: jinja2.nodes.Template, known: Collection[str]) -> dict[str, list[Any]]:
    """Variables that a caller may set, each with the constants it is compared with, itself or through a copy.

    These are the names that the template reads and never sets, and those whose definition it tests first;
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
    found: dict[str, list[Any]] = {n: [] for n in sorted(names)}
    for looked_at, constants in compared:
        origins = looked_at.union(*(copies.get(n, set()) for n in looked_at))
        for name in origins & found.keys():
            found[name] += [c for c in constants if c not in found[name]]
    return found


def _names(node: jinja2.nodes.Node) -> set[str]:
    found = {n.name for n in node.find_all(jinja2.nodes.Name)}
    return found | {node.name} if isinstance(node, jinja2.nodes.Name) else found
