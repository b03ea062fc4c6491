"""Checks of an engine's environment, by its metadata alone: nothing of it is imported."""

from __future__ import annotations

from collections.abc import Iterator

from importer.engines import install
from importer.engines.doctor.case import SOUND, X86, DoctorCase, Fine, Package, Result, Trouble, of_error
from importer.engines.doctor.kinds import DoctorReason, DoctorRemedy
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
    "sglang": "sglang",
}


def installed(case: DoctorCase) -> Result:
    """Return whether the engine is installed, whole, and of this release."""
    if case.engine is None:
        return None
    name = case.engine.name
    if case.missing is not None:
        variable = case.missing.details["variable"]
        return of_error(case.missing, Reason(DoctorRemedy.CORRECT_VARIABLE, variable=variable, name=name))
    if case.installed is not None:
        place = case.installed.root or case.installed.python
        return Fine(Reason(DoctorReason.ENGINE_INSTALLED, version=case.installed.version, place=place))
    begun = install.root_of(case.engine).exists()
    kind = DoctorReason.ENGINE_UNFINISHED if begun else DoctorReason.ENGINE_MISSING
    error = EngineError("engine-missing", name=name)
    return Trouble(Reason(kind), Reason(DoctorRemedy.INSTALL, name=name), error=error)


def metadata(case: DoctorCase) -> Result:
    """Return whether the package of the metadata exists, once."""
    if case.engine is None or case.installed is None:
        return None
    packages = case.packages()
    module = MODULES.get(case.engine.name)
    present = [d for d in case.engine.distributions if d in packages]
    if not case.places() or module is None:
        return None
    if not present:
        return None
    name, have = present[0], packages[present[0]].version
    if not any(case.files(f"{module}/*.py")) and not _editable(packages[present[0]]):
        alone = Reason(DoctorReason.METADATA_ALONE, name=name, version=have, package=module)
        return Trouble(alone, again(case))
    spelled = [each.replace("-", "_") for each in present]
    found = [
        [i.stem for each in spelled for i in place.glob(f"{each}-*.dist-info")] for place in case.places()
    ]
    if len(shared := max(found, key=len)) > 1:
        return Trouble(Reason(DoctorReason.METADATA_SHARED, distributions=sorted(shared)), again(case))
    return SOUND


def torch(case: DoctorCase) -> Result:
    """Return whether torch is the one that the engine was built with, and its sisters fit it."""
    packages = case.packages()
    have = packages.get("torch")
    if case.engine is None or have is None:
        return None
    for clash in (*_pinned(case, have, packages), *_sisters(case, have, packages)):
        return clash
    named = [f"{n} {packages[n].version}" for n in ("torch", *SISTERS) if n in packages]
    return Fine(Reason(DoctorReason.TORCH, packages=named))


def _pinned(case: DoctorCase, have: Package, packages: dict[str, Package]) -> Iterator[Trouble]:
    """Yield a clash with the pins of the engine: ``==2.13.0+cpu`` is that build, ``==2.13.0`` any build
    of it.
    """
    for name in case.engine.distributions if case.engine is not None else ():
        pins = packages[name].pins("torch") if name in packages else set()
        if name == "sglang" and have.build == "cpu":
            return  # its parsers alone: the check of cards reports that it serves nowhere else
        if pins and not any(pin in {have.version, have.release} for pin in pins):
            built = packages[name].version
            other = Reason(
                DoctorReason.TORCH_OTHER,
                name=name, version=built, wanted=sorted(pins), here=have.version,
            )  # fmt: skip
            yield Trouble(other, again(case))


def _sisters(case: DoctorCase, have: Package, packages: dict[str, Package]) -> Iterator[Trouble]:
    """Yield clashes of torch's sisters with it.

    PyPI has torchvision for CUDA's torch; PyTorch's own index has one for processors, marked ``+cpu``.
    """
    for name in SISTERS:
        if name not in packages:
            continue
        sister = packages[name]
        wants = {pin.partition("+")[0] for pin in sister.pins("torch")}
        other_build = (have.build == "cpu") != (sister.build == "cpu") and case.arch in X86
        if other_build or (wants and have.release not in wants):
            apart = Reason(DoctorReason.TORCH_SISTER, name=name, version=sister.version, here=have.version)
            yield Trouble(apart, Reason(DoctorRemedy.MATCHING_TORCH, again=again(case), name=name))


def again(case: DoctorCase) -> Reason:
    """Return the remedy that makes an environment anew."""
    name = case.engine.name if case.engine is not None else "ENGINE"
    if case.installed is not None and case.installed.root is None:
        return Reason(DoctorRemedy.MEND_ENVIRONMENT, python=case.installed.python)
    return Reason(DoctorRemedy.INSTALL_AGAIN, name=name)


def _editable(package: Package) -> bool:
    """Return whether its code lies in another folder, as after ``pip install -e``."""
    return (package.info / "direct_url.json").exists()
