"""Checks of an engine's environment, from its metadata alone: nothing of it is imported."""

from __future__ import annotations

from collections.abc import Iterator

from importer.engines import install
from importer.engines.deaths import CONFIGURATION
from importer.engines.doctor.case import (
    VLLM,
    X86,
    CheckSkipped,
    DoctorCase,
    Fine,
    Package,
    Result,
    Trouble,
    TroubleSeverity,
    version,
)
from importer.engines.doctor.kinds import DoctorReason, DoctorRemedy
from importer.engines.registries import FAMILY
from importer.errors import EngineError
from importer.reasons import Reason

SISTERS = ("torchvision", "torchaudio", "torchcodec")
# The package that holds an engine's code.
MODULES = {
    "mlx": "mlx_lm",
    "mlx-vlm": "mlx_vlm",
    "vllm-mlx": "vllm_mlx",
    "vllm-cpu": "vllm",
    "vllm-cuda": "vllm",
}


def installed(case: DoctorCase) -> Result:
    """Return whether the engine is here, whole, and the one that this release installs."""
    if case.engine is None:
        return CheckSkipped(Reason(DoctorReason.ENGINE_UNNAMED))
    name = case.engine.name
    if case.missing is not None:
        told = case.missing.details
        found = Reason(
            DoctorReason.ENGINE_PYTHON,
            variable=told["variable"], path=told["path"], packages=told["packages"],
        )  # fmt: skip
        remedy = Reason(DoctorRemedy.CORRECT_VARIABLE, variable=told["variable"], name=name)
        return Trouble(found, remedy, error=case.missing)
    if case.installed is not None:
        place = case.installed.root or case.installed.python
        return Fine(Reason(DoctorReason.ENGINE_INSTALLED, version=case.installed.version, place=place))
    begun = install.root_of(case.engine).exists()
    kind = DoctorReason.ENGINE_UNFINISHED if begun else DoctorReason.ENGINE_MISSING
    error = EngineError("engine-missing", name=name)
    return Trouble(Reason(kind), Reason(DoctorRemedy.INSTALL, name=name), error=error)


def metadata(case: DoctorCase) -> Result:
    """Return whether what the metadata tells of is there, once."""
    if case.engine is None or case.installed is None:
        return CheckSkipped(Reason(DoctorReason.ENGINE_NOT_INSTALLED))
    found = case.packages()
    module = MODULES.get(case.engine.name)
    there = [d for d in case.engine.distributions if d in found]
    if not case.places() or module is None:
        return CheckSkipped(Reason(DoctorReason.PACKAGES_UNKNOWN, python=case.installed.python))
    if not there:
        return CheckSkipped(Reason(DoctorReason.METADATA_ELSEWHERE))
    name, have = there[0], found[there[0]].version
    if not any(case.files(f"{module}/*.py")) and not _editable(found[there[0]]):
        alone = Reason(DoctorReason.METADATA_ALONE, name=name, version=have, package=module)
        return Trouble(alone, again(case))
    if len(there) > 1:
        both = [f"{each} {found[each].version}" for each in there]
        return Trouble(Reason(DoctorReason.METADATA_SHARED, distributions=both), again(case))
    stale = [each for each, count in _counted(case).items() if each in there and count > 1]
    if stale:
        return Trouble(Reason(DoctorReason.METADATA_SEVERAL, name=stale[0]), again(case))
    return Fine(Reason(DoctorReason.METADATA_FINE, name=name, version=have, package=module))


def command(case: DoctorCase) -> Result:
    """Return whether the command ``vllm`` finds the metadata that it asks for by the name ``vllm``."""
    if not case.runs(*VLLM) or case.installed is None:
        return CheckSkipped(Reason(DoctorReason.COMMAND_ELSEWHERE))
    found = case.packages()
    if "vllm" in found or "vllm-cpu" not in found:
        return Fine(Reason(DoctorReason.COMMAND_FINE))
    return Trouble(
        Reason(DoctorReason.COMMAND_BROKEN), Reason(DoctorRemedy.RUN_MODULE), TroubleSeverity.WARNING
    )


