"""The checks before a run, each trap with its remedy. Checks only read; none changes anything.

``CHECKS`` has one line for each; docs/reference-probes.md shows the same table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from importer.engines import ENGINES
from importer.engines.doctor import host, memory, model, packages
from importer.engines.doctor.case import Check, DoctorCase, DoctorFinding, Fine, Result, Trouble, of_engine
from importer.engines.doctor.kinds import DoctorReason, DoctorRemedy
from importer.errors import EngineError
from importer.reasons import Reason

__all__ = ["CHECKS", "Check", "DoctorCase", "DoctorFinding", "Fine", "Result", "Trouble"]

CHECKS: tuple[Check, ...] = (
    Check("disk", "machine", "An engine takes up to 10 GB, weights far more: the install or the download fills the disk.", host.disk),
    Check("port", "machine", "Another server has the port, and answers the probes.", host.port),
    Check("engine", "engine", "The engine is missing, half installed, or of another release of the importer.", packages.installed),
    Check("package", "engine", "Metadata without its package, or two distributions that overwrote each other: the version is right and the import fails.", packages.metadata),
    Check("torch", "engine", "PyPI's torchvision beside PyTorch's torch for processors: 'operator torchvision::nms does not exist'; or a torch the engine was not built with.", packages.torch),
    Check("instructions", "engine", "A wheel compiled for AVX2 or AVX-512 dies of SIGILL in a child process; numpy from 2.4 on needs x86-64-v2; a virtual machine may hide it.", host.instructions),
    Check("libraries", "engine", "Without libnuma vLLM's extension fails to load in silence, and the engine dies later of a missing operator.", host.libraries),
    Check("driver", "engine", "A CUDA build on an older driver or without its card, or a torch without CUDA.", host.driver),
    Check("frontend", "document", "vLLM's frontend in Rust is in no build before 0.33, and has parsers that must stand for both kinds.", model.frontend),
    Check("snapshot", "document", "A shard that is cut, missing, a git-lfs pointer or a dead link; an output layer that the weights lack, which vLLM draws.", model.snapshot),
    Check("tokenizer", "document", "A tokenizer of another model beside the weights: fluent noise, or a crash.", model.tokenizer_settings),
    Check("ends", "document", "End tokens by number, copied from a model with another vocabulary: answers end amid words.", model.ends),
    Check("context", "document", "A context longer than the model's: refused by one engine, noise far into a text on another.", model.context),
    Check("rope", "document", "transformers 5 writes rope_theta under rope_parameters; mlx-vlm and vllm-mlx look at the top of config.json.", model.rope),
    Check("memory", "document", "Weights and KV cache above free memory or above the container's limit: the system kills the engine without a word. vLLM wants 90 % of each card free.", memory.memory),
    Check("shared-memory", "document", "A container's /dev/shm of 64 MB is too small for workers that talk through it.", host.shared_memory),
)  # fmt: skip


INSIDE = {"snapshot", "tokenizer", "ends", "context", "rope"}  # checks of the folder of the weights


def examine(case: DoctorCase, checks: Iterable[Check] = CHECKS) -> Iterator[DoctorFinding]:
    """Yield the findings of the checks, in their order."""
    for check in checks:
        yield DoctorFinding(check.name, case.about(check.about), check.look(case))


def everything(machine: DoctorCase) -> Iterator[DoctorFinding]:
    """Yield findings on the machine, then on every engine; troubles of an engine that is not installed
    are warnings.
    """
    yield from examine(machine, _about("machine"))
    yield DoctorFinding("memory", "machine", memory.memory(machine))
    for name, make in ENGINES.items():
        case = of_engine(name, root=machine.root)
        if case.installed or not make().needs_card or machine.text(host.DRIVER):
            for finding in examine(case, _about("engine")):
                yield finding if case.installed or case.missing else _allowed(finding)


def of_document(case: DoctorCase) -> Iterator[DoctorFinding]:
    """Yield findings on the machine, the document's engine, and the document on both."""
    yield from examine(case)


def refuse(case: DoctorCase, name: str, *, fetched: bool = True) -> list[DoctorFinding]:
    """Return the troubles that a run of the document ``name`` may meet.

    Raises EngineError where the run would not come to its end; uses no network. A single trouble with a row
    of its own in the table of errors is that error. Before weights are fetched, checks of their folder are
    skipped.
    """
    selected = [check for check in CHECKS if fetched or check.name not in INSIDE]
    troubles = [(f, f.result) for f in examine(case, selected) if isinstance(f.result, Trouble)]
    stopping = [(finding, trouble) for finding, trouble in troubles if finding.stops]
    if not stopping:
        return [finding for finding, _ in troubles]
    first = stopping[0][1]
    if first.error is not None and len(stopping) == 1:
        raise first.error
    raise EngineError(
        "would-not-run",
        name=name,
        engine=case.about("engine"),
        problem=tuple(trouble.reason for _, trouble in stopping),
        remedy=Reason(DoctorRemedy.SEVERAL, remedies=[trouble.remedy for _, trouble in stopping]),
        troubles=tuple(finding for finding, _ in stopping),
    )


def inside(error: EngineError) -> list[DoctorFinding]:
    """Return the findings behind a refusal where all of them are of the weights' folder; else none."""
    troubles = error.details.get("troubles")
    found = [one for one in troubles if isinstance(one, DoctorFinding)] if isinstance(troubles, tuple) else []
    return found if all(one.check in INSIDE for one in found) else []


def explained(error: EngineError, found: Sequence[DoctorFinding], changed: tuple[str, ...]) -> EngineError:
    """Return a refusal for files of a model, with those that have changed since the import as its cause."""
    cause = Trouble(
        Reason(DoctorReason.CHANGED_SINCE, files=changed), Reason(DoctorRemedy.PUT_BACK, files=changed)
    )
    findings = (DoctorFinding("snapshot", "document", cause), *found)
    problem = tuple(one.result.reason for one in findings if one.result is not None)
    told = {"problem": problem, "remedy": cause.remedy, "troubles": findings}
    return EngineError("would-not-run", **{**error.details, **told})


def _about(part: str) -> list[Check]:
    return [check for check in CHECKS if check.about == part]


def _allowed(finding: DoctorFinding) -> DoctorFinding:
    result = finding.result
    if not isinstance(result, Trouble):
        return finding
    return replace(finding, result=replace(result, stops=False))
