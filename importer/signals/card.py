"""Sampling values that the model card recommends: in its YAML header, its prose and its tables."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Any, Literal

from importer import yaml_reader
from importer.frozen import frozen
from importer.hub.snapshot import Snapshot, mapping
from importer.reasons import Reason
from importer.signals.evidence import Evidence, Rule
from importer.signals.reasons import CardReason
from importer.signals.sampling_values import MODES_KEY, usable
from importer.yaml_reader import YamlError

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
CARD_ADVICE_MEASURED = re.compile(
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


@frozen
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


def read_advice(sentence: str, mode: Mode | None = None) -> list[Advice]:
    """Return the values that one sentence recommends; ``mode`` is the default for a sentence without one."""
    if CARD_ADVICE_MEASURED.search(sentence) or (IF.search(sentence) and not MODE.search(sentence)):
        return []
    settings = list(advised_values(sentence))
    modes = [(m.start(), _mode(m)) for m in _modes(sentence)]
    if BOTH.search(sentence):
        mode = None
    scope = scope_of(sentence)
    assigned = _assigned([value.place for value in settings], modes, mode)
    return [
        Advice(value.key, value.number, quoted(sentence), its_mode, scope, clear)
        for value, (its_mode, clear) in zip(settings, assigned, strict=True)
    ]


@frozen
class Value:
    """A parameter that is set to a number: the number's offset, and the words that set it."""

    place: int
    key: str
    number: float
    words: str


def advised_values(sentence: str) -> Iterator[Value]:
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


LONGEST = 4000  # characters of a block that are read
DEEPEST = 20  # items within each other; items further out introduce nothing
HEADING = re.compile(r" {0,3}(#{1,6})\s+(.+)")
QUOTED = re.compile(r"(?:\s{0,3}>)+ ?(?:\[!\w{1,20}\])?")  # a note or a warning is read like the rest
FENCE = re.compile(r"\s*(`{3,}|~{3,})")
ITEM = re.compile(r"(\s*)(?:[-*+•]|\d{1,3}[.)])\s+(.*)")
RULE = re.compile(r"(?=[\s|:]*+-)[\s|:-]*+")
TAG = re.compile(r"</?[A-Za-z][^<>]{0,200}>")
WIDE = str.maketrans("：＝，（）\u00a0“”‘’−", ":=,() \"\"''-")
DECORATION = str.maketrans("", "", '*`$\\"')

Kind = Literal["text", "item", "row", "code"]


@frozen
class Block:
    """A piece of a card.

    ``text``      plain words without Markdown's signs; of a row, its cells with ``|`` between.
    ``title``     the card's first heading.
    ``headings``  the headings above it, the outermost first, the title left out.
    ``before``    the paragraph that introduces it and the items it stands under, the nearest last.
    ``columns``   of a row, the cells of the table's first row.
    """

    kind: Kind
    text: str
    title: str = ""
    headings: tuple[str, ...] = ()
    before: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()


@dataclass(slots=True)
class _Reader:
    """State of the pass over the lines."""

    title: str = ""
    headings: list[tuple[int, str]] = field(default_factory=list)
    above: list[tuple[int, str]] = field(default_factory=list)  # depth and text of the introducing blocks
    lines: list[str] = field(default_factory=list)
    kind: Kind = "text"
    depth: int = 0
    columns: tuple[str, ...] = ()  # of the table that is being read

    def block(self, kind: Kind, text: str) -> Block:
        """Return a block at the current place."""
        columns = self.columns if kind == "row" else ()
        headings = tuple(h for _, h in self.headings)
        return Block(kind, text, self.title, headings, tuple(t for _, t in self.above), columns)

    def head(self, level: int, text: str) -> None:
        """Add a heading; it ends the headings of its level and below."""
        self.headings = [h for h in self.headings if h[0] < level]
        self.above = []
        if self.title:
            self.headings.append((level, text))
        self.title = self.title or text

    def close(self) -> Iterator[Block]:
        """Yield the lines gathered so far as one block; it may introduce the next ones."""
        if not self.lines:
            return
        text = plain(" ".join(self.lines)[:LONGEST])
        self.lines = []
        while self.above and self.above[-1][0] >= self.depth:
            self.above.pop()
        yield self.block(self.kind, text)
        if self.kind == "item" or text.rstrip().endswith(":"):
            self.above = [*self.above[1 - DEEPEST :], (self.depth, text)]


