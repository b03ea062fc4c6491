"""Whether the parsers of each known version are asked without their engine: they are fetched, loaded and run.

A new release may keep a part elsewhere. What a parser lacks is named; a version whose parsers do not load, or
are asked in another way, fails.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator

from importer.chat_template.samples import Sample, Tool
from importer.engines import parser_sources, registries
from importer.engines.parser_worker.parts import PARTS
from importer.engines.parsers import ParserQuestion, ParserWorker
from importer.engines.registries import EngineParser
from importer.engines.tokens import Tokens
from importer.errors import ImporterError
from importer.sentences import render

TOOL: Tool = {
    "type": "function",
    "function": {"name": "now", "description": "", "parameters": {"type": "object", "properties": {}}},
}
CALL = Sample(
    "one-call", "<|im_start|>assistant\n", '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>',
    tools=(TOOL,),
)  # fmt: skip
TOKENS = Tokens(tokens=(("<tool_call>", False), ("</tool_call>", False)), eos="<|im_end|>")
READS = "hermes"  # this form, in every version


def options(parser: argparse.ArgumentParser) -> None:
    """Add the versions."""
    parser.add_argument(
        "versions", type=known, metavar="ENGINE==VERSION", nargs="*", help="in place of every known one"
    )


def known(text: str) -> str:
    """Return an engine with a version; raises ArgumentTypeError."""
    backend, equals, version = text.partition("==")
    if backend not in PARTS or not equals or not version:
        raise argparse.ArgumentTypeError(f"{text!r} is not one of {', '.join(PARTS)} with ==VERSION")
    return text


def main(options: argparse.Namespace) -> int:
    """Try each version; return 1 where one cannot be asked."""
    every = [f"{backend}=={version}" for backend in PARTS for version in parser_sources.versions(backend)]
    failed = 0
    for name in options.versions or every:
        backend, _, version = name.partition("==")
        try:
            lacking = [*tried(backend, version)]
        except ImporterError as error:
            failed, lacking = 1, [f"failed: {error.message}"]
        sys.stderr.writelines(f"parsers: {name}: {line}\n" for line in lacking or ["every parser is asked"])
    return failed


def tried(backend: str, version: str) -> Iterator[str]:
    """Yield what parsers of a version lack; raises ImporterError where the version cannot be asked."""
    registry = registries.load(backend, version)
    fetched = parser_sources.fetch(backend, registry.version)
    with ParserWorker(backend, fetched.python) as worker:
        listed = worker.list()
        named = {(kind, name) for kind in registry.entries for name in registry.names(kind)}
        yield from (f"{kind} parser {name} is not registered" for kind, name in named - {*map(_key, listed)})
        asks = {_question(one): one for one in listed}
        for ask, (reading,) in worker.read(TOKENS, [CALL], asks).items():
            if reading.accident is not None:
                yield f"{asks[ask].kind} parser {asks[ask].name}: {render(reading.accident)}"
            elif ask.tool == READS and not reading.calls:
                yield f"{READS} reads no call: {reading}"


def _key(one: EngineParser) -> tuple[str, str]:
    return one.kind, one.name


def _question(one: EngineParser) -> ParserQuestion:
    return ParserQuestion(one.name) if one.kind == "tool" else ParserQuestion(None, one.name)
