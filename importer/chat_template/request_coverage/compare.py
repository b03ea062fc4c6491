"""Compare prompts with the marks of their conversations: lost, cut, altered, doubled or out of order."""

from __future__ import annotations

import ast
import json
import re
import unicodedata
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence

from importer.chat_template.markers import SHAPE
from importer.chat_template.request_coverage.conversations import Conversation, Mark
from importer.chat_template.request_coverage.findings import CoverageField, CoverageFinding, CoverageKind
from importer.frozen import frozen

WORD = re.compile(rf"{SHAPE.pattern}|\w+")
SPEAKERS = ("user", "assistant")


def distinct_roles(conversation: Conversation, prompt: str) -> Mapping[str, bool]:
    """Return for the user and the assistant whether something before their turns is theirs alone.

    Only turns behind another one are judged: what begins a prompt stands before the first. Empty where a turn
    has no text, or where the prompt lacks one.
    """
    before: dict[str, set[str]] = {}
    at = -1
    for turn in conversation.turns:
        start = prompt.find(turn.text, max(at, 0)) if turn.text and not turn.calls else -1
        if start < 0 or turn.role == "tool":
            return {}
        if at >= 0 and turn.role in SPEAKERS:
            before.setdefault(turn.role, set()).update(WORD.findall(prompt[at:start]))
        at = start + len(turn.text)
    if len(before) < len(SPEAKERS):
        return {}
    user, assistant = (before[role] for role in SPEAKERS)
    return {"user": bool(user - assistant), "assistant": bool(assistant - user)}


ROOM = 8  # an escape makes a character six to twelve long at most; more is another text
ARGUMENTS = frozenset({CoverageField.ARGUMENT, CoverageField.NESTED_ARGUMENT})
DESCRIPTIONS = frozenset(
    {
        CoverageField.TOOL_DESCRIPTION, CoverageField.PARAMETER_DESCRIPTION, CoverageField.NESTED_DESCRIPTION,
    }
)  # fmt: skip
# Tools written as declarations of a programming language have comments, each line with a sign of its own.
COMMENT = re.compile(r"\n[ \t]*(?://|#|--|\*)[ \t]*")


@frozen
class Place:
    """Where a mark stands in a prompt: ``start`` of its first word, ``stop`` behind its last one."""

    start: int
    stop: int


def compare(conversation: Conversation, prompt: str) -> Iterator[CoverageFinding]:
    """Yield what the prompt does to each mark, and marks that stand before an earlier one."""
    # Apart, because a template may write the name of a function beside its result.
    furthest = {True: -1, False: -1}
    kinds: dict[str, CoverageKind] = {}
    for mark in conversation.marks:
        kind = judge(mark, prompt)
        above = kinds.get(mark.parent)
        if kind is not None:
            kinds[mark.text] = kind
        if kind is not None and kind is not above and above is not CoverageKind.LOST:
            yield _finding(kind, mark, conversation)
        at = prompt.find(mark.ends[0])
        if at >= 0 and mark.once and prompt.count(mark.ends[0]) > 1:
            yield _finding(CoverageKind.DOUBLED, mark, conversation)
        if at < 0 or not mark.ordered:
            continue
        called = mark.field is CoverageField.CALL
        if at < furthest[called]:
            yield _finding(CoverageKind.OUT_OF_ORDER, mark, conversation)
        furthest[called] = max(furthest[called], at)


def _finding(kind: CoverageKind, mark: Mark, conversation: Conversation) -> CoverageFinding:
    return CoverageFinding(kind, mark.field, (mark.number,), conversation.name)


def judge(mark: Mark, prompt: str) -> CoverageKind | None:
    """Return what the prompt does to one mark; ``None`` if it holds the mark as it was sent."""
    lowered = prompt.lower()
    if mark.whole and mark.text in prompt:
        return None
    places = [] if mark.whole else list(_places(mark, prompt))
    if not places:
        if not mark.whole and any(word in prompt for word in mark.ends):
            return CoverageKind.CUT
        cased = any(word.lower() in lowered for word in mark.ends)
        return CoverageKind.ALTERED if cased else CoverageKind.LOST
    kinds = [_altered(mark, prompt[place.start : place.stop]) for place in places]
    return None if None in kinds else kinds[0]


def _places(mark: Mark, prompt: str) -> Iterator[Place]:
    head, tail = mark.ends
    room = ROOM * len(mark.text)
    start = prompt.find(head)
    while start >= 0:
        begun = start + len(head)
        following = prompt.find(head, begun)  # places never overlap, so all of them are as long as the prompt
        stop = prompt.find(tail, begun, min(start + room, following) if following >= 0 else start + room)
        if stop >= 0:
            yield Place(start, stop + len(tail))
        start = following


def _altered(mark: Mark, written: str) -> CoverageKind | None:
    """Return the change of a text; Python's spelling and JSON inside of JSON mean the same."""
    meant = _as_json(written)
    # The arguments of a call may be a JSON text inside a JSON text, as in an API's messages.
    if meant == mark.text or (mark.field in ARGUMENTS and _as_json(meant or "") == mark.text):
        return CoverageKind.ASCII_ESCAPED if written.isascii() and not mark.text.isascii() else None
    if written == mark.text or _as_python(written) == mark.text:
        return None
    commented = mark.field in DESCRIPTIONS and COMMENT.search(written)
    if commented and _lines(COMMENT.sub("\n", written)) == _lines(mark.text):
        return None
    return CoverageKind.ALTERED


def _lines(text: str) -> str:
    """Return a text without blank lines."""
    return "\n".join(line for line in text.split("\n") if line.strip())


def _as_json(written: str) -> str | None:
    """Return the text that a JSON text between quotes means; ``None`` if it is none."""
    try:
        value = json.loads(f'"{written}"')
    except ValueError:
        return None
    return value if isinstance(value, str) else None


def _as_python(written: str) -> str | None:
    """Return the text that a Python literal between quotes means; ``None`` if it is none."""
    for quote in ("'", '"'):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of escapes that Python does not know
                value = ast.literal_eval(quote + written + quote)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            continue
        if isinstance(value, str):
            return value
    return None


def shows(prompt: str, names: Sequence[str]) -> bool:
    """Return whether the prompt holds the name of any offered tool, in any case of its letters."""
    lowered = prompt.lower()
    return any(name.lower() in lowered for name in names)


UNSEEN = frozenset({"Cf", "Cc", "Co"})  # Unicode's formats, controls and private characters
SPACES = "\n\r\t"


def unseen(question: str, prompt: str) -> Iterator[CoverageFinding]:
    """Yield the invisible characters that a prompt has beside ``question``, the one text of the request."""
    own = prompt.replace(question, "")
    found = sorted({c for c in own if unicodedata.category(c) in UNSEEN and c not in SPACES})
    if found:
        words = ", ".join(f"U+{ord(character):04X}" for character in found)
        yield CoverageFinding(CoverageKind.UNSEEN, conversation="bare", words=words)


def closed(prompts: Mapping[str, str], history: str, ends: Collection[str]) -> Iterator[CoverageFinding]:
    """Yield the first prompt, by conversation, that ends where an answer does.

    ``history``  the same template's text before an earlier answer: a token that begins the answer there, too,
    is a header, and some files name it among the ends. ``ends``  tokens at which generation ends.
    """
    for name, prompt in prompts.items():
        found = [e for e in ends if prompt.rstrip().endswith(e) and not history.rstrip().endswith(e)]
        if found:
            yield CoverageFinding(CoverageKind.CLOSED, conversation=name, words=max(found, key=len))
            return
