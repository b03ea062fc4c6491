"""Markers in rendered text, and the tokens that a repository's small files declare.

Forms of turns that published models were trained with: what stands before and behind a user's and an
assistant's words.

They are tried on weights that answer noise to their template, and choose nothing. Source of each:
the published chat templates of the family that it is named after.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import product

from importer.frozen import frozen

# Shapes of the markers in chat templates; declared tokens count too.
SHAPE = re.compile(
    r"<\|(?:open|close)\|>\w{1,140}+<\|sep\|>"  # a tag spelled with three tokens
    r"|<[|｜][^<>\n]{1,60}[|｜]>"  # <|im_start|>, <｜tool▁calls▁begin｜>
    r"|<[^<>\s]{1,60}>"  # <tool_call>, </seed:think>, <|channel>, <tool_call|>
    r"|\[/?[A-Z][A-Z_]{1,40}\]"  # [TOOL_CALLS], [/THINK]
)
LONGEST = 160  # no marker is longer
THINK = re.compile(r"[<\[](?=[^<>\[\]\s]*?(?:think|thought|reason))[^<>\[\]\s]*+[>\]]", re.IGNORECASE)
# Ends of turns that no file declares: exact names, because closing markers of calls look similar.
ENDS = re.compile(
    r"(?:<[|｜](?:im_end|endoftext|eo[tm](?:_id)?|end|return|calls?|role_end|end_of_msg)[|｜]>"
    r"|<[|｜]?end[_▁]of[_▁](?:text|turn|sentence|msg|message)(?:_token)?[|｜]?>"
    r"|<[|｜]?(?:\w+[:_])?eos(?::\w+)?[|｜]?>"
    r"|</s>|<turn\|>|<\|tool_response>|\[e~\[)$",
    re.IGNORECASE,
)


class Marks:
    """The markers of one template: shapes, and the tokens its repository declares."""

    def __init__(self, declared: Iterable[str] = ()) -> None:
        # A token of letters and digits only is a word piece, not a marker.
        self._words = {d for d in declared if 1 < len(d) <= LONGEST and not d.isalnum()}
        self._lengths: dict[str, list[int]] = {}  # by the first two characters, the longest first
        for length, begun in sorted({(len(w), w[:2]) for w in self._words}, reverse=True):
            self._lengths.setdefault(begun, []).append(length)

    def boundary(self, text: str, index: int) -> int:
        """Return the largest position at or before ``index`` outside the markers of ``text``."""
        low = index
        while True:
            low = max(0, low - LONGEST)
            high = min(len(text), index + LONGEST)
            spans = [*self._shapes(text, low, high), *self._declared(text, low, high)]
            while (moved := min((s for s, e in spans if s < index < e), default=index)) < index:
                index = moved
            if (
                low == 0 or index - low >= LONGEST
            ):  # a marker that begins before ``low`` ends before ``index``
                return index

    def prefix(self, left: str, right: str) -> int:
        """Return the length of the common prefix, cut at a boundary of both texts."""
        index = common_prefix(left, right)
        while True:
            moved = self.boundary(left, self.boundary(right, index))
            if moved == index:
                return index
            index = moved

    def suffix(self, left: str, right: str) -> str:
        """Return the common suffix, from a boundary of both texts."""
        length = common_prefix(left[::-1], right[::-1])
        walks = [
            (len(text), _Walk(spans(text, max(0, len(text) - length - LONGEST), len(text))))
            for text in (left, right)
            for spans in (self._shapes, self._declared)
        ]
        before = -1
        while length != before:
            before = length
            for end, walk in walks:
                length = end - walk.free(end - length)
        return left[len(left) - length :]

    def _shapes(self, text: str, low: int, high: int) -> Iterator[tuple[int, int]]:
        return (m.span() for m in SHAPE.finditer(text, low, high))

    def _declared(self, text: str, low: int, high: int) -> Iterator[tuple[int, int]]:
        """Yield the spans of declared tokens between ``low`` and ``high``: at each place the longest."""
        while self._lengths and low < high:
            for length in self._lengths.get(text[low : low + 2], ()):
                if low + length <= high and text[low : low + length] in self._words:
                    yield low, low + length
                    low += length
                    break
            else:
                low += 1


class _Walk:
    """One pass through spans that do not overlap, for ascending positions."""

    def __init__(self, spans: Iterator[tuple[int, int]]) -> None:
        self._spans = spans
        self._next = next(spans, None)
        self._end = 0  # of the last span that begins before the position

    def free(self, at: int) -> int:
        """Return the first position from ``at`` on outside all spans."""
        while self._next is not None and self._next[0] < at:
            self._end = self._next[1]
            self._next = next(self._spans, None)
        return max(at, self._end)


def common_prefix(left: str, right: str) -> int:
    """Return the length of the common prefix."""
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[:middle] == right[:middle]:
            low = middle
        else:
            high = middle - 1
    return low


def last_marker(text: str) -> str:
    """Return ``text`` from its last marker on; empty without a marker."""
    matches = list(SHAPE.finditer(text))
    return text[matches[-1].start() :] if matches else ""


def first_marker(text: str) -> str:
    """Return the first marker of ``text``; empty without a marker."""
    match = SHAPE.search(text)
    return match.group() if match else ""


@lru_cache(maxsize=256)
def mirror(marker: str) -> str:
    """Return the closing marker of an opening one, or the opening of a closing one, by its spelling."""
    for opening, closing in (("<|open|>", "<|close|>"), ("<", "</"), ("[", "[/")):
        if closing != "</" and marker.startswith(closing):
            return opening + marker[len(closing) :]
        if closing == "</" and marker.startswith("</"):
            return "<" + marker[2:]
    for opening, closing in (("<|open|>", "<|close|>"), ("START", "END"), ("begin", "end"), ("start", "end")):
        if opening in marker:
            return marker.replace(opening, closing)
        if closing in marker:
            return marker.replace(closing, opening)
    if re.fullmatch(r"<\|[^|]+>", marker):
        return f"<{marker[2:-1]}|>"
    return marker[0] + "/" + marker[1:]


GAPS = ("", "\n", " ")  # between a role and the words: conversions lose or add them


@frozen
class TurnForm:
    """One form: the texts before and behind the words of each role, and ``begin`` once before everything."""

    name: str
    user: str
    user_end: str
    answer: str
    answer_end: str
    begin: str = ""

    @property
    def markers(self) -> tuple[str, ...]:
        """Return what a tokenizer that belongs to the form has as single tokens."""
        text = " ".join((self.begin, self.user, self.user_end, self.answer, self.answer_end))
        return tuple(dict.fromkeys(match[0] for match in SHAPE.finditer(text)))

    def render(self, turns: Sequence[tuple[str, str]]) -> str:
        """Return pairs of role (``user`` or ``assistant``) and words, and the beginning of an answer."""
        frames = {"user": (self.user, self.user_end), "assistant": (self.answer, self.answer_end)}
        written = [f"{frames[role][0]}{words}{frames[role][1]}" for role, words in turns]
        return self.begin + "".join(written) + self.answer


def _roles(name: str, begin: str, role: str, behind: str, end: str) -> TurnForm:
    """Return a form with one frame around the words for a role."""
    user, answer = (f"{role}{word}{behind}" for word in ("user", "assistant"))
    return TurnForm(name, user, end, answer, end, begin)


FORMS: tuple[TurnForm, ...] = (
    _roles("ChatML", "", "<|im_start|>", "\n", "<|im_end|>\n"),
    _roles("Phi-4", "", "<|im_start|>", "<|im_sep|>", "<|im_end|>"),
    _roles("Llama 3", "<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>\n\n", "<|eot_id|>"),
    _roles("Llama 4", "<|begin_of_text|>", "<|header_start|>", "<|header_end|>\n\n", "<|eot|>"),
    _roles("Granite", "", "<|start_of_role|>", "<|end_of_role|>", "<|end_of_text|>\n"),
    _roles("Megrez", "", "<|role_start|>", "<|role_end|>", "<|turn_end|>"),
    _roles("OpenBuddy", "", "<|role|>", "<|says|>", "<|end|>\n"),
    _roles("Seed", "", "<seed:bos>", "\n", "<seed:eos>"),
    TurnForm("Mistral", "[INST]", "[/INST]", "", "</s>", "<s>"),
    TurnForm("Llama 2", "[INST] ", " [/INST]", "", " </s>", "<s>"),
    TurnForm(
        "Gemma", "<start_of_turn>user\n", "<end_of_turn>\n", "<start_of_turn>model\n", "<end_of_turn>\n",
        "<bos>",
    ),
    TurnForm("Gemma 4", "<|turn>user\n", "<turn|>\n", "<|turn>model\n", "<turn|>\n", "<bos>"),
    TurnForm("Phi-3", "<|user|>\n", "<|end|>\n", "<|assistant|>\n", "<|end|>\n"),
    TurnForm("Zephyr", "<|user|>\n", "</s>\n", "<|assistant|>\n", "</s>\n"),
    TurnForm("GLM", "<|user|>\n", "", "<|assistant|>", "", "[gMASK]<sop>"),
    TurnForm("Tulu", "<|user|>\n", "\n", "<|assistant|>\n", "<|endoftext|>\n"),
    TurnForm(
        "DeepSeek", "<｜User｜>", "", "<｜Assistant｜>", "<｜end▁of▁sentence｜>", "<｜begin▁of▁sentence｜>"
    ),
    TurnForm(
        "Hunyuan", "<｜hy_User｜>", "", "<｜hy_Assistant｜>", "<｜hy_place▁holder▁no▁2｜>",
        "<｜hy_begin▁of▁sentence｜>",
    ),
    TurnForm(
        "Command R", "<|START_OF_TURN_TOKEN|><|USER_TOKEN|>", "<|END_OF_TURN_TOKEN|>",
        "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>", "<|END_OF_TURN_TOKEN|>", "<BOS_TOKEN>",
    ),
    TurnForm("EXAONE", "[|user|]", "\n", "[|assistant|]", "[|endofturn|]\n"),
    TurnForm(
        "Kimi", "<|im_user|>user<|im_middle|>", "<|im_end|>", "<|im_assistant|>assistant<|im_middle|>",
        "<|im_end|>",
    ),
    TurnForm(
        "Harmony", "<|start|>user<|message|>", "<|end|>", "<|start|>assistant<|channel|>final<|message|>",
        "<|end|>",
    ),
    TurnForm("MiniMax", "]~b]user\n", "[e~[\n", "]~b]ai\n", "[e~[\n", "]~!b["),
    TurnForm("Vicuna", "USER: ", " ", "ASSISTANT:", "</s>"),
    TurnForm("Alpaca", "### Instruction:\n", "\n\n", "### Response:\n", "\n\n"),
    TurnForm("SOLAR", "### User:\n", "\n\n", "### Assistant:\n", "\n\n"),
    TurnForm("plain words", "User: ", "\n\n", "Assistant:", "\n\n"),
)  # fmt: skip


def variants(form: TurnForm) -> Iterator[TurnForm]:
    """Yield the form as it was published, and then with other gaps behind its roles."""
    yield form
    user, answer = (form.user.rstrip(), form.answer.rstrip())
    for one, other in sorted(product(GAPS, repeat=2), key=lambda gaps: gaps[0] != gaps[1]):
        changed = replace(form, user=user + one, answer=answer + other)
        if changed != form:
            yield changed