def torch(case: DoctorCase) -> Result:
    """Return whether torch is the one the engine was built with, and its sisters those built with torch."""
    found = case.packages()
    have = found.get("torch")
    if case.engine is None or have is None:
        return CheckSkipped(Reason(DoctorReason.TORCH_NONE))
    for clash in (*_pinned(case, have, found), *_sisters(case, have, found)):
        return clash
    named = [f"{n} {found[n].version}" for n in ("torch", *SISTERS) if n in found]
    return Fine(Reason(DoctorReason.TORCH, packages=named))


def _pinned(case: DoctorCase, have: Package, found: dict[str, Package]) -> Iterator[Trouble]:
    """Yield what the engine itself asks for: ``==2.13.0+cpu`` is that build, ``==2.13.0`` any build of it."""
    for name in case.engine.distributions if case.engine is not None else ():
        pins = found[name].pins("torch") if name in found else set()
        if pins and not any(pin in {have.version, have.release} for pin in pins):
            built = found[name].version
            other = Reason(
                DoctorReason.TORCH_OTHER,
                name=name, version=built, wanted=sorted(pins), here=have.version,
            )  # fmt: skip
            yield Trouble(other, again(case))


def _sisters(case: DoctorCase, have: Package, found: dict[str, Package]) -> Iterator[Trouble]:
    """PyPI has torchvision for CUDA's torch; PyTorch's own index has one for processors, marked ``+cpu``."""
    for name in SISTERS:
        if name not in found:
            continue
        sister = found[name]
        wants = {pin.partition("+")[0] for pin in sister.pins("torch")}
        if wants and have.release not in wants:
            apart = Reason(
                DoctorReason.TORCH_SISTER,
                name=name, version=sister.version, wanted=sorted(wants), here=have.version,
            )  # fmt: skip
            yield Trouble(apart, Reason(DoctorRemedy.MATCHING_TORCH, again=again(case), name=name))
        elif (have.build == "cpu") != (sister.build == "cpu") and case.arch in X86:
            here, version_ = have.version, sister.version
            apart = (
                Reason(DoctorReason.TORCH_SISTER_FOR_CUDA, name=name, version=version_, here=here)
                if have.build == "cpu"
                else Reason(DoctorReason.TORCH_SISTER_FOR_PROCESSORS, name=name, version=version_, here=here)
            )
            yield Trouble(apart, Reason(DoctorRemedy.MATCHING_TORCH_BUILD, again=again(case), name=name))


def same_version(case: DoctorCase) -> Result:
    """Return whether the engine is of the version that the document's parsers were proved with."""
    said = ((case.document or {}).get("importer") or {}).get("engine") or {}
    if case.engine is None or case.installed is None or not isinstance(said, dict) or not said.get("version"):
        return CheckSkipped(Reason(DoctorReason.VERSION_UNNAMED))
    family, named = (FAMILY.get(n, n) for n in (case.engine.name, str(said.get("name"))))
    if family != named:
        return CheckSkipped(Reason(DoctorReason.OTHER_ENGINE, family=named))
    if version(str(said["version"])) == version(case.installed.version):
        return Fine(Reason(DoctorReason.VERSION, version=said["version"]))
    changed = Reason(
        DoctorReason.CHANGED_VERSION, family=named, version=said["version"], here=case.installed.version
    )
    return Trouble(changed, Reason(DoctorRemedy.RECHECK), TroubleSeverity.WARNING, CONFIGURATION)


def again(case: DoctorCase) -> Reason:
    """Return how an environment is made anew."""
    name = case.engine.name if case.engine is not None else "ENGINE"
    if case.installed is not None and case.installed.root is None:
        return Reason(DoctorRemedy.MEND_ENVIRONMENT, python=case.installed.python)
    return Reason(DoctorRemedy.INSTALL_AGAIN, name=name)


def _editable(package: Package) -> bool:
    """Return whether its code lies elsewhere, as after ``pip install -e``."""
    return (package.info / "direct_url.json").exists()


def _counted(case: DoctorCase) -> dict[str, int]:
    """Return how often each distribution of the engine has metadata in one folder."""
    counts: dict[str, int] = {}
    for name in case.engine.distributions if case.engine is not None else ():
        spelled = name.replace("-", "_")
        counts[name] = max(
            (len([*place.glob(f"{spelled}-*.dist-info")]) for place in case.places()), default=0
        )
    return counts
