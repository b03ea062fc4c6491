"""What servers and gateways are known to do to requests, so that a wrong count of tokens names its cause."""

from __future__ import annotations

import html
import json
import re
import unicodedata
from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import StrEnum
from typing import Any

from importer.validation.prompts import Message, Prompt

TAG = re.compile(r"<[^<>]+>")


class Alteration(StrEnum):
    """One change of a request on its way to the template."""

    SYSTEM_DROPPED = "system-dropped"
    SYSTEM_MERGED = "system-merged"
    SYSTEM_AS_USER = "system-as-user"
    TURNS_DROPPED = "turns-dropped"
    TOOLS_DROPPED = "tools-dropped"
    DESCRIPTIONS_DROPPED = "descriptions-dropped"
    SWITCHES_DROPPED = "switches-dropped"
    NON_ASCII_DROPPED = "non-ascii-dropped"
    NON_ASCII_REPLACED = "non-ascii-replaced"
    ACCENTS_DROPPED = "accents-dropped"
    LATIN_1 = "latin-1"
    TAGS_DROPPED = "tags-dropped"
    HTML_ESCAPED = "html-escaped"
    HTML_UNESCAPED = "html-unescaped"
    SPACES_COLLAPSED = "spaces-collapsed"
    STRIPPED = "stripped"
    LOWERED = "lowered"


Change = Callable[[Prompt], Prompt]


def _of_texts(change: Callable[[str], str]) -> Change:
    """Return the change of each text in the messages; names, roles and tools stay."""

    def of_call(call: Mapping[str, Any]) -> dict[str, Any]:
        arguments = json.loads(call["function"]["arguments"])
        changed = {k: change(v) if isinstance(v, str) else v for k, v in arguments.items()}
        text = json.dumps(changed, ensure_ascii=False)
        return {**call, "function": {**call["function"], "arguments": text}}

    def of_turn(turn: Message, *, calls: bool) -> dict[str, Any]:
        changed = {**turn, "content": change(turn.get("content") or "")}
        if calls and turn.get("tool_calls"):
            changed["tool_calls"] = [of_call(call) for call in turn["tool_calls"]]
        return changed

    return lambda p: replace(p, messages=tuple(of_turn(m, calls=True) for m in p.messages))


def _of_all_texts(change: Callable[[str], str]) -> Change:
    """Return the change of each text in the messages, and in the descriptions of tools."""

    def deep(value: Any, key: str = "") -> Any:
        if isinstance(value, Mapping):
            return {k: deep(v, k) for k, v in value.items()}
        return change(value) if isinstance(value, str) and key == "description" else value

    return lambda p: replace(_of_texts(change)(p), tools=tuple(deep(tool) for tool in p.tools))


def _without(role: str) -> Change:
    return lambda p: replace(p, messages=tuple(m for m in p.messages if m["role"] != role))


def _merged(between: str) -> Change:
    """Return the change that puts the words of the system before those of the first question."""

    def change(prompt: Prompt) -> Prompt:
        first, *rest = prompt.messages
        if first["role"] != "system" or not rest or rest[0]["role"] != "user":
            return prompt
        joined = {"role": "user", "content": f"{first['content']}{between}{rest[0]['content']}"}
        return replace(prompt, messages=(joined, *rest[1:]))

    return change


def _as_user(prompt: Prompt) -> Prompt:
    turns = ({**m, "role": "user"} if m["role"] == "system" else m for m in prompt.messages)
    return replace(prompt, messages=tuple(turns))


def _last_turn(prompt: Prompt) -> Prompt:
    return replace(prompt, messages=prompt.messages[-1:])


def _undescribed(prompt: Prompt) -> Prompt:
    def tool(one: Mapping[str, Any]) -> dict[str, Any]:
        return {**one, "function": {k: v for k, v in one["function"].items() if k != "description"}}

    return replace(prompt, tools=tuple(tool(one) for one in prompt.tools))


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()


# In the order in which they are tried; several changes may be one alteration.
CHANGES: tuple[tuple[Alteration, Change], ...] = (
    (Alteration.SYSTEM_DROPPED, _without("system")),
    *((Alteration.SYSTEM_MERGED, _merged(between)) for between in ("\n\n", "\n", " ")),
    (Alteration.SYSTEM_AS_USER, _as_user),
    (Alteration.TURNS_DROPPED, _last_turn),
    (Alteration.TOOLS_DROPPED, lambda p: replace(p, tools=())),
    (Alteration.DESCRIPTIONS_DROPPED, _undescribed),
    (Alteration.SWITCHES_DROPPED, lambda p: replace(p, switches={})),
    *(
        (alteration, scope(change))
        for alteration, change in (
            (Alteration.NON_ASCII_DROPPED, lambda t: t.encode("ascii", "ignore").decode()),
            (Alteration.NON_ASCII_REPLACED, lambda t: t.encode("ascii", "replace").decode()),
            (Alteration.ACCENTS_DROPPED, _folded),
            (Alteration.LATIN_1, lambda t: t.encode().decode("latin-1")),
            (Alteration.TAGS_DROPPED, lambda t: TAG.sub("", t)),
            (Alteration.HTML_ESCAPED, html.escape),
            (Alteration.HTML_UNESCAPED, html.unescape),
            (Alteration.SPACES_COLLAPSED, lambda t: " ".join(t.split())),
            (Alteration.SPACES_COLLAPSED, lambda t: re.sub(r"\s+", " ", t)),
            (Alteration.SPACES_COLLAPSED, lambda t: re.sub(r"[ \t]+", " ", t)),
            (Alteration.STRIPPED, str.strip),
            (Alteration.LOWERED, str.lower),
        )
        for scope in (_of_texts, _of_all_texts)
    ),
)
