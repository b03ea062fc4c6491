"""The job: read the sources, make the tables of them, check them, and write all files or none."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from gen_defaults import checks, sampling
from gen_defaults.checks import CheckFinding, CheckSubject, Upstream
from gen_defaults.place import Place, changed, load
from gen_defaults.proposal import proposal
from gen_defaults.sources import SOURCES, SourceRequest
from importer.engines.registries import Registry, parsed
from importer.signals.tables import parse_parsers
from importer.wheels.index import order

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
        return _SourceFiles(self.place, self.files).load(path)


def run(request: SourceRequest, names: Collection[str]) -> Result:
    """Read these sources, make the files that follow from them, and check them. Raises IndexFailure."""
    files: dict[Path, str] = {}
    upstream: list[Upstream] = []
    modules: dict[str, str] = {}
    for name in names:
        answer = SOURCES[name](request)
        files |= answer.files
        upstream += answer.upstream
        modules |= answer.modules
    table = CheckSubject(load(request.place.parsers), EMPTY)
    if wrong := checks.shape(table):
        return Result(request.place, {}, table, tuple(wrong))
    sources, read = _SourceFiles(request.place, files), [*files]
    files |= dict(derived(sources))
    about = replace(
        subject(sources, files, tuple(upstream), modules),
        releases={
            path.name: (load(path).get("source", {}), sources.load(path).get("source", {})) for path in read
        },
    )
    return Result(request.place, files, about, tuple(checks.run(about)))


@dataclass(frozen=True, slots=True)
class _SourceFiles:
    """The files of the sources: those that were just read, else those of the checkout."""

    place: Place
    files: Mapping[Path, str] = field(default_factory=dict)

    def load(self, path: Path) -> dict[str, Any]:
        """Return a file's data."""
        data: dict[str, Any] = json.loads(self.files[path]) if path in self.files else load(path)
        return data

    def registries(self, engine: str = "vllm") -> tuple[Registry, ...]:
        """Return the registry of every version, the oldest first."""
        paths = {*self.place.registries.glob(f"{engine}-[0-9]*.json")}
        paths |= {
            p for p in self.files if p.parent == self.place.registries and p.match(f"{engine}-[0-9]*.json")
        }
        registries = [parsed(self.load(path)) for path in paths]
        return tuple(sorted(registries, key=lambda registry: order(registry.version)))


def derived(sources: _SourceFiles) -> Iterator[tuple[Path, str]]:
    """Yield the files that are made from other files of the checkout."""
    place = sources.place
    unsloth, vendors = sources.load(place.upstream("unsloth")), sources.load(place.upstream("vendors"))
    yield place.sampling, sampling.render(sampling.table(load(place.rows), unsloth, vendors))
    table = parse_parsers(load(place.parsers))
    yield place.proposal, proposal(sources.load(place.upstream("vllm-docs")), sources.registries(), table)


def subject(
    sources: _SourceFiles,
    files: Mapping[Path, str],
    upstream: tuple[Upstream, ...] = (),
    modules: Mapping[str, str] = {},
) -> CheckSubject:
    """Return the subject of the checks."""
    repositories = sources.load(sources.place.upstream("vendors")).get("repositories", {})
    return CheckSubject(
        parsers=load(sources.place.parsers),
        sampling=json.loads(files[sources.place.sampling]),
        registries=sources.registries(),
        vendors={repo: row["values"] for repo, row in repositories.items()},
        upstream=upstream,
        modules=modules,
    )
