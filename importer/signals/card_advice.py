"""Sampling values in one sentence, row or code example of a card, each with its mode and scope.

The reading is conservative: a range, a bound, an alternative or a negation is no value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

Mode = Literal["thinking", "non_thinking"]
Scope = Literal["general", "plain", "special"]

NAMES = (
    ("temperature", r"temperature|temp"),
    ("top_p", r"top[ _-]?p"),
    ("top_k", r"top[ _-]?k"),
    ("min_p", r"min[ _-]?p"),
    ("repeat_penalty", r"repeat(?:ition)?[ _-]?penalty|repetition[ _-]?penalty"),
    ("presence_penalty", r"presence[ _-]?penalty"),
    ("frequency_penalty", r"frequency[ _-]?penalty"),
    ("max_tokens", r"max(?:imum)?[ _-](?:new[ _-]|output[ _-]|completion[ _-])?tokens|output length"),
)
NAME = re.compile(
    rf"(?<![\w.])(?:--)?(?:{'|'.join(f'(?P<{key}>{words})' for key, words in NAMES)})(?!\w)"
    r"|(?P<greedy>greedy (?:decoding|sampling|search))",
    re.IGNORECASE,
)
_NUMBER = r"(?P<number>-?(?:\d{1,3}(?:,\d{3})+|\d{1,7}(?:\.\d{1,6})?|\.\d{1,6}))(?![\d%]|\.\d)"
# Between a name and its number stand signs and small words, and perhaps the purpose.
SET_TO = re.compile(
    r"(?: for [^.,;:()|=]{1,60}? (?=is |to |of |will ))?"
    r"(?:[\s:=|('\"]|(?:of|is|to|at|be|set|will|should|equals?|values?|parameters?|about|a|the)(?![\w-])){0,12}"
    rf"(?<![\d.]){_NUMBER}",
    re.IGNORECASE,
)
# Behind a number: another one, so that it was a range or a choice.
RANGE = re.compile(r"\s{0,3}(?:-|–|—|~|to|and|or|/|,|, or)\s{0,3}\.?\d", re.IGNORECASE)
# A range, and the recommended value of it.
CHOSEN_OF_RANGE = re.compile(
    rf"[^.;()]{{0,40}}?[\d.]{{1,6}}\s?(?:-|–|to|and)\s?[\d.]{{1,6}}[^.;()\d]{{0,20}}"
    rf"\((?=[^()]{{0,40}}(?:recommend|default|prefer|suggest))[^()\d]{{0,30}}{_NUMBER}[^()\d]{{0,30}}\)",
    re.IGNORECASE,
)
# The same name once more: "1.0 for thinking mode and 0.6 for instant mode".
AGAIN = re.compile(
    rf" (?:for|in|with) [^.,;:()\d]{{1,40}}?,? (?:and|or) {_NUMBER}(?= (?:for|in|with) )", re.IGNORECASE
)
BOUND = re.compile(
    r"(?:between|from|range|below|under|above|than|most|least|up to|[<>≤≥])\W{0,3}$", re.IGNORECASE
)

NOT = re.compile(
    r"\b(?:not|never|avoid\w*|don.?t|cannot|without|instead|rather|unlike|discourag\w+)\b", re.IGNORECASE
)
IF = re.compile(
    r"^\W{0,3}(?:if|in case|should you|when\w* .{0,80}?(?:repeti|degenerat|loop|issue|problem))",
    re.IGNORECASE,
)
MEASURED = re.compile(
    r"\b(?:evaluat\w*|benchmark\w*|train(?:ed|ing)|fine-?tun\w+|reproduc\w+|pass@\d|reported|leaderboard|ablation)\b",
    re.IGNORECASE,
)
ADVICE = re.compile(
    r"\b(?:recommend\w*|suggest\w*|advis\w+|best|optimal\w*|ideal\w*|prefer\w*|better with|works? well"
    r"|please (?:use|set)|make sure|ensure|should (?:use|be set|set)|use the following"
    r"|default (?:sampling|generation|parameters|settings|values?|temperature)"
    r"|(?:sampling|generation|inference|decoding) (?:parameters?|settings?|config\w*|values?))\b"
    r"|^\W{0,3}(?:use|set)\b|\buse (?:temperature|top[ _-]?p)\b",
    re.IGNORECASE,
)  # fmt: skip
GENERAL = re.compile(r"\b(?:general\w*|most|default|overall|everyday|all tasks)\b", re.IGNORECASE)
SPECIAL = re.compile(
    r"\b(?:cod(?:e|ing)|program\w+|math\w*|web ?dev|agent\w*|tools?|function[ -]call\w*|creative"
    r"|role-?play\w*|writing|translat\w*|ocr|competition|complex|challeng\w*|reasoning tasks?|vision|images?"
    r"|videos?|audio|summari\w+|extract\w*|research|precise|deterministic|divers\w+)\b",
    re.IGNORECASE,
)

_THINK = r"(?:thinking|reasoning|think)"
BOTH = re.compile(
    rf"\bboth\b[^.]{{0,30}}{_THINK}|{_THINK}(?: mode)? ?(?:and|or|/|&) ?(?:in )?non[ -]?{_THINK}",
    re.IGNORECASE,
)
MODE = re.compile(
    rf"(?P<non_thinking>\bnon[ -]?{_THINK}(?: modes?)?|/?\bno[ _-]think\w*"
    rf"|\b(?:without|no|disabl\w+|turn(?:ing)? off) (?:the )?{_THINK}(?: mode)?"
    rf"|\b{_THINK}(?: mode)?(?: is)?\s?[:=(]?\s?(?:off|false|disabled)\b"
    r"|\benable_thinking['\"]?\s?[:=]\s?false|\b(?:instruct|instant) mode)"
    rf"|(?P<thinking>\b{_THINK}[ -]modes?(?: on)?|\bwith (?:the )?{_THINK}(?: enabled)?\b"
    rf"|\b{_THINK}\s?[:=(]?\s?(?:on|true|enabled)\b|\benable_thinking['\"]?\s?[:=]\s?true)",
    re.IGNORECASE,
)  # fmt: skip
ALONE = re.compile(rf"\W*(?P<no>non[ -]?)?{_THINK}(?: mode)?\W*", re.IGNORECASE)  # the whole label
SENTENCE = re.compile(r"(?<!e\.g)(?<!i\.e)(?<!etc)(?<!\bvs)[.!?;](?:\s+|$)(?!\d)")


@dataclass(frozen=True, slots=True)
class Advice:
    """One recommended value.

    ``mode``   thinking or non-thinking; ``None`` for any.
    ``scope``  whether the text names general use, a special task, or neither.
    ``quote``  the words.
    ``clear``  False where the text names two modes and does not assign the value to one of them.
    """

    key: str
    value: float
    quote: str
    mode: Mode | None = None
    scope: Scope = "plain"
    clear: bool = True


def sentences(text: str) -> Iterator[str]:
    """Yield a block's sentences; a full stop inside a number or after *e.g.* is no end."""
    start = 0
    for end in SENTENCE.finditer(text):
        yield text[start : end.end()].strip()
        start = end.end()
    yield text[start:].strip()


