"""Every reader of outside text, one line each: its modules, what is asked of it, and of how much text at first."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from tests.clock import documents, engines, proofs, repositories


@dataclass(frozen=True)
class Reader:
    """``modules`` are those whose patterns give near misses; ``size`` is in characters, fewer where text is slow."""

    name: str
    read: Callable[[Any], Any]
    modules: tuple[str, ...]
    size: int
    given: Callable[[str], Any] = str

    @property
    def of_data(self) -> bool:
        """Whether the text comes in pieces, as keys or names or tokens: few shapes tell those apart."""
        return self.given is not str and self.given is not repositories.as_is

    @property
    def patterns(self) -> list[re.Pattern[Any]]:
        """The patterns at the top of its modules, in tables, too."""
        return [p for m in self.modules for p in _patterns([*vars(import_module(m)).values()])]


def _patterns(values: Sequence[object]) -> list[re.Pattern[Any]]:
    found = [v for v in values if isinstance(v, re.Pattern)]
    return found + [p for v in values if isinstance(v, dict) for p in v.values() if isinstance(p, re.Pattern)]


def _whole(module: str) -> str:
    return module if module.startswith("gen_defaults.") else f"importer.{module}"


READERS = tuple(
    Reader(
        name, read, tuple(f"importer.{m}" if not m.startswith("gen_") else m for m in modules.split()), size,
        given,
    )
    for room in (repositories, documents, engines, proofs)
    for name, read, modules, size, given in room.READERS
)  # fmt: skip
# Modules with a pattern or a parser that read no stranger's text, or read one that something else bounds.
_REASONS = {
    "it reads what the importer itself wrote, or ships": """
        kept document.effects document.yaml_edit.render document.schema document.store document.build_text engines.registries
        engines.worker_process exports.compose exports.kubernetes exports.vllm analysis document.receipt document.receipt_files
        service.http.pages storage.jobs storage.document_rows memory.config_keys
        storage.audit service.domain.gallery storage.processes storage.queue storage.releases hub.cache
        storage.rechecks
        service.jobs.validation_steps
        cli.commands.documents cli.messages cli.reporting cli.output""",
    "it reads what the person at the terminal typed": """
        cli.arguments cli.validation_options cli.reviewing engines.vllm
        app.preferences service.settings engines.parser_sources""",
    "it asks this machine and what is installed on it": """
        engines.doctor.host engines.doctor.case engines.doctor.memory engines.doctor.model
        launcher engines.install engines.machine engines.tokenizer engines.token_merges
        cli.main""",
    "its JSON is parsed in one pass, or its patterns are matched against a few words": """
        engines.deaths engines.mlx engines.rust_renderer hub.client hub.route service.http.jobs service.http.overview service.http.query
        hub.local service.domain.listing storage.keys chat_template.render_worker hub.folders
        engines.model_folder sentences memory.pages hub.weights proof.conversations
        signals.thinking_signs app.gallery_site hub.search
        """,
    "it is what the importer's own processes say to each other, in one pass": "sandbox.pool sandbox.serve",
    "it runs in an engine's own environment": """
        engines.parser_worker.parts engines.parser_worker.sglang_parts engines.parser_worker.stand_ins
        engines.parser_worker.mlx_worker engines.parser_worker.replay engines.parser_worker.scripted_core engines.parser_worker.serving
        engines.parser_worker.tokens engines.parser_worker.vllm_rust_worker engines.parser_worker.vocabulary engines.parser_worker.wire""",
    "it is run by hand, over releases that are looked at": """
        gen_defaults.arguments gen_defaults.conflicts_worker gen_defaults.sources.vllm_recipes gen_defaults.checks.schema gen_defaults.checks.coverage wheels.index
        gen_defaults.inference gen_defaults.job gen_defaults.localai_diff gen_defaults.mlx_source gen_defaults.parser_tables
        gen_defaults.place gen_defaults.processors gen_defaults.recipes gen_defaults.regenerate gen_defaults.released gen_defaults.report
        gen_defaults.sampling gen_defaults.settings gen_defaults.shapes gen_defaults.sources.unsloth
        gen_defaults.syntax gen_defaults.truth gen_defaults.vllm_source wheels.web""",
}
ELSEWHERE = {_whole(module): reason for reason, modules in _REASONS.items() for module in modules.split()}
