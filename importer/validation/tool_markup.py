"""Markup in served text: markers that no parser read, calls as text, turns that went on.

The patterns are independent of wire formats: they match the shape common to all of them, and the markers
that a proof has put into the document.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from importer.chat_template.samples import Tool
from importer.hub.snapshot import mapping
from importer.validation.context import Context
from importer.validation.outcome import Fail, Inconclusive, Outcome, Stage, note
from importer.validation.prompts import SUM, Prompt

_WORD = r"[A-Za-z0-9_:.\-]{1,40}"
# As in: <|im_end|> (also with full-width bars)  <|channel>  <channel|>  <start_of_turn>  </s>  <bos>  [INST]
_CONTROL = re.compile(
    rf"<\|{_WORD}\|?>|<{_WORD}\|>|<\uff5c[^\uff5c<>\n]{{1,40}}\uff5c>|</?(?:start|end)_of_\w{{1,20}}>"
    r"|</?s>|<(?:bos|eos|pad|unk|eot|eom|bot|mask|sep)>|<unused\d+>"
    r"|\[/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_RESULTS|TOOL_CALLS|TOOL_CONTENT|ARGS|IMG)\]",
    re.IGNORECASE,
)
_CALL = re.compile(
    r"</?(?:\w+:)?(?:tool_calls?|function_calls?|tool_response|invoke|arg_key|arg_value)\b[^<>\n]{0,80}>"
    r"|<(?:function|parameter|tool_call)[= ][^<>\n]{1,80}>|<\|?(?:tool_calls?|python_tag)[^<>\n]{0,40}\|?>"
    r"|\[/?TOOL_CALLS\]",
    re.IGNORECASE,
)
_THINKING = re.compile(
    r"</?(?:\w{1,20}[:_])?(?:think|thinking|thought|thoughts|reasoning|reason)>"
    r"|\[/?THINK\]|<\|(?:START|END)_THINKING\|>|<\|?/?(?:think|thinking)[^<>\n]{0,20}\|?>",
    re.IGNORECASE,
)
# A pair of tags that opens an answer is a block that no parser read, of any name.
_LEADING_BLOCK = re.compile(r"^\s*(<([A-Za-z][\w:|]{0,30})>).*?</\2>", re.DOTALL)
# Pieces of words as tokenizers store them: a space is Ġ or ▁, a line's end Ċ, a byte <0x0A>.
_PIECE = re.compile(r"\u0120[A-Za-z]|\u010a(?!\w)|\u2581\w|<0x[0-9A-F]{2}>")
_PIECES = 2  # one alone may be a letter
_NEXT_TURN = re.compile(r"\n[^\S\n]*(?:assistant|user|model|human)\s*(?:\n|:)", re.IGNORECASE)


def thinking_markup(text: str) -> str | None:
    """Return the first marker of a thinking block in ``text``."""
    if match := _THINKING.search(text):
        return match.group(0)
    leading = _LEADING_BLOCK.match(text)
    return leading.group(1) if leading and not _CALL.match(leading.group(1)) else None


def closing_marker(text: str) -> str | None:
    """Return the last marker in ``text`` that closes a thinking block."""
    markers = [m.group(0) for m in _THINKING.finditer(text) if "/" in m.group(0) or "END" in m.group(0)]
    return markers[-1] if markers else None


def thinks(text: str) -> bool:
    """Return whether ``text`` holds a thinking block with a thought in it; an empty block has none.

    Where the prompt has opened the block, only its closing marker stands there, with the thought before it.
    """
    match = _THINKING.search(text)
    if match is None:
        return False
    if "/" in match.group(0) or "END" in match.group(0):
        return bool(text[: match.start()].strip())
    closing = _THINKING.search(text, match.end())
    return bool(text[match.end() : closing.start() if closing else len(text)].strip())


def call_markup(text: str) -> str | None:
    """Return the first marker of a tool call in ``text``."""
    match = _CALL.search(text)
    return match.group(0) if match else None


def control_token(text: str, markers: Iterable[str] = ()) -> str | None:
    """Return the first control token in ``text``, or the first of ``markers`` that it holds."""
    for marker in markers:
        if marker.strip() and marker.strip() in text:
            return marker.strip()
    match = _CONTROL.search(text)
    return match.group(0) if match else None


def untagged(text: str) -> str:
    """Return the text without control tokens and the markers of calls and thoughts."""
    return _THINKING.sub("", _CALL.sub("", _CONTROL.sub("", text)))


def without_thinking(text: str) -> str:
    """Return the text without markers of thinking blocks."""
    return _THINKING.sub("", text)


def undecoded(text: str) -> str | None:
    """Return the first undecoded piece of a word in ``text``, where there are several."""
    pieces = _PIECE.findall(_CONTROL.sub("", text))  # a token's own name may hold such characters
    return pieces[0] if len(pieces) >= _PIECES else None


def outside(text: str, reasoning: str = "") -> str:
    """Return the part of ``text`` behind its last thinking block; ``reasoning`` is that of a parser."""
    last = max((match.end() for match in _THINKING.finditer(text)), default=0)
    thought = reasoning.strip()
    taken = text.find(thought) + len(thought) if thought in text else 0
    return text[max(last, taken) :]


def drafted(reasoning: str, content: str = "") -> bool:
    """Return whether a call in ``reasoning`` is a thought: words follow it, or stand before it with an
    answer after.

    A call that a parser has swallowed ends with a closing marker.
    """
    text = _CONTROL.sub("", reasoning).strip()
    answered = content.strip() and re.match(r"[\w'’]+,? [\w'’]+", text)
    return bool(answered or re.search(r"[\w.,;:!?…*]$", text))


def next_turn(text: str) -> bool:
    """Return whether ``text`` goes on into another turn, role and all."""
    return bool(_NEXT_TURN.search(text))


def looks_like_call(text: str, tools: Iterable[Tool]) -> str | None:
    """Return a quote from ``text`` in the shape of a call of one of ``tools``, or ``None``.

    The shape is the name of the function and, where it has parameters, one of their names in front of a
    value: as JSON, XML, Python or key and value. Prose that names the tool is none.
    """
    for tool in tools:
        function = tool["function"]
        name = re.escape(function["name"])
        keys = "|".join(re.escape(key) for key in mapping(function.get("parameters", {}).get("properties")))
        named = re.search(rf"(?<!\w){name}(?!\w)", text)
        shape = re.search(_argument(keys) if keys else rf"{name}\s*\(\s*\)|[\"'=:>]\s*{name}", text)
        if named and shape:
            start, end = min(named.start(), shape.start()), max(named.end(), shape.end())
            opening = max(text.rfind("<", 0, start), start - 40, 0)
            return text[opening : end + 40].strip()[:200]
    return None


def gives_argument(text: str, key: str) -> bool:
    """Return whether ``text`` has a value for an argument of that name, in any format."""
    return re.search(_argument(re.escape(key)), text) is not None


def _argument(keys: str) -> str:
    """Return a pattern for one of ``keys`` (an alternation) as the name of an argument with a value."""
    return (
        rf"\\?[\"'](?:{keys})\\?[\"']\s*:\s*\S"  # "key": value, escaped or not
        rf"|[=\"'](?:{keys})[\"']?>\s*\S"  # <parameter=key>value, <parameter name="key">value
        rf"|<(?:arg_key|key|name)>\s*(?:{keys})\s*<"  # <arg_key>key</arg_key>
        rf"|<(?:{keys})>\s*\S"  # <key>value
        rf"|[(,{{]\s*(?:{keys})\s*[=:]\s*\S"  # f(key=value), {{key: value}}
    )


def unended(outcome: Outcome, prompt: Prompt, ctx: Context) -> Outcome:
    """Return the verdict on an answer that must follow a thought, where the model by itself ends none.

    Engines bind the text behind the end of a thought. The outcome stays for models whose markers are missing
    in an answer to a plain question as well.
    """
    if not isinstance(outcome, Fail) or outcome.attribution != "engine" or not ctx.promise.reasoning_parser:
        return outcome
    written = ctx.raw(prompt)
    if written is None or closing_marker(written) is not None or closing_marker(ctx.raw(SUM) or "") is None:
        return outcome
    within, notes = outcome.within, (*outcome.notes, note("by itself the model ends no thought here"))
    return Inconclusive(outcome.reason, Stage.DRAWN, trials=2, within=within, notes=notes)
