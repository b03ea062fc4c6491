"""Texts of odd shapes, each in any length; near misses of a pattern are made from the pattern itself."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from random import Random
from typing import Any

from tests.clock.pumps import parsed, repeats, words

Shape = Callable[[int], str]
# ``a: 1`` on ten thousand lines, tags that never end, and whatever else begins over and over.
UNITS = (
    *"aA0 \t\n\r-|<>[]{}()\"'\\`#*_.,:;/=!&~+?@%$^",
    "\ud800", "e\u0301", "\u2581", "\uff5c", "\u00e9", "\x85", "\x1b",
    "<think", "<think>", "</think>", "<|", "<|a|>", "</", "<!--", "-->", "{{", "{%", "}}", "[/", "[TOOL_CALLS]",
    "``", "```\n", "- ", "* a\n", "? ", "a: ", "a: 1\n", "- a\n", "- a: 1\n", "&a ", "*a ", "!!a ", "|a|b|\n",
    "|-", "| ", "> ", ">", "# a\n", "#\n", "# ", "  \n", "\n\n", "a\n", "a ", "a-", "a.", "a/", "../", "%25", "aA", "a1",
    "1.", "1,", "--", "__", ". ", "a:", "a,", '"a', "\\\"", "[a](", "data: {}\n\n", "\r\n", "models--",
    "temperature ", "temperature=", "without thinking ", "Traceback ", "E: ", "a.B", "://", "<a", "<a ", "<a>", " for a",
    "layers.0.", "mtp", "-4bit", "yarn ", "factor: ",
)  # fmt: skip
FEW = ("a", " ", "\n", "-", "<think", "{{", "[", "a: 1\n", "|a|b|\n", "\\", "0", "\ud800")
SAMPLES = "aA0 \n-|<>[]{}\"'\\`#*.:/="


def repeated(unit: str, head: str = "", tail: str = "") -> Shape:
    """``unit`` over and over between ``head`` and ``tail``."""
    return lambda n: head + unit * max(1, n // len(unit)) + tail


def shapes(patterns: Sequence[re.Pattern[Any]] = (), *, few: bool = False) -> Mapping[str, Shape]:
    """Every shape by its name; ``few`` are those that differ most."""
    found = {repr(unit): repeated(unit) for unit in (FEW if few else UNITS)}
    found["nested brackets"] = lambda n: "[" * (n // 2) + "]" * (n // 2)
    found["numbered keys"] = lambda n: "".join(f"k{i}: {i}\n" for i in range(n // 9))
    found["random 0"] = lambda n: _random(n, 0)
    if few:
        return found
    found |= {f"{unit!r} that ends otherwise": repeated(unit, "", "!\n") for unit in UNITS}
    found |= {f"{unit!r} on a line": repeated(unit, "a: ", "\x00x") for unit in UNITS}
    found |= {f"random {seed}": lambda n, seed=seed: _random(n, seed) for seed in range(1, 4)}
    found |= {
        "deeper and deeper": lambda n: "".join(f"{' ' * i}a:\n" for i in range(int((2 * n) ** 0.5))),
        "nested braces": lambda n: '{"a":' * (n // 6) + "1" + "}" * (n // 6),
        "nested flow": lambda n: "a: " + "{a: " * (n // 5) + "}" * (n // 5),
        "numbered words": lambda n: " ".join(map(str, range(n // 6))),
        "numbered tags": lambda n: "".join(f"<a{i}>" for i in range(n // 7)),
        "a table's rule": lambda n: f"|a|b|\n|{'-' * n}x",
        "a header without an end": lambda n: "---\n" + "a: 1\n" * (n // 5),
        "a header": lambda n: "---\n" + "a: 1\n" * (n // 5) + "---\n",
    }
    for pattern in patterns:
        found |= near(pattern)
    return found


def _random(n: int, seed: int) -> str:
    choice = Random(seed)
    return "".join(choice.choices(SAMPLES, k=n))


def near(pattern: re.Pattern[Any]) -> dict[str, Shape]:
    """For every part that may repeat: what leads to it, then the part over and over, then a misfit."""
    found: dict[str, Shape] = {}
    for head, unit in _pumps(
        pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode()
    ):
        for each, lead in ((unit, head), (head + unit, "")):
            for tail in ("\x00!", "\n"):
                found[f"near {pattern.pattern!r:.60}: {lead!r} {each!r} {tail!r}"] = repeated(
                    each, lead, tail
                )
    return found


@cache
def _pumps(pattern: str) -> tuple[tuple[str, str], ...]:
    found = ((head, words(body)[0]) for head, body in repeats(parsed(pattern), ""))
    return tuple(dict.fromkeys((head, unit) for head, unit in found if unit))
