"""Evidence: a fact with its rule, source, reason and quote; the rules stand in their precedence."""

from __future__ import annotations

from enum import StrEnum
from typing import Any, Literal, Self

from importer.frozen import frozen
from importer.reasons import Reason, ReasonKind

# Kinds of models that vLLM serves without a conversation: those that pool, and those that transcribe.
POOLS = ("embedding", "reranker", "classifier", "reward")
TASKS = frozenset({*POOLS, "transcription"})
Status = Literal["user", "observed", "proved", "declared", "vendor", "table", "planned", "engine-default"]


class Rule(StrEnum):
    """All rules in their precedence: the first rule with evidence on a key decides.

    ``status``        of a decision by it; ``None``: it decides other keys alone, as ``table``.
    ``rank``          its place in this order.
    ``names_parsers`` whether it declares a tool parser or a reasoning parser.
    """

    status: Status | None
    names_parsers: bool
    rank: int

    def __new__(cls, name: str, status: Status | None = None, names_parsers: bool = False) -> Self:
        rule = str.__new__(cls, name)
        rule._value_ = name
        rule.status, rule.names_parsers, rule.rank = status, names_parsers, len(cls.__members__)
        return rule

    KIND_ARCHITECTURE = "kind-architecture", "vendor"
    KIND_FILES = "kind-files", "vendor"
    KIND_TEMPLATE = "kind-template", "vendor"
    KIND_NAME = "kind-name", "table"
    KIND_TAG = "kind-tag", "vendor"
    KIND_MODEL_TYPE = "kind-model-type", "table"
    KIND_DEFAULT = "kind-default", "table"
    FIT = "fit", "planned"  # what the memory of the device requires
    GENERATION_CONFIG = "generation-config", "vendor"
    CONFIG = "config", "vendor"
    CARD_HEADER = "card-header", "vendor"
    CARD = "card", "vendor"
    FILES = "files", "vendor"  # the listed files of the repository
    TEMPLATE_OVERRIDE = "given-template", "declared", True
    REPOSITORY_CLAIM = "repository-claim", "declared", True
    MODEL_TYPE = "model-type", "table", True
    FAMILY_TABLE = "family-table", "table", True
    BASE_MODEL_FAMILY = "base-model-family", "table", True
    TYPE_LINE = "type-line", "table", True
    TEMPLATE_FORMAT = "template-format", "table", True
    TYPE_NAME = "type-name", "table", True
    NAME_LIKE = "name-like", "table", True
    TEMPLATE_INSTRUCTIONS = "template-instructions", "table", True
    RESPONSE_TEMPLATE = "response-template", "declared", True
    SAMPLING_TABLE = "sampling-table", "table"
    GENERATION_CONFIG_IMPLIED = "generation-config-implied", "vendor"
    GENERATION_CONFIG_USUAL = "generation-config-usual", "vendor"  # for the mode that is not the document's
    END_TOKENS = "end-tokens", "vendor"
    END_OF_TURN = "end-of-turn", "vendor"
    TEMPLATE_RENDERED = "template-rendered", "vendor"  # what of a request the template writes
    MACHINE = "machine", "engine-default"
    FITS = "fits", "planned"  # the device has room for it
    PROMPTS = "prompts", "proved"  # what the engine's own rendering loses
    TOKENIZER = "tokenizer", "vendor"
    IMPORTER = "importer", "table"
    ENGINE = "engine", "engine-default"
    OBSERVED = "observed"  # how the calls of the live model arrived in an earlier validation
    PROOF = "proof"  # what the engine's own parsers read
    TEMPLATE = "template"  # what a template shows that names no parser
    THINKING_SIGN = "thinking-sign"  # what speaks for thinking beside a template that shows none
    LACKING_TOKENS = "lacking-tokens"  # of the tokenizer, without which a parser reads nothing
    CARD_UNCLEAR = "card-unclear"
    GENERATION_CONFIG_UNUSABLE = "generation-config-unusable"
    GENERATION_CONFIG_LENGTH = "generation-config-length"


class Source(StrEnum):
    """Sources of facts other than files, tables and engines; a file is named by its path."""

    TEMPLATE = "the chat template"
    LISTING = "the listed files"
    REPOSITORY = "the repository"
    HUB = "the Hub's answer"
    NAME = "name"
    FIT = "fit"
    PROOF = "proof"
    VALIDATION = "validation"


class Severity(ReasonKind):
    """Severity of a reason, kept as a reason around the reason."""

    WARNING = "warning: {reason}", "{reason}"


@frozen
class Evidence:
    """One fact.

    ``rule``    kind of evidence; ``Rule`` has them in their precedence.
    ``key``     key of the decision: ``kind``, ``tool_parser``, ``parameters.temperature`` …
    ``value``   a JSON value; ``None`` means *known to have none*.
    ``source``  the file, table or tag of the fact, else a ``Source``.
    ``reason``  a kind with fields.
    ``quote``   the words of the source, short and verbatim.
    """

    rule: Rule
    key: str
    value: Any
    source: str
    reason: Reason
    quote: str = ""


def warning(reason: Reason) -> Reason:
    """Return the reason, marked as a warning."""
    return Reason(Severity.WARNING, reason=reason)


def is_warning(reason: Reason) -> bool:
    """Return whether the reason is marked as a warning."""
    return reason.kind is Severity.WARNING
