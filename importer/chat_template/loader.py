"""Whose chat template an engine takes, as data: of the tokenizer or of the processor, for each request."""

from __future__ import annotations

from enum import StrEnum

from importer.frozen import frozen


class Opener(StrEnum):
    """A loader of transformers; ``ANY`` opens every file, of no engine in particular."""

    TOKENIZER = "tokenizer"
    PROCESSOR = "processor"
    ANY = "any"


@frozen
class Loader:
    """The loaders whose template an engine takes, the first that has one, for each form of request.

    ``refuses``  whether requests without a template fail; else their turns are written as plain text.
    """

    tools: tuple[Opener, ...] = (Opener.ANY,)
    plain: tuple[Opener, ...] = (Opener.ANY,)
    refuses: bool = True


ANY = Loader()
