"""All faults, in the order of the matrix: one module for each kind, one line each."""

from __future__ import annotations

from tests.faults import parsers, samplings, servers, settings, starts, templates, thoughts, tokens
from tests.faults.fault import Fault

FAULTS: tuple[Fault, ...] = (
    *parsers.FAULTS,
    *thoughts.FAULTS,
    *templates.FAULTS,
    *tokens.FAULTS,
    *samplings.FAULTS,
    *settings.FAULTS,
    *servers.FAULTS,
    *starts.FAULTS,
)

OPEN = (
    "template-drops-calls",
    "template-wants-arguments-as-text",
    "template-begins-twice",
    "temperature-lost",
    "temperature-absurd",
    "penalty-absurd",
    "answers-end-too-soon",
    "stop-word-within-answers",
    "context-above-the-models",
    "thinking-switched-by-another-name",
    "tokenizer-of-another-model",
    "arguments-encoded-twice",
    "hermes-read-as-mistral",
    "hermes-read-as-qwen3coder",
    "wrong-served-name",
    "hermes-read-as-glm",
)
FAULTS = tuple(f for f in FAULTS if f.name not in OPEN)
