"""Checks of an engine's environment, from its metadata alone: nothing of it is imported."""

from __future__ import annotations

from collections.abc import Iterator

from importer.engines import environment
from importer.engines.doctor.case import VLLM, X86, Case, Package, version
from importer.engines.doctor.result import Fine, NotApplicable, Result, Trouble
from importer.engines.registries import FAMILY
from importer.errors import EngineError

SISTERS = ("torchvision", "torchaudio", "torchcodec")
# The package that holds an engine's code.
MODULES = {
    "mlx": "mlx_lm",
    "mlx-vlm": "mlx_vlm",
    "vllm-mlx": "vllm_mlx",
    "vllm-cpu": "vllm",
    "vllm-cuda": "vllm",
}


def installed(case: Case) -> Result:
    """Whether the engine is here, whole, and the one that this release installs."""
    if case.engine is None:
        return NotApplicable("no engine was named")
    name = case.engine.name
    if case.missing is not None:
        return Trouble.of(case.missing)
    if case.installed is not None:
        place = case.installed.root or case.installed.python
        return Fine(f"{case.installed.version} in {place}")
    error = EngineError("engine-missing", name=name)
    if environment.root_of(case.engine).exists():
        return Trouble("its environment is unfinished or of another version", "", error=error)
    return Trouble("not installed", "", error=error)


def metadata(case: Case) -> Result:
    """Whether what the metadata tells of is there, once."""
    if case.engine is None or case.installed is None:
        return NotApplicable("it is not installed")
    found = case.packages()
    module = MODULES.get(case.engine.name)
    there = [d for d in case.engine.distributions if d in found]
    if not case.places() or module is None:
        return NotApplicable(f"where {case.installed.python} keeps its packages is not known")
    if not there:
        return NotApplicable("its metadata lies elsewhere")
    if not any(case.files(f"{module}/*.py")) and not _editable(found[there[0]]):
        says = f"the metadata of {there[0]} {found[there[0]].version} is there, its package {module} is not"
        return Trouble(says, again(case))
    if len(there) > 1:
        both = " and ".join(f"{name} {found[name].version}" for name in there)
        return Trouble(f"{both} share one package, so one has overwritten the other", again(case))
    stale = [name for name, count in _counted(case).items() if name in there and count > 1]
    if stale:
        return Trouble(
            f"{stale[0]} has metadata of several versions, left by an interrupted install", again(case)
        )
    return Fine(f"{there[0]} {found[there[0]].version} and its package {module}")


def command(case: Case) -> Result:
    """Whether the command ``vllm`` finds the metadata that it asks for by the name ``vllm``."""
    if not case.runs(*VLLM) or case.installed is None:
        return NotApplicable("only vLLM has a command of its own that asks for its metadata")
    found = case.packages()
    if "vllm" in found or "vllm-cpu" not in found:
        return Fine("the command 'vllm' finds its metadata")
    says = "the command 'vllm' fails (No package metadata was found for vllm): the distribution is vllm-cpu"
    remedy = "The importer does not use it. By hand: python -m vllm.entrypoints.openai.api_server."
    return Trouble(says, remedy, stops=False)


def torch(case: Case) -> Result:
    """Whether torch is the one the engine was built with, and its sisters those built with torch."""
    found = case.packages()
    have = found.get("torch")
    if case.engine is None or have is None:
        return NotApplicable("there is no torch in its environment")
    for clash in (*_pinned(case, have, found), *_sisters(case, have, found)):
        return clash
    named = [f"{n} {found[n].version}" for n in ("torch", *SISTERS) if n in found]
    return Fine(", ".join(named))


def _pinned(case: Case, have: Package, found: dict[str, Package]) -> Iterator[Trouble]:
    """What the engine itself asks for: ``==2.13.0+cpu`` is that build, ``==2.13.0`` any build of it."""
    for name in case.engine.distributions if case.engine is not None else ():
        pins = found[name].pins("torch") if name in found else set()
        if pins and not any(pin in {have.version, have.release} for pin in pins):
            wants = " or ".join(sorted(pins))
            says = (
                f"{name} {found[name].version} was built with torch {wants}, and torch {have.version} is here"
            )
            yield Trouble(says, again(case))


def _sisters(case: Case, have: Package, found: dict[str, Package]) -> Iterator[Trouble]:
    """PyPI has torchvision for CUDA's torch; PyTorch's own index has one for processors, marked ``+cpu``."""
    for name in SISTERS:
        if name not in found:
            continue
        sister = found[name]
        wants = {pin.partition("+")[0] for pin in sister.pins("torch")}
        shown = f"{name} {sister.version}"
        remedy = f"{again(case)} By hand: 'pip uninstall {name}', which text models do without."
        if wants and have.release not in wants:
            says = f"{shown} was built for torch {', '.join(sorted(wants))}, and {have.version} is here"
            yield Trouble(f"{says}: importing transformers would fail", remedy)
        elif (have.build == "cpu") != (sister.build == "cpu") and case.arch in X86:
            origin = "PyPI's build, for CUDA" if have.build == "cpu" else "PyTorch's build for processors"
            says = f"{shown} is {origin}, and torch {have.version} is of another"
            index = " PyTorch's index (https://download.pytorch.org/whl/cpu) has matching builds."
            yield Trouble(f"{says}: importing transformers would fail", remedy + index)


def same_version(case: Case) -> Result:
    """Whether the engine is of the version that the document's parsers were proved with."""
    said = ((case.document or {}).get("importer") or {}).get("engine") or {}
    if case.engine is None or case.installed is None or not isinstance(said, dict) or not said.get("version"):
        return NotApplicable("the document names no version of an engine")
    family, named = (FAMILY.get(n, n) for n in (case.engine.name, str(said.get("name"))))
    if family != named:
        return NotApplicable(f"the document was written for {named}")
    if version(str(said["version"])) == version(case.installed.version):
        return Fine(f"the document was written for {said['version']}")
    says = f"the document was written for {named} {said['version']}, and {case.installed.version} is here"
    return Trouble(
        says,
        "Run 'importer recheck' to see what differs, and import it again.",
        stops=False,
        part="configuration",
    )


def again(case: Case) -> str:
    """How an environment is made anew."""
    name = case.engine.name if case.engine is not None else "ENGINE"
    if case.installed is not None and case.installed.root is None:
        return f"Mend the environment of {case.installed.python}."
    return f"Run 'importer engine remove {name}', then 'importer engine install {name}'."


def _editable(package: Package) -> bool:
    """Whether its code lies elsewhere, as after ``pip install -e``."""
    return (package.info / "direct_url.json").exists()


def _counted(case: Case) -> dict[str, int]:
    """How often each distribution of the engine has metadata in one folder."""
    counts: dict[str, int] = {}
    for name in case.engine.distributions if case.engine is not None else ():
        spelled = name.replace("-", "_")
        counts[name] = max(
            (len([*place.glob(f"{spelled}-*.dist-info")]) for place in case.places()), default=0
        )
    return counts
