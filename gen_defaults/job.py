"""The job: ask the sources, make the tables from what they said, check them, and write all files or none."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gen_defaults import checks, sampling
from gen_defaults.checks import CheckFinding, CheckSubject, Upstream
from gen_defaults.index import IndexFailure, order
from gen_defaults.place import Place, changed, load
from gen_defaults.proposal import proposal
from gen_defaults.sources import SOURCES, SourceRequest
from importer.engines.registries import Registry, parsed
from importer.signals.tables import parse_parsers

EMPTY: Mapping[str, Any] = {"families": {}, "patterns": [], "sources": {}}


@dataclass(frozen=True, slots=True)
class Result:
    """``files`` is everything as it would be written, ``changed`` what of it differs from what is there."""

    place: Place
    files: Mapping[Path, str]
    subject: CheckSubject
    findings: tuple[CheckFinding, ...] = ()

    @property
    def changed(self) -> dict[Path, str]:
        """Return the files that would be written."""
        return changed(self.files)

    @property
    def fails(self) -> bool:
        """Return whether nothing may be written."""
        return any(finding.fails for finding in self.findings)

    def data(self, path: Path) -> dict[str, Any]:
        """Return a file as it would be."""
        found: dict[str, Any] = json.loads(self.files[path]) if path in self.files else load(path)
        return found


def run(request: SourceRequest, names: Collection[str]) -> Result:
    """Ask these sources, make what follows from them, and check it. Raises IndexFailure."""
    files: dict[Path, str] = {}
    upstream: list[Upstream] = []
    modules: dict[str, str] = {}
    for name in names:
        answer = SOURCES[name](request)
        files |= answer.files
        upstream += answer.upstream
        modules |= answer.modules
    if request.index.unused:
        raise IndexFailure(f"{request.index.unused[0]} is no archive of a package that was asked for")
    table = CheckSubject(load(request.place.parsers), EMPTY)
    if wrong := checks.shape(table):
        return Result(request.place, {}, table, tuple(wrong))
    said, read = _Said(request.place, files), [*files]
    files |= dict(derived(said))
    about = replace(
        subject(said, files, tuple(upstream), modules),
        releases={
            path.name: (load(path).get("source", {}), said.load(path).get("source", {})) for path in read
        },
    )
    return Result(request.place, files, about, tuple(checks.run(about)))


@dataclass(frozen=True, slots=True)
class _Said:
    """What the sources say: what was just read, else what lies there."""

    place: Place
    files: Mapping[Path, str] = field(default_factory=dict)

    def load(self, path: Path) -> dict[str, Any]:
        """Return a file's data."""
        found: dict[str, Any] = json.loads(self.files[path]) if path in self.files else load(path)
        return found

    def registries(self, engine: str = "vllm") -> tuple[Registry, ...]:
        """Of every version, the oldest first."""
        paths = {*self.place.registries.glob(f"{engine}-[0-9]*.json")}
        paths |= {
            p for p in self.files if p.parent == self.place.registries and p.match(f"{engine}-[0-9]*.json")
        }
        found = [parsed(self.load(path)) for path in paths]
        return tuple(sorted(found, key=lambda registry: order(registry.version)))


def derived(said: _Said) -> Iterator[tuple[Path, str]]:
    """Yield the files that are made from others of ours alone."""
    place = said.place
    unsloth, vendors = said.load(place.upstream("unsloth")), said.load(place.upstream("vendors"))
    yield place.sampling, sampling.render(sampling.table(load(place.rows), unsloth, vendors))
    table = parse_parsers(load(place.parsers))
    yield place.proposal, proposal(said.load(place.upstream("vllm-docs")), said.registries(), table)


def subject(
    said: _Said,
    files: Mapping[Path, str],
    upstream: tuple[Upstream, ...] = (),
    modules: Mapping[str, str] = {},
) -> CheckSubject:
    """Return what the checks are asked about."""
    repositories = said.load(said.place.upstream("vendors")).get("repositories", {})
    return CheckSubject(
        parsers=load(said.place.parsers),
        sampling=json.loads(files[said.place.sampling]),
        registries=said.registries(),
        vendors={repo: row["values"] for repo, row in repositories.items()},
        upstream=upstream,
        modules=modules,
    )
