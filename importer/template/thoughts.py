"""Puts reasoning before a completion, or takes an empty block off it, as the prompt demands."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from importer.template.bench import Ask, Bench, Piece
from importer.template.cases import ANSWER, ASK, REASONING, Turn
from importer.template.marks import SHAPE
from importer.template.study import Call, Sample, Thinking
from importer.template.thinking import is_closed, is_open


class Voice:
    """How the model speaks under given template variables."""

    def __init__(self, bench: Bench, thinking: Thinking, kwargs: Mapping[str, Any] | None) -> None:
        self.bench = bench
        self.thinking = thinking
        self.kwargs: Mapping[str, Any] = kwargs or {}
        said = bench.cut([Ask((ASK,), Turn("assistant", ANSWER), bench.no_tools, self.kwargs)])[0]
        self.unseen = said.residue.strip() if isinstance(said, Piece) else ""

    def sample(
        self,
        case: str,
        piece: Piece,
        *,
        calls: tuple[Call, ...] = (),
        content: str | None = None,
        tools: Sequence[Mapping[str, Any]] = (),
        text_arguments: bool = False,
    ) -> Sample:
        """A sample whose completion fits its prompt: reasoning first where the prompt opens a block."""
        body = self.bare(piece.completion)
        tail = self.bench.tail(piece.prompt)
        lead, prompt = "", piece.prompt
        if is_open(tail, self.thinking.markers):
            lead = REASONING + self.closing
            body = body.lstrip("\n")
        elif self.unseen and piece.residue.strip() and not is_closed(tail, self.thinking.markers):
            prompt = piece.header  # a block of another kind is opened, which no turn of history shows
        return Sample(
            case=case,
            prompt=prompt,
            completion=lead + body,
            calls=calls,
            content=content,
            reasoning=REASONING if lead else "",
            tools=tuple(tools),
            kwargs=self.kwargs,
            text_arguments=text_arguments,
            lead=len(lead),
        )

    @property
    def simple(self) -> bool:
        """Whether a block may stand before anything: its closing holds no header of another channel."""
        return len(SHAPE.findall(self.thinking.block[1])) <= 1

    @property
    def closing(self) -> str:
        """What closes the block, with the white space around; the marker alone before another channel."""
        if self.simple or self.thinking.markers is None:
            return self.thinking.block[1]
        return self.thinking.markers[1]

    def bare(self, completion: str) -> str:
        """The completion without a block that holds no reasoning."""
        if self.thinking.markers is None:
            return completion
        opening, closing = map(re.escape, self.thinking.markers)
        return re.sub(rf"^\s*+(?:{opening}\s*+)?{closing}\s*", "", completion, count=1)
