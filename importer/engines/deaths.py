"""The causes of an engine's end: a regular expression over the log, a kind, and the part at fault."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, Final, Literal

from importer.document import engine_data
from importer.frozen import frozen
from importer.reasons import Fields, Reason, ReasonKind


def _death(fields: Fields) -> str:
    how = "closed its answers" if fields["status"] is None else f"ended with status {fields['status']}"
    return f"the worker {how}" + (f": {fields['words']}" if fields["words"] else "")


class Accident(ReasonKind):
    """An effect of this machine on a process: it is busy or full, or the environment lacks a package."""

    HANG = "the worker gave no answer within {seconds:g} s"
    DEATH = (_death,)
    OVERRUN = "it took longer than {seconds:g} s"
    MEMORY = "it took more memory than it may"
    MODULE = "its module does not import ({words})"
    ABSENT = "it uses {words}, which is not among the sources of the parsers"


class ParserFailure(ReasonKind):
    """A failure that is the same on every machine."""

    RAISED = "{words}"


# The part at fault. The configuration is the document or the repository.
Attribution = Literal["configuration", "model", "engine", "environment"]


CONFIGURATION: Final = "configuration"


MODEL: Final = "model"


ENGINE: Final = "engine"


ENVIRONMENT: Final = "environment"


class Died(ReasonKind):
    """An end of an engine by its own doing, its settings or its installation."""

    CARD_HELD = "{problem}; on the card: {held:and}"
    CARD_IN_USE = "{words}: end what else holds the card, or lower gpu_memory_utilization"
    CODE_NOT_TRUSTED = "the repository brings code that runs only with trust_remote_code: true"
    CONFIG_LACKS = "config.json lacks {keys}"
    CONTEXT_TOO_LARGE = "the context does not fit into memory: {words}"
    CONTENTS_REFUSED = (
        "its files are whole, and what stands in one of them is refused ({problem}): compare them with "
        "the vendor's"
    )
    FILES_DISAGREE = "{finding}; the engine ended with: {problem}"
    FILE_BROKEN = "a weights file, or another file of JSON, is broken: {words}"
    JSON_BROKEN = "config.json, or another file of JSON, is missing or broken"
    LAST_WORDS = "{words}"
    MODEL_UNKNOWN = "this version of the engine does not serve the model: {words}"
    NO_AVX2 = "the build needs AVX2, and this processor lacks it"
    NO_DEVICE = "it finds no device that it is built for: its driver, or its build, is another's"
    NO_DTYPE = "config.json's dtype {dtype} is none"
    NO_LIBRARY = "the system lacks {library}; install libnuma1 and libgomp1"
    NO_MEMORY_FOR_CACHE = (
        "there is not enough memory left for weights and KV cache: end what else holds the device, or "
        "name the bytes of the cache in kv_cache_memory_bytes"
    )
    NO_MEMORY_FOR_WEIGHTS = "there is not enough memory for the weights"
    NO_MODULE = "its environment lacks {module}; install that there, or the engine again"
    OWN_FILES = (
        "it starts with the model that ships and not with this one ({problem}): compare config.json, the "
        "tokenizer and the weights with the vendor's"
    )
    PARSER_UNFIT = "{words}; another parser, or none, is this model's"
    PARSER_WITH_ANOTHER = "{problem}. {remedy}"
    PORT_TAKEN = "the port is taken"
    PYTHON_FAILS = "its Python does not start: {words}"
    QUANTISATION_UNTOLD = (
        "the weights are quantised, and config.json does not say how: put its quantization back"
    )
    SETTING = "it starts without {setting}: correct it, or take it out ({problem})"
    SETTINGS_REFUSED = "it refused its settings: {words}"
    SILENT = "its log is empty"
    TOKENIZER_BROKEN = "the tokenizer is missing or broken ({words})"
    TOKENIZERS_PARSER = (
        "tokenizer_config.json names the tool parser {parser}, which this version does not have"
    )
    TORCHVISION = "its torchvision is built for another torch ({words}); install the engine again"
    WEIGHTS_BROKEN = "a weights file is broken: {words}"
    WEIGHTS_UNFIT = "the weights do not fit config.json ({words})"
    WORKER_GONE = "{words}"


# Deaths of a parser's name or of its format.
OF_PARSERS = frozenset({Died.PARSER_UNFIT, Died.TOKENIZERS_PARSER})


# Deaths over memory of a card, that other programs may hold.
OF_CARDS = frozenset({Died.CARD_IN_USE, Died.NO_MEMORY_FOR_CACHE, Died.NO_MEMORY_FOR_WEIGHTS})


# Deaths of a file that is away, cut, or whole with contents that no library reads.
OF_FILES = frozenset({Died.FILE_BROKEN, Died.JSON_BROKEN, Died.TOKENIZER_BROKEN})


# Deaths over tensors, that other files of the model's folder may explain.
OF_WEIGHTS = frozenset({
    Died.FILE_BROKEN, Died.LAST_WORDS, Died.QUANTISATION_UNTOLD, Died.WEIGHTS_BROKEN, Died.WEIGHTS_UNFIT,
})  # fmt: skip


@frozen
class Death:
    """A pattern of a log, its kind, and the part at fault.

    The pattern's named groups are the fields of the reason: texts of the engine.
    """

    pattern: str
    kind: ReasonKind
    attribution: Attribution = ENGINE


@frozen
class DeathCause:
    """Why an engine ended, and the part at fault."""

    reason: Reason
    attribution: Attribution = ENGINE


@cache
def of_backend(name: str) -> tuple[Death, ...]:
    """Return the known causes of an engine's end, by its file of deaths."""
    rows = engine_data.table(f"{name}.deaths.toml").get("deaths", ())
    found = (_shared(row["like"]) if "like" in row else (_death_of(row),) for row in rows)
    return tuple(itertools.chain.from_iterable(found))


def _shared(name: str) -> tuple[Death, ...]:
    """Return the causes of another engine that its library has in common with it."""
    rows = engine_data.table(f"{name}.deaths.toml")["deaths"]
    return tuple(_death_of(row) for row in rows if row.get("shared"))


def _death_of(row: Mapping[str, Any]) -> Death:
    return Death(row["pattern"], Died(row["kind"]), row.get("part", ENGINE))


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