def blocks(text: str) -> Iterator[Block]:
    """Yield every block of a card in order, its YAML header and its comments left out."""
    lines = iter(without_comments(body(text)).splitlines())
    reader = _Reader()
    for raw in lines:
        quoted = QUOTED.match(raw)
        line = raw[quoted.end() :] if quoted else raw
        fence, heading, item = FENCE.match(line), HEADING.match(line), ITEM.match(line)
        if fence or heading or item or not line.strip():
            yield from reader.close()
        if reader.columns and "|" in line:
            yield reader.block("row", " | ".join(cells(line)))
            continue
        reader.columns = ()
        if fence:
            yield reader.block("code", _code(lines, fence[1]))
        elif heading:
            reader.head(len(heading[1]), plain(heading[2][:LONGEST]))
        elif item:
            reader.kind, reader.depth, reader.lines = "item", len(item[1].expandtabs(4)) + 1, [item[2]]
        elif "|" in line and RULE.fullmatch(line) and reader.lines and "|" in reader.lines[-1]:
            columns = cells(reader.lines.pop())
            yield from reader.close()
            reader.columns = columns
        elif line.strip():
            if not reader.lines:
                reader.kind, reader.depth = "text", 0
            reader.lines.append(line.strip())
    yield from reader.close()


def _code(lines: Iterator[str], fence: str) -> str:
    code_lines: list[str] = []
    room = LONGEST
    for line in lines:
        if line.strip().startswith(fence) and not line.strip(" \t" + fence[0]):
            break
        if room > 0:
            code_lines.append(line[:room])
            room -= len(line) + 1
    return "\n".join(code_lines)


def cells(line: str) -> tuple[str, ...]:
    """Return the cells of a table's row, without the bars around it."""
    return tuple(plain(cell) for cell in line[:LONGEST].strip().strip("|").split("|"))


def header(text: str) -> str:
    """Return the card's YAML header; empty where there is none."""
    if not text.startswith("---"):
        return ""
    end = text.find("\n---", 3)
    return text[3:end] if end > 0 else ""


def body(text: str) -> str:
    """Return the card without its YAML header."""
    return text[len(header(text)) + 7 :] if header(text) else text


def plain(text: str) -> str:
    """Return words without Markdown's and HTML's signs, in plain punctuation."""
    return TAG.sub(" ", text.translate(WIDE)).translate(DECORATION).strip()


def without_comments(text: str) -> str:
    """Return the text without HTML comments; an unclosed comment hides the rest."""
    parts, start = [], 0
    while (opened := text.find("<!--", start)) >= 0:
        parts.append(text[start:opened])
        closed = text.find("-->", opened)
        if closed < 0:
            return "".join(parts)
        start = closed + 3
    return "".join((*parts, text[start:]))


FILE = "README.md"
LONGEST_HEADER = 64 * 1024  # characters of YAML that are parsed
MOST_BLOCKS = 1000  # that name a parameter; real cards have a dozen
SHORT = 400  # characters of a heading, an introduction or a row's label that are looked at
MOST_COLUMNS = 50

MEASURED = re.compile(
    r"\b(?:evaluat\w*|benchmark\w*|\w*-?train\w*|fine-?tun\w*|leaderboard|reproduc\w*|ablation|citation)\b",
    re.IGNORECASE,
)
ADVISING = re.compile(
    r"\b(?:best practices?|recommend\w*|guidelines?|usage tips?|tips|suggest\w*"
    r"|(?:sampling|generation|inference|decoding|optimal|default)"
    r" (?:param\w*|settings?|config\w*|values?))\b",
    re.IGNORECASE,
)
# An example: a call, a request, a command line or a training with values of its own, and no list of settings.
EXAMPLE = re.compile(
    r"\b(?:SamplingParams|GenerationConfig|generate|create|pipeline|pipe|chat|llm|model)\s?\("
    r'|"messages"\s?:|^PARAMETER\s|\s--temp\b'
    r"|\b(?:TrainingArguments|Trainer|lm_eval|num_fewshot|learning_rate)\b",
    re.MULTILINE,
)


def evidence(snapshot: Snapshot) -> list[Evidence]:
    """Return facts from the header first, then from the prose."""
    named = (b for b in blocks(snapshot.texts.get(FILE, "")) if NAME.search(f"{b.columns} {b.text}"))
    grouped: dict[tuple[str, Mode | None], list[Advice]] = {}
    for one in (one for block in islice(named, MOST_BLOCKS) for one in _advice(block)):
        if usable(one.key, one.value) is not None:
            grouped.setdefault((one.key, one.mode), []).append(one)
    prose = (_fact(key, mode, group) for (key, mode), group in grouped.items())
    return [*_from_header(snapshot), *prose]


