"""Signs in served text: markup that should have been read, calls that were not, turns that went on.

Judging is independent of wire formats: what is looked for is the shape that all of them share, and the
markers that a proof has put into the document.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from importer.reasons import Reason
from importer.validation.context import Context
from importer.validation.expectations import CommonReason
from importer.validation.outcome import Fail, Inconclusive, Outcome
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
# A pair of tags that opens an answer is a block no reader took, whatever its name.
_LEADING_BLOCK = re.compile(r"^\s*(<([A-Za-z][\w:|]{0,30})>).*?</\2>", re.DOTALL)
# Pieces of words as tokenizers store them: a space is Ġ or ▁, a line's end Ċ, a byte <0x0A>.
_PIECE = re.compile(r"\u0120[A-Za-z]|\u010a(?!\w)|\u2581\w|<0x[0-9A-F]{2}>")
_PIECES = 2  # one alone may be a letter
_NEXT_TURN = re.compile(r"\n[^\S\n]*(?:assistant|user|model|human)\s*(?:\n|:)", re.IGNORECASE)


def thinking_markup(text: str) -> str | None:
    """Return the first marker of a thinking block in ``text``."""
    if found := _THINKING.search(text):
        return found.group(0)
    leading = _LEADING_BLOCK.match(text)
    return leading.group(1) if leading and not _CALL.match(leading.group(1)) else None


def closing_marker(text: str) -> str | None:
    """Return the last marker in ``text`` that closes a thinking block."""
    found = [m.group(0) for m in _THINKING.finditer(text) if "/" in m.group(0) or "END" in m.group(0)]
    return found[-1] if found else None


def thinks(text: str) -> bool:
    """Return whether ``text`` holds a thinking block with a thought in it; an empty block is none.

    Where the prompt has opened the block, only its closing marker is there, with the thought before it.
    """
    found = _THINKING.search(text)
    if found is None:
        return False
    if "/" in found.group(0) or "END" in found.group(0):
        return bool(text[: found.start()].strip())
    closing = _THINKING.search(text, found.end())
    return bool(text[found.end() : closing.start() if closing else len(text)].strip())


def call_markup(text: str) -> str | None:
    """Return the first marker of a tool call in ``text``."""
    found = _CALL.search(text)
    return found.group(0) if found else None


def control_token(text: str, markers: Iterable[str] = ()) -> str | None:
    """Return the first control token in ``text``, or the first of ``markers`` that it holds."""
    for marker in markers:
        if marker.strip() and marker.strip() in text:
            return marker.strip()
    found = _CONTROL.search(text)
    return found.group(0) if found else None


def untagged(text: str) -> str:
    """Return the text without control tokens and the markers of calls and thoughts."""
    return _THINKING.sub("", _CALL.sub("", _CONTROL.sub("", text)))


def without_thinking(text: str) -> str:
    """Return the text without markers of thinking blocks."""
    return _THINKING.sub("", text)


def undecoded(text: str) -> str | None:
    """Return the first piece of a word in ``text`` that nobody has made text of, where there are several."""
    found = _PIECE.findall(_CONTROL.sub("", text))  # a token's own name may hold such signs
    return found[0] if len(found) >= _PIECES else None


def outside(text: str, reasoning: str = "") -> str:
    """Return what of ``text`` stands behind its last thinking block; ``reasoning`` is what a parser took for
    one.
    """
    last = max((found.end() for found in _THINKING.finditer(text)), default=0)
    thought = reasoning.strip()
    taken = text.find(thought) + len(thought) if thought in text else 0
    return text[max(last, taken) :]


def drafted(reasoning: str, content: str = "") -> bool:
    """Return whether a call in ``reasoning`` is but a thought: words follow it, or words before and an answer
    after.

    What a parser has swallowed ends in what closes a call.
    """
    text = _CONTROL.sub("", reasoning).strip()
    answered = content.strip() and re.match(r"[\w'’]+,? [\w'’]+", text)
    return bool(answered or re.search(r"[\w.,;:!?…*]$", text))


def next_turn(text: str) -> bool:
    """Return whether ``text`` goes on into another turn, role and all."""
    return bool(_NEXT_TURN.search(text))


def looks_like_call(text: str, tools: Iterable[Mapping[str, Any]]) -> str | None:
    """Return a quote from ``text`` that has the shape of a call of one of ``tools``; ``None`` where there is
    none.

    The shape is the function's name and, where it takes arguments, one of their names in front of a value: as
    JSON, XML, Python or key and value. Prose that merely names the tool is none.
    """
    for tool in tools:
        function = tool["function"]
        name = re.escape(function["name"])
        keys = "|".join(re.escape(key) for key in function.get("parameters", {}).get("properties", {}))
        named = re.search(rf"(?<!\w){name}(?!\w)", text)
        shape = re.search(_argument(keys) if keys else rf"{name}\s*\(\s*\)|[\"'=:>]\s*{name}", text)
        if named and shape:
            start, end = min(named.start(), shape.start()), max(named.end(), shape.end())
            opening = max(text.rfind("<", 0, start), start - 40, 0)
            return text[opening : end + 40].strip()[:200]
    return None


def gives_argument(text: str, key: str) -> bool:
    """Return whether ``text`` gives an argument of that name a value, in any format."""
    return re.search(_argument(re.escape(key)), text) is not None


def _argument(keys: str) -> str:
    """Return a pattern for one of ``keys`` (an alternation) as the name of an argument that is given a
    value.
    """
    return (
        rf"\\?[\"'](?:{keys})\\?[\"']\s*:\s*\S"  # "key": value, escaped or not
        rf"|[=\"'](?:{keys})[\"']?>\s*\S"  # <parameter=key>value, <parameter name="key">value
        rf"|<(?:arg_key|key|name)>\s*(?:{keys})\s*<"  # <arg_key>key</arg_key>
        rf"|<(?:{keys})>\s*\S"  # <key>value
        rf"|[(,{{]\s*(?:{keys})\s*[=:]\s*\S"  # f(key=value), {{key: value}}
    )


TURN_BEGUN = 40  # characters at the end of a prompt in which a thought may be opened


def endless(ctx: Context, prompt: Prompt) -> bool:
    """Return whether the model thinks, and says nothing after it, where it goes on from the rendered
    prompt.
    """
    written = ctx.raw(prompt, max_tokens=ctx.promise.max_tokens)
    if written is None:
        return False
    begun = (ctx.rendered(prompt) or "")[-TURN_BEGUN:]
    opened = thinking_markup(begun) is not None and closing_marker(begun) is None
    closing = closing_marker(written)
    if not opened and thinking_markup(written) is None:
        return False
    return closing is None or not untagged(written.rpartition(closing)[2]).strip()


def unended(outcome: Outcome, prompt: Prompt, ctx: Context) -> Outcome:
    """Return the verdict on an answer that has to follow a thought, where the model by itself ends none.

    What an engine holds to a form begins behind the thought's end. Nothing is said of models whose markers
    are not seen in an answer to a plain question either.
    """
    if not isinstance(outcome, Fail) or outcome.attribution != "engine" or not ctx.promise.reasoning_parser:
        return outcome
    written = ctx.raw(prompt)
    if written is None or closing_marker(written) is not None or closing_marker(ctx.raw(SUM) or "") is None:
        return outcome
    note = Reason(CommonReason.UNENDED)
    within, notes = outcome.within, (*outcome.notes, note)
    return Inconclusive(outcome.reason, "model", trials=2, within=within, notes=notes)
