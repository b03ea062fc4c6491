"""The subject of the checks, and their findings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

from gen_defaults.checks.schema import RowFault, faults, upstream_faults
from importer.engines.registries import Registry
from importer.proof.result import Proof
from importer.signals.tables import SamplingTable, Table, parse_parsers, parse_sampling

PARSERS, SAMPLING = "parser_defaults.json", "inference_defaults.json"
Severity = Literal["error", "note"]


@dataclass(frozen=True, slots=True)
class CheckFinding:
    """One row of one file: the problem and the next step. An ``error`` fails the job."""

    file: str
    row: str
    message: str
    step: str
    severity: Severity = "error"

    @property
    def fails(self) -> bool:
        """Return whether nothing may be written."""
        return self.severity == "error"

    def __str__(self) -> str:
        place = f"{self.file}: {self.row}" if self.row else self.file
        return f"{place}: {self.message}; {self.step}"


@dataclass(frozen=True, slots=True)
class Upstream:
    """Rows of a source before anything was dropped.

    ``source``    package, version and file, for people.
    ``known``     the source's name of a field to importer's.
    ``ignored``   fields that are left out on purpose, and why.
    ``required``  fields, in the source's names, that every row has.
    ``step``      a person's next step for a row that is wrong there.
    """

    source: str
    rows: Mapping[str, Any]
    known: Mapping[str, str]
    ignored: Mapping[str, str] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    step: str = "mend it in the source"


@dataclass(frozen=True, slots=True)
class Proved:
    """A model whose template is at hand, and what the engine's parsers made of it."""

    model_id: str
    proof: Proof


@dataclass(frozen=True)
class CheckSubject:
    """The data of the checks; absent data stay empty.

    ``parsers``, ``sampling``  the two tables as data, as they would be written.
    ``registries``  the supported versions of vLLM, the oldest first.
    ``vendors``     model id to its ``generation_config.json``.
    ``releases``    a generated file to the release that it named before, and its present one.
    ``modules``     module to source text, of the newest version: for the descriptions of parsers.
    """

    parsers: Mapping[str, Any]
    sampling: Mapping[str, Any]
    registries: tuple[Registry, ...] = ()
    vendors: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    upstream: tuple[Upstream, ...] = ()
    proofs: tuple[Proved, ...] = ()
    modules: Mapping[str, str] = field(default_factory=dict)
    releases: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]] = field(default_factory=dict)

    @cached_property
    def faults(self) -> tuple[RowFault, ...]:
        """Return where the tables and the sources' rows differ from their schemas."""
        tables = ((PARSERS, self.parsers), (SAMPLING, self.sampling))
        own = [fault for file, data in tables for fault in faults(file, data)]
        of_sources = [
            replace(fault, step=source.step)
            for source in self.upstream
            for fault in upstream_faults(source.source, source.rows, source.known, source.required)
        ]
        return (*own, *of_sources)

    @cached_property
    def table(self) -> Table:
        """Return the parser table's rows, in the order in which they are tried."""
        return parse_parsers(self.parsers)

    @cached_property
    def sampling_table(self) -> SamplingTable:
        """Return the sampling table's rows, in the order in which they are tried."""
        return parse_sampling(self.sampling)