def _from_header(snapshot: Snapshot) -> Iterator[Evidence]:
    """Yield the values of ``inference.parameters``; the Hub's widget sends them."""
    card = metadata(snapshot)
    inference = card.get("inference")
    parameters = inference.get("parameters") if isinstance(inference, Mapping) else None
    for name, value in parameters.items() if isinstance(parameters, Mapping) else ():
        key = "repeat_penalty" if name == "repetition_penalty" else str(name)
        number = usable(key, value)
        if number is not None and key != "max_tokens":
            quote = f"inference.parameters.{key}: {number}"
            reason = Reason(CardReason.HEADER, quote=quote)
            yield Evidence(Rule.CARD_HEADER, f"parameters.{key}", number, FILE, reason, quote)


def metadata(snapshot: Snapshot) -> Mapping[str, object]:
    """Return the card's YAML header: as the Hub read it, else from the file."""
    return mapping(snapshot.info.get("card") or _yaml(header(snapshot.texts.get(FILE, ""))))


def _yaml(text: str) -> Any:
    if not text or len(text) > LONGEST_HEADER:
        return {}
    try:
        return yaml_reader.read(text)
    except YamlError:
        return {}


def _advice(block: Block) -> list[Advice]:
    """Return the values in a block, if it or the text above it recommends."""
    above = [h[:SHORT] for h in block.headings]
    nearest = next((h for h in reversed(above) if MEASURED.search(h) or ADVISING.search(h)), "")
    if MEASURED.search(nearest):
        return []
    around = [b[:SHORT] for b in block.before]
    advised = any(ADVISING.search(h) for h in (block.title, *above)) or any(ADVICE.search(b) for b in around)
    mode = next((m for words in reversed((*above, *around)) if (m := mode_of(words))), None)
    if block.kind == "code":
        text, settings = block.text, advised and not EXAMPLE.search(block.text)
        mode = mode_of(text) or mode
        return [Advice(v.key, v.number, quoted(v.words), mode) for v in advised_values(text) if settings]
    if block.kind == "row":
        return _row(block, mode, advised)
    advice: list[Advice] = []
    for sentence in sentences(block.text):
        if advised or ADVICE.search(sentence):
            advice += _scoped(read_advice(sentence, mode), (*above, *around))
        mode = mode_of(sentence) or mode
    return advice


def _row(block: Block, mode: Mode | None, advised: bool) -> list[Advice]:
    """Return the values of a row: a parameter in each column, or one parameter with a column a mode."""
    cells = [c.strip() for c in block.text.split("|")]
    if not (advised or any(ADVISING.search(c) for c in block.columns)):
        return []
    advice: list[Advice] = []
    label = cells[0][:SHORT]
    for column, cell in zip(block.columns[1:MOST_COLUMNS], cells[1:], strict=False):
        of_column = list(advised_values(f"{column} = {cell}"))
        of_row = list(advised_values(f"{label} = {cell}"))
        words = label if of_column else column
        if not MEASURED.search(words):
            its_mode, scope, quote = mode_of(words) or mode, scope_of(words), quoted(block.text)
            advice += [Advice(v.key, v.number, quote, its_mode, scope) for v in of_column or of_row]
    return advice


def _scoped(advice: Sequence[Advice], around: Sequence[str]) -> Iterator[Advice]:
    """Yield the advice; where a sentence names no scope, with the scope of the nearest words around it."""
    scopes = [s for words in reversed(around) if (s := scope_of(words)) != "plain"]
    scope: Scope = scopes[0] if scopes else "plain"
    for one in advice:
        yield replace(one, scope=scope) if one.scope == "plain" else one


def _fact(key: str, mode: Mode | None, group: Sequence[Advice]) -> Evidence:
    """Return one value for one key and mode; values that differ become evidence without a value."""
    scopes = {a.scope for a in group}  # for general use, else without a purpose, else all
    widest = next((scope for scope in ("general", "plain") if scope in scopes), None)
    chosen = [a for a in group if widest in (None, a.scope)]
    values = list(dict.fromkeys(usable(key, a.value) for a in chosen))
    place = f"parameters.{key}" if mode is None else f"{MODES_KEY}.{mode}.{key}"
    quote = chosen[0].quote
    said = {"key": key, "values": tuple(values), "mode": mode}
    if len(values) == 1 and all(a.clear for a in chosen):
        return Evidence(Rule.CARD, place, values[0], FILE, Reason(CardReason.VALUE, **said), quote)
    reason = Reason(CardReason.UNCLEAR, **said)
    return Evidence(Rule.CARD_UNCLEAR, f"parameters.{key}", values, FILE, reason, quote)