def mode_of(text: str) -> Mode | None:
    """Return the one mode that the words name, else ``None``."""
    alone = ALONE.fullmatch(text[:80])
    if alone is not None:
        return "non_thinking" if alone["no"] else "thinking"
    modes = {_mode(m) for m in _modes(text)}
    return modes.pop() if len(modes) == 1 else None


def scope_of(text: str) -> Scope:
    """Return the scope of the words: general use, a special task or neither."""
    if GENERAL.search(text):
        return "general"
    return "special" if SPECIAL.search(MODE.sub(" ", text)) else "plain"


def read(sentence: str, mode: Mode | None = None) -> list[Advice]:
    """Return the values that one sentence recommends; ``mode`` is the default for a sentence without one."""
    if MEASURED.search(sentence) or (IF.search(sentence) and not MODE.search(sentence)):
        return []
    settings = list(values(sentence))
    modes = [(m.start(), _mode(m)) for m in _modes(sentence)]
    if BOTH.search(sentence):
        mode = None
    scope = scope_of(sentence)
    assigned = _assigned([value.place for value in settings], modes, mode)
    return [
        Advice(value.key, value.number, quoted(sentence), its_mode, scope, clear)
        for value, (its_mode, clear) in zip(settings, assigned, strict=True)
    ]


@dataclass(frozen=True, slots=True)
class Value:
    """A parameter that is set to a number: the number's offset, and the words that set it."""

    place: int
    key: str
    number: float
    words: str


def values(sentence: str) -> Iterator[Value]:
    """Yield everything that is set to one number and not negated."""
    bare = MODE.sub(lambda m: "_" * len(m[0]), sentence)  # "without thinking" negates nothing
    denied, advised = NOT.search(bare), ADVICE.search(bare)
    for name in NAME.finditer(bare):
        if denied is not None and denied.start() < name.start():
            return
        if BOUND.search(bare, max(0, name.start() - 16), name.start()):
            continue
        if name["greedy"]:
            if advised:
                yield Value(name.start(), "temperature", 0.0, name[0])
            continue
        key = next(k for k, _ in NAMES if name[k])
        match = SET_TO.match(bare, name.end())
        if match is None or RANGE.match(bare, match.end()):
            match = CHOSEN_OF_RANGE.match(bare, name.end())
        while match is not None:
            words = sentence[name.start() : match.end()]
            yield Value(match.start("number"), key, float(match["number"].replace(",", "")), words)
            match = AGAIN.match(bare, match.end())


def quoted(text: str, longest: int = 160) -> str:
    """Return the text on one line, shortened to ``longest`` characters."""
    words = " ".join(text.split())
    return words if len(words) <= longest else f"{words[: longest - 1].rstrip()}…"


def _modes(text: str) -> list[re.Match[str]]:
    return [] if BOTH.search(text) else list(MODE.finditer(text))


def _mode(match: re.Match[str]) -> Mode:
    return "thinking" if match["thinking"] else "non_thinking"


def _assigned(
    places: Sequence[int], modes: Sequence[tuple[int, Mode]], default: Mode | None
) -> list[tuple[Mode | None, bool]]:
    """Return the mode of each value, and whether the mode is clear.

    Where the text names two modes, each must stand before its values, or each behind its own.
    """
    named = {m for _, m in modes}
    if len(named) < 2:
        mode = named.pop() if named else default
        return [(mode, True)] * len(places)
    before = all(any(at < place for at, _ in modes) for place in places)
    behind = all(any(at > place for at, _ in modes) for place in places)
    if before == behind:
        return [(None, False)] * len(places)
    if before:
        return [([m for at, m in modes if at < place][-1], True) for place in places]
    return [(next(m for at, m in modes if at > place), True) for place in places]
