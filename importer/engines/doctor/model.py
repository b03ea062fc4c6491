"""Checks of a document and its model's folder against the engine at hand."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from importer.document import options
from importer.engines import registries
from importer.engines.deaths import CONFIGURATION, ENGINE
from importer.engines.doctor.case import VLLM, Case, text_of
from importer.engines.doctor.kinds import DoctorReason, DoctorRemedy
from importer.engines.doctor.result import Fine, NotApplicable, Result, Trouble, TroubleSeverity
from importer.errors import EngineError, UsageError
from importer.hub import local, safetensors
from importer.hub.weights import TOKENIZERS, weight_files
from importer.reasons import Reason
from importer.template.ours import PYTHONIC

NAMED = (*VLLM, "vllm-mlx")  # engines that are started with a parser's name
POINTER = b"version https://git-lfs"
READ = {".safetensors", ".json", ".jinja", ".model", ".tiktoken", ".txt"}
CONFIGS = ("config.json", "params.json")  # Mistral's own files have the other
INDEX = "model.safetensors.index.json"
ROPE = "rope_theta"
PARAMETERS = "rope_parameters"


def parsers(case: Case) -> Result:
    """Whether the engine's version knows the parsers that the document names."""
    if case.document is None or not case.runs(*NAMED) or case.engine is None:
        return NotApplicable(Reason(DoctorReason.PARSERS_ELSEWHERE))
    here = case.installed.version if case.installed is not None else None
    try:
        registry = registries.load(case.engine.name, here)
    except UsageError:
        unknown = Reason(DoctorReason.PARSERS_UNKNOWN, engine=case.engine.name, version=here)
        return NotApplicable(unknown)
    kinds: tuple[tuple[str, Literal["tool", "reasoning"]], ...] = (
        ("tool_parser", "tool"), ("reasoning_parser", "reasoning"),
    )  # fmt: skip
    known = []
    for key, kind in kinds:
        name = options.parser(case.document, key)
        if name is None or name == PYTHONIC:
            continue
        if not registry.has(kind, name):
            near = ", ".join(registry.near(kind, name)) or "none"
            found = Reason(
                DoctorReason.PARSER_UNKNOWN,
                engine=case.engine.name, version=registry.version, key=key, name=name,
            )  # fmt: skip
            return Trouble(found, Reason(DoctorRemedy.CHANGE_PARSER, key=key, near=near), part=CONFIGURATION)
        known.append(name)
    if not known:
        return NotApplicable(Reason(DoctorReason.PARSERS_UNNAMED))
    return Fine(Reason(DoctorReason.PARSERS, version=registry.version, names=known))


def snapshot(case: Case) -> Result:
    """Whether the model's folder holds all of its weights, each file to its end, and a tokenizer."""
    if case.weights is None:
        return NotApplicable(Reason(DoctorReason.WEIGHTS_AWAY))
    folder = case.weights
    for problem in _broken(folder):
        return Trouble(Reason(DoctorReason.FOLDER, folder=folder, problem=problem), _remedy(folder))
    count = len(weight_files(local.listing(folder)))
    if not count and not any(folder.glob("*.bin")):
        error = EngineError("no-weights", path=folder)
        found = Reason(DoctorReason.NO_WEIGHTS, path=folder)
        return Trouble(found, Reason(DoctorRemedy.IMPORT_WEIGHTS), error=error)
    return Fine(Reason(DoctorReason.WEIGHTS_WHOLE, count=count))


def _remedy(folder: Path) -> Reason:
    if folder.parent.name == "snapshots":
        return Reason(DoctorRemedy.FETCH_SNAPSHOT, folder=folder.parent.parent)
    return Reason(DoctorRemedy.FETCH_AGAIN)


def _broken(folder: Path) -> Iterator[Reason]:
    for path in sorted(folder.iterdir()):
        if path.suffix in READ and path.is_symlink() and not path.exists():
            yield Reason(DoctorReason.LINK_DEAD, file=path.name)
    if not any((folder / name).is_file() for name in CONFIGS):
        yield Reason(DoctorReason.CONFIG_MISSING)
    listed = local.listing(folder)
    if not any(TOKENIZERS.fullmatch(file.path) for file in listed):
        yield Reason(DoctorReason.NO_TOKENIZER)
    there = {file.path for file in listed}
    indexed = _indexed(folder)
    if not there.isdisjoint(indexed):  # an index of which nothing is here was left behind by one whole file
        for name in indexed:
            if name not in there:
                yield Reason(DoctorReason.FILE_MISSING, file=name, index=INDEX)
    for file in weight_files(listed):
        if (problem := _cut(folder / file.path, file.path)) is not None:
            yield problem


