"""Conversations whose counts of tokens tell what a server left out: one part of a request in each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from importer.chat_template.request_coverage.nonces import name, nonce
from importer.validation.prompts import Message, Prompt, call, function, result, user


class Part(StrEnum):
    """The part of a request that a conversation is about."""

    PLAIN = "plain"
    LETTERS = "letters"
    TAGS = "tags"
    SPACES = "spaces"
    FILTERED = "filtered"
    ROLES = "roles"
    REPEATED = "repeated"
    TOOLS = "tools"
    ROUND = "round"
    RESULTS = "results"
    IN_PARTS = "in-parts"
    SWITCH = "switch"
    ORDINARY = "ordinary"
    LONG_USER = "long-user"
    LONG_SYSTEM = "long-system"


@dataclass(frozen=True, slots=True)
class NoncePrompt:
    """A conversation about one part of a request.

    ``sent`` is what goes to the server, where that is another form of ``prompt``.
    """

    part: Part
    prompt: Prompt
    sent: Prompt | None = None


LETTERS = (
    "Z\u00fcrich, Krak\u00f3w, \u0391\u03b8\u03ae\u03bd\u03b1, \u041c\u043e\u0441\u043a\u0432\u0430, "
    "\u6771\u4eac, \U0001f642."
)
TAGS = "Is <b>this</b> a <i>tag</i>,<br/> and 5 < 6 & 7 > 2, or &lt;that&gt;?"
SPACES = "one  two   three\n\n\n\nfour\t\tfive \n    six\n\nseven"
# What filters look for: markup, paths, statements, addresses, numbers of cards, words of secrets.
FILTERED = (
    "<script>alert(1)</script> ../../etc/passwd; SELECT name FROM users WHERE id = 1 OR 1=1 -- "
    "mia@example.org, +49 30 1234567, 4111 1111 1111 1111, DE89370400440532013000, 192.0.2.7, "
    "https://example.org/?q=${jndi:x}&key=sk-abc123 password: hunter2, order 20418837"
)
SIZES = {Part.LONG_USER: (8_600, 4_400, 2_200), Part.LONG_SYSTEM: (2_200, 1_000)}  # letters
LONG_PART = 4  # nonces of a part: many more tokens than what engines put between two parts
ONE_TOKEN: Mapping[str, Any] = {"max_tokens": 1}
WORD = "again"


def _prompt(
    part: Part, *messages: Message, tools: Sequence[Any] = (), size: int = 0, **switches: Any
) -> NoncePrompt:
    label = f"nonce-{part}{f'-{size}' if size else ''}"
    return NoncePrompt(part, Prompt(label, messages, tuple(tools), switches=switches, extra=ONE_TOKEN))


def _system(text: str) -> Message:
    return {"role": "system", "content": text}


def _tool(place: str, about: str) -> Any:
    parameter = {"type": "string", "description": about}
    return function(name(place), nonce(f"{place} about"), {"key": parameter})


def short(switches: Mapping[str, Any]) -> tuple[NoncePrompt, ...]:
    """Return the short conversations; ``switches`` are variables that change the template's text."""
    tools = (_tool("first tool", "Z\u00fcrich \u6771\u4eac"), _tool("second tool", "<b>a</b>  b & c"))
    called = name("first tool")
    made = call(1, called, {"key": "Krak\u00f3w <i>b</i>  &"})
    returned = result(1, called, {"report": nonce("result")})
    other = name("second tool")
    further = call(2, other, {"key": nonce("second call")})
    both: Message = {**made, "tool_calls": [*made["tool_calls"], *further["tool_calls"]]}
    second = result(2, other, {"report": nonce("second result")})
    plain = user(f"{nonce('plain')}?")
    found = [
        _prompt(Part.PLAIN, plain),
        _prompt(Part.LETTERS, user(f"{nonce('letters')} {LETTERS}")),
        _prompt(Part.TAGS, user(f"{nonce('tags')} {TAGS}")),
        _prompt(Part.FILTERED, user(f"{nonce('filtered')} {FILTERED}")),
        _prompt(Part.SPACES, user(f"\n  {nonce('spaces')} {SPACES}  \n")),
        _prompt(
            Part.ROLES, _system(nonce("system")), user(nonce("question")),
            {"role": "assistant", "content": nonce("answer")}, plain,
        ),
    ]  # fmt: skip
    texts = [" ".join(nonce(f"part {part}-{n}") for n in range(LONG_PART)) for part in range(2)]
    in_parts: Message = {"role": "user", "content": [{"type": "text", "text": text} for text in texts]}
    one = _prompt(Part.IN_PARTS, user("".join(texts)))
    found.append(replace(one, sent=replace(one.prompt, messages=(in_parts,))))
    again: Message = {"role": "assistant", "content": nonce("again")}
    found.append(_prompt(Part.REPEATED, plain, again, plain, again, plain))
    if switches:
        found.append(_prompt(Part.SWITCH, plain, **switches))
    found.append(_prompt(Part.TOOLS, _system(nonce("beside tools")), plain, tools=tools))
    found.append(_prompt(Part.ROUND, plain, made, returned, tools=tools))
    found.append(_prompt(Part.RESULTS, plain, both, returned, second, tools=tools))
    return tuple(found)


def long(word: str) -> tuple[NoncePrompt, ...]:
    """Return conversations with a long question and a long system turn, each in several sizes.

    ``word`` is repeated. The largest that is short enough in tokens is the one to send.
    """
    found = []
    for part, sizes in SIZES.items():
        for size in sizes:
            text = " ".join([nonce(part), *[word] * (size // (len(word) + 1)), nonce(f"{part} end")])
            turns = (user(text),) if part is Part.LONG_USER else (_system(text), user(nonce("plain")))
            found.append(_prompt(part, *turns, size=size))
    return tuple(found)
