"""The causes of an engine's end: a regular expression over the log, a kind, and the part at fault."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Literal

from importer.reasons import Reason


class Accident(StrEnum):
    """An effect of a busy or full machine on a process."""

    HANG = "hang"
    DEATH = "death"
    OVERRUN = "overrun"
    MEMORY = "memory"


class ParserFailure(StrEnum):
    """A failure that is the same on every machine."""

    RAISED = "raised"  # with the message of the parser


# The part at fault. The configuration is the document or the repository.
Attribution = Literal["configuration", "model", "engine", "environment"]
CONFIGURATION: Final = "configuration"
MODEL: Final = "model"
ENGINE: Final = "engine"
ENVIRONMENT: Final = "environment"


class Died(StrEnum):
    """An end of an engine by its own doing, its settings or its installation."""

    ARCHITECTURE = "architecture"
    CARD_IN_USE = "card-in-use"
    CODE_NOT_TRUSTED = "code-not-trusted"
    CONFIG_BROKEN = "config-broken"
    CONFIG_LACKS = "config-lacks"
    CONTEXT_TOO_LARGE = "context-too-large"
    CONTEXT_TOO_LONG = "context-too-long"
    CONTENTS_REFUSED = "contents-refused"
    ELSEWHERE = "elsewhere"
    FILE_BROKEN = "file-broken"
    JSON_BROKEN = "json-broken"
    LAST_WORDS = "last-words"
    MODEL_TYPE_UNKNOWN = "model-type-unknown"
    MODEL_TYPE_UNSUPPORTED = "model-type-unsupported"
    NO_AVX2 = "no-avx2"
    NO_DEVICE = "no-device"
    NO_DTYPE = "no-dtype"
    NO_LIBRARY = "no-library"
    NO_MEMORY_FOR_CACHE = "no-memory-for-cache"
    NO_MEMORY_FOR_WEIGHTS = "no-memory-for-weights"
    NO_MODULE = "no-module"
    OPTION_REFUSED = "option-refused"
    OWN_FILES = "own-files"
    PACKAGE_UNFIT = "package-unfit"
    PARSER_NOT_THERE = "parser-not-there"
    PARSER_UNFIT = "parser-unfit"
    PARSER_UNKNOWN = "parser-unknown"
    PARSER_WITH_ANOTHER = "parser-with-another"
    PORT_TAKEN = "port-taken"
    PYTHON_FAILS = "python-fails"
    QUANTISATION_UNTOLD = "quantisation-untold"
    REASONING_PARSER_UNFIT = "reasoning-parser-unfit"
    SETTING = "setting"
    SETTINGS_REFUSED = "settings-refused"
    SILENT = "silent"
    TOKENIZER_BROKEN = "tokenizer-broken"
    TOKENIZERS_PARSER = "tokenizers-parser"
    TOOL_PARSER_UNFIT = "tool-parser-unfit"
    TORCHVISION = "torchvision"
    WEIGHTS_BROKEN = "weights-broken"
    WEIGHTS_UNFIT = "weights-unfit"
    WORKER_GONE = "worker-gone"


# Deaths of a parser's name or of its format.
OF_PARSERS = frozenset({
    Died.PARSER_NOT_THERE, Died.PARSER_UNFIT, Died.PARSER_UNKNOWN, Died.REASONING_PARSER_UNFIT,
    Died.TOKENIZERS_PARSER, Died.TOOL_PARSER_UNFIT,
})  # fmt: skip


# Deaths of a file that is away, cut, or whole with contents that no library reads.
OF_FILES = frozenset({Died.CONFIG_BROKEN, Died.FILE_BROKEN, Died.JSON_BROKEN, Died.TOKENIZER_BROKEN})


@dataclass(frozen=True, slots=True)
class Death:
    """A pattern of a log, its kind, and the part at fault.

    The pattern's named groups are the fields of the reason: texts of the engine.
    """

    pattern: str
    kind: StrEnum
    attribution: Attribution = ENGINE


@dataclass(frozen=True, slots=True)
class DeathCause:
    """Why an engine ended, and the part at fault."""

    reason: Reason
    attribution: Attribution = ENGINE


def of_parser(reason: object) -> bool:
    """Return whether a parser ended the engine, by the kind or by the text of the log."""
    if not isinstance(reason, Reason):
        return False
    return reason.kind in OF_PARSERS or "parser" in str(reason.fields.get("words", ""))


def causes(text: str, deaths: Iterable[Death]) -> Iterator[DeathCause]:
    """Yield the causes that ``text`` shows, in the order of ``deaths``."""
    for death in deaths:
        if (match := re.search(death.pattern, text, re.MULTILINE)) is not None:
            yield DeathCause(Reason(death.kind, **match.groupdict()), death.attribution)