def _indexed(folder: Path) -> list[str]:
    """The files that hold weights, by the index; hostile or broken ones name none."""
    try:
        with (folder / INDEX).open("rb") as file:
            data = json.loads(file.read(safetensors.LONGEST))
        return sorted({str(name) for name in data["weight_map"].values()})
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return []


def _cut(path: Path, name: str) -> Reason | None:
    """Why a file of weights is not whole: its header tells where the last tensor ends."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            prefix = file.read(max(safetensors.PREFIX, len(POINTER)))
            if prefix.startswith(POINTER):
                return Reason(DoctorReason.FILE_POINTER, file=name)
            length = safetensors.length(prefix, size)
            file.seek(safetensors.PREFIX)
            header = json.loads(file.read(length))
        ends = [entry["data_offsets"][1] for key, entry in header.items() if key != "__metadata__"]
        wanted = safetensors.PREFIX + length + max(ends, default=0)
    except safetensors.Malformed as error:
        return Reason(DoctorReason.FILE_BROKEN, file=name, problem=error)
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError):
        return Reason(DoctorReason.FILE_HEADER_BROKEN, file=name)
    except OSError as error:
        return Reason(DoctorReason.FILE_UNREADABLE, file=name, problem=error.strerror)
    if not isinstance(wanted, int) or size >= wanted:
        return None
    return Reason(DoctorReason.FILE_CUT, file=name, size=size, wanted=wanted)


def rope(case: Case) -> Result:
    """Whether the engine's class for the model looks for ``rope_theta`` where the config has it."""
    config = case.config()
    nested = config.get("text_config")
    inside = isinstance(nested, dict) and not {ROPE, PARAMETERS}.isdisjoint(nested)
    section = nested if isinstance(nested, dict) and inside else config
    inner = section.get(PARAMETERS)
    value = inner.get(ROPE) if isinstance(inner, dict) else None
    if section.get(ROPE) is not None or not isinstance(value, int | float):
        return NotApplicable(Reason(DoctorReason.ROPE_FINE, key=ROPE))
    read = _reading(case, str(config.get("model_type")))
    if read is None:
        return NotApplicable(Reason(DoctorReason.ROPE_READ))
    module, default = read
    if default == value:
        return Fine(Reason(DoctorReason.ROPE_ASSUMED, module=module, default=default))
    place = "text_config" if inside else "the top"
    remedy = Reason(DoctorRemedy.WRITE_ROPE, key=ROPE, value=value, place=place)
    if default is None:
        required = Reason(DoctorReason.ROPE_REQUIRED, key=ROPE, place=PARAMETERS, module=module)
        return Trouble(required, remedy, part=ENGINE)
    wrong = Reason(
        DoctorReason.ROPE_WRONG, key=ROPE, place=PARAMETERS, module=module, default=default, value=value
    )
    return Trouble(wrong, remedy, TroubleSeverity.WARNING, ENGINE)


def _reading(case: Case, kind: str) -> tuple[str, float | None] | None:
    """The module whose class needs the value at the top, and its default; nothing where it looks further."""
    if not kind.isidentifier():
        return None
    modules = {"mlx-vlm": ("mlx_vlm",), "vllm-mlx": ("mlx_lm", "mlx_vlm"), "mlx": ("mlx_lm",)}
    for module in modules.get(case.engine.name, ()) if case.engine is not None else ():
        for pattern in (f"{module}/models/{kind}/config.py", f"{module}/models/{kind}.py"):
            for file in case.files(pattern):
                text = text_of(file)
                found = None if PARAMETERS in text else _default(text)
                return None if found is None else (f"{module}.models.{kind}", found[0])
    return None


def _default(text: str) -> tuple[float | None] | None:
    """What a configuration class says of the value: a number, or that it must be given."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return None
    classes = [node for node in tree.body if isinstance(node, ast.ClassDef)]
    for name in ("TextConfig", "ModelConfig", "ModelArgs"):
        for made in (node for node in classes if node.name == name):
            for line in made.body:
                if isinstance(line, ast.AnnAssign) and ast.unparse(line.target) == ROPE:
                    if line.value is None:
                        return (None,)
                    given = line.value.value if isinstance(line.value, ast.Constant) else None
                    return (float(given),) if isinstance(given, int | float) else None
    return None
