"""vLLM's frontend in Rust: how a document is started with it, and what it has no option for.

Its binary lies in every release from 0.33 on. ``vllm serve`` starts it in place of the server in Python where
the variable is set; an option that it lacks, or an unknown parser, ends the start.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from importer.config_file import document_keys
from importer.config_file.document_keys import frontend_of
from importer.decisions.decision import RUST
from importer.engines.base import Document, Unstartable, invalid, word
from importer.engines.vllm_arguments import with_flags
from importer.reasons import Reason

VARIABLES: Mapping[str, str] = {"VLLM_USE_RUST_FRONTEND": "1"}
SINCE = (0, 33)
SERVE = ("-m", "vllm.entrypoints.cli.main", "serve")  # the module of the command: only it knows the variable
# ``cmd/src/cli/unsupported.rs`` of 0.33.0: of the options that a document may set, those that end the start.
LACKS = ("data_parallel_hybrid_lb", "mm_processor_kwargs")
# Of ``OFFERS``: it answers 501 for Anthropic's messages, and 404 for OpenAI's responses (0.33.0).
NOT_OFFERED = frozenset(("messages", "responses", "call-pieces"))
FLAGS = {"tool_parser": "--tool-call-parser", "reasoning_parser": "--reasoning-parser"}
BUILT_IN = "built-in"
NONE = "none"  # without a name it takes a parser by substrings of the model's id


def is_rust(document: Document) -> bool:
    """Return whether the document is for the frontend in Rust."""
    return document.get("backend", "vllm") == "vllm" and frontend_of(document) == RUST


def variables(document: Document) -> Mapping[str, str]:
    """Return the variables that select the frontend; none for the one in Python."""
    return VARIABLES if is_rust(document) else {}


def offers(document: Document, offered: frozenset[str]) -> frozenset[str]:
    """Return the features of the server that a document is started with, out of those of its engine."""
    return offered - NOT_OFFERED if is_rust(document) else offered


def checked(document: Document, version: tuple[int, ...]) -> None:
    """Raise DocumentError("invalid") for a frontend in Rust that the version has not."""
    if is_rust(document) and version < SINCE:
        named = ".".join(map(str, version))
        raise invalid(document, Reason(Unstartable.NO_RUST_FRONTEND, version=named))


def parsers(document: Document) -> Iterator[str]:
    """Yield the flags for the parsers, ``none`` included: the default is a guess by the model's name."""
    unsaid = (document.get("importer") or {}).get("no_parser") or {}
    for key, flag in FLAGS.items():
        name = document_keys.parser(document, key)
        if name is None and unsaid.get(key) == BUILT_IN:  # it rejects even "none" for such a model
            continue
        yield f"{flag}={NONE if name is None else word(document, key, name)}"


def without_lacking(arguments: Mapping[str, object]) -> dict[str, object]:
    """Return ``engine_args`` without those that end the start."""
    return {key: value for key, value in arguments.items() if key not in LACKS}


def lost(document: Document) -> Iterable[str]:
    """Return the keys of a document that this frontend has no option for."""
    return [f"engine_args.{key}" for key in with_flags(document).get("engine_args") or {} if key in LACKS]
