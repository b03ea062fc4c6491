"""YAML as people write it: random data in random styles, with comments that can be told apart."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

from importer.document.document_keys import same

KEYS = ("name", "backend", "parameters", "options", "a", "b c", "x-y", "ü", "'")
WORDS = (
    "", "0.6", "yes", "null", "tool_parser:hermes", "a: b", "#x", "two words", "it's", 'say "x"', "- x", "é",
    "one\ntwo\n", " lead", "[a", "{", "*x", "&x", "!x", "%", "@", "a,b",
)  # fmt: skip
SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 9), st.sampled_from([0.0, -0.0, 0.5, 1e-05, 1e20]),
    st.sampled_from(WORDS),
)  # fmt: skip
DATA = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=4),
    max_leaves=12,
)
DOCUMENTS = st.dictionaries(st.sampled_from(KEYS), DATA, min_size=1, max_size=5)


class Writer:
    """Writes data as YAML text, asking ``draw`` for every choice of style."""

    def __init__(self, draw: Any) -> None:
        self._draw = draw
        self.comments = 0
        self._anchors: dict[str, Any] = {}
        self._step = self._pick(2, 2, 3, 4)
        self._dashes = self._pick(0, 2)

    def text(self, data: dict[str, Any]) -> str:
        """The whole document."""
        lines = self._block(data, 0) if self._pick(*[True] * 7, False) else [self._flow(data)]
        lines = [
            *self._above(0), *(["---"] if self._pick(False, False, True) else []), *lines, *self._above(0),
        ]  # fmt: skip
        text = "\n".join(lines) + self._pick("\n", "\n", "", "\n\n")
        text = self._pick("", "", "", "\ufeff") + text
        return text.replace("\n", "\r\n") if self._pick(False, False, True) else text

    def _pick(self, *choices: Any) -> Any:
        return self._draw(st.sampled_from(choices))

    def _comment(self) -> str:
        self.comments += 1
        return f"# comment {self.comments}"

    def _above(self, indent: int) -> list[str]:
        kind = self._pick("", "", "", "blank", "comment")
        return {
            "": [], "blank": [""], "comment": [" " * indent + (self._comment() if kind == "comment" else "")],
        }[kind]  # fmt: skip

    def _behind(self) -> str:
        return self._pick("", " ", "   ") + " " + self._comment() if self._pick(False, False, True) else ""

    def _block(self, data: Any, indent: int) -> list[str]:
        lines = []
        entries = data.items() if isinstance(data, dict) else ((None, item) for item in data)
        for key, value in entries:
            lines += self._above(indent)
            head = " " * indent + ("-" if key is None else f"{self._key(key)}:")
            lines += self._entry(head, value, indent, key is None)
        return lines

    def _entry(self, head: str, value: Any, indent: int, dash: bool) -> list[str]:
        alike = [name for name, known in self._anchors.items() if same(known, value)]
        if alike and self._pick(True, True, False):
            return [f"{head} *{alike[0]}{self._behind()}"]
        lines = self._merged(head, value, indent) if isinstance(value, dict) and not dash else None
        lines = lines or self._own(head, value, indent, dash)
        if value and not dash and self._pick(True, False, False) and "\n" not in lines[0]:
            name = f"n{len(self._anchors)}"
            lines[0] = f"{head} &{name}{lines[0][len(head) :]}"
            self._anchors[name] = value
        return lines

    def _merged(self, head: str, value: dict[str, Any], indent: int) -> list[str] | None:
        """Keys that another map has, taken from there."""
        for name, known in self._anchors.items():
            if isinstance(known, dict) and all(k in value for k in known) and self._pick(True, False):
                rest = {k: v for k, v in value.items() if k not in known or not same(v, known[k])}
                line = (
                    " " * (indent + self._step)
                    + f"<<: {self._pick(f'*{name}', f'[*{name}]')}{self._behind()}"
                )
                return [head + self._behind(), line, *self._block(rest, indent + self._step)]
        return None

    def _own(self, head: str, value: Any, indent: int, dash: bool) -> list[str]:
        if isinstance(value, dict | list) and value and self._pick(True, True, False):
            deeper = indent + self._step
            if isinstance(value, list) and not dash:
                deeper = indent + self._dashes
            if dash and self._pick(True, False):  # the first entry beside the dash
                inner = self._block(value, indent + 2)
                while inner and inner[0].lstrip()[:1] in ("#", ""):
                    inner = inner[1:]
                return [f"{head} {inner[0].lstrip()}", *inner[1:]]
            return [head + self._behind(), *self._block(value, deeper)]
        if isinstance(value, str) and "\n" in value and self._pick(True, False):
            sign = self._pick("|", "|", "|+")
            return [
                f"{head} {sign}{self._behind()}",
                *(" " * (indent + 2) + line for line in value.split("\n")[:-1]),
            ]
        if isinstance(value, str) and value == "two words" and self._pick(True, False):
            first, last = self._pick(
                ("two", "words"), ('"two', 'words"'), (">-\n" + " " * (indent + 1) + "two", "words")
            )
            return [*f"{head} {first}".split("\n"), " " * (indent + 1) + last]
        if isinstance(value, list | dict) and value and self._pick(True, False):
            return self._tall(head, value, indent + 2)
        said = self._scalar(value) if not isinstance(value, dict | list) else self._flow(value)
        return [f"{head} {said}".rstrip() + self._behind()]

    def _tall(self, head: str, value: Any, indent: int) -> list[str]:
        """A flow collection over many lines, with comments between its entries."""
        entries = value.items() if isinstance(value, dict) else ((None, item) for item in value)
        said = [
            self._flow(v) if k is None else f"{self._key(k, flow=True)}: {self._flow(v)}" for k, v in entries
        ]
        lines = [f"{' ' * indent}{entry},{self._behind()}" for entry in said]
        if self._pick(True, False):
            lines[-1] = " " * indent + said[-1] + self._behind()
        opening, closing = "{}" if isinstance(value, dict) else "[]"
        return [f"{head} {opening}{self._behind()}", *lines, " " * (indent - 1) + closing + self._behind()]

    def _flow(self, value: Any) -> str:
        if isinstance(value, dict):
            inner = [f"{self._key(k, flow=True)}: {self._flow(v)}" for k, v in value.items()]
            opening, closing = "{}"
        elif isinstance(value, list):
            inner, (opening, closing) = [self._flow(v) for v in value], "[]"
        else:
            return self._scalar(value, flow=True)
        space, tail = self._pick("", " "), self._pick("", "", ",") if inner else ""
        return f"{opening}{space}{', '.join(inner)}{tail}{space}{closing}"

    def _key(self, key: str, *, flow: bool = False) -> str:
        return self._scalar(key, flow=flow, key=True)

    def _scalar(self, value: Any, *, flow: bool = False, key: bool = False) -> str:
        if value is None and not flow:
            return self._pick("null", "~", "")
        if isinstance(value, float):
            return (
                {0.0: "0.0", 0.5: "0.50", 1e-05: "1.0e-5", 1e20: "1.0e+20"}[value]
                if str(value)[0] != "-"
                else "-0.0"
            )
        if not isinstance(value, str):
            return json.dumps(value)
        plain = (
            value.replace("_", "a").replace(":", "a").isalpha() and value not in ("yes", "null") and not flow
        )
        if "\n" in value or self._pick(False, True):
            return json.dumps(value, ensure_ascii=False)
        return value if plain or (key and value.isalpha()) else "'" + value.replace("'", "''") + "'"


@st.composite
def texts(draw: Any) -> str:
    """A document's text; now and then two of its values are the same, or one holds the other."""
    data = draw(DOCUMENTS)
    for key in draw(st.lists(st.sampled_from(KEYS), max_size=2)):
        source = data[draw(st.sampled_from(list(data)))]
        data[key] = (
            {**source, draw(st.sampled_from(KEYS)): draw(SCALARS)} if isinstance(source, dict) else source
        )
    return Writer(draw).text(data)


@st.composite
def edits(draw: Any, data: Any) -> Any:
    """The data with some changes anywhere: values, additions, removals, all in new containers."""

    def changed(value: Any) -> Any:
        if isinstance(value, dict):
            pairs = [(k, changed(v)) for k, v in value.items() if draw(st.integers(0, 9)) != 0]
            if draw(st.integers(0, 3)) == 0:
                pairs.insert(draw(st.integers(0, len(pairs))), (draw(st.sampled_from(KEYS)), draw(DATA)))
            return dict(pairs)
        if isinstance(value, list):
            items = [changed(v) for v in value if draw(st.integers(0, 9)) != 0]
            if draw(st.integers(0, 3)) == 0:
                items.insert(draw(st.integers(0, len(items))), draw(DATA))
            return items
        return draw(DATA) if draw(st.integers(0, 5)) == 0 else value

    return changed(data)
