"""Checks of a document and its model's folder against the engine at hand."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from importer.document import options
from importer.engines import registries
from importer.engines.doctor.case import VLLM, Case, text_of
from importer.engines.doctor.result import Fine, NotApplicable, Result, Trouble
from importer.errors import EngineError, UsageError
from importer.hub import local, safetensors
from importer.hub.weights import TOKENIZERS, weight_files
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
        return NotApplicable("only vLLM and vllm-mlx are started with the names of parsers")
    here = case.installed.version if case.installed is not None else None
    try:
        registry = registries.load(case.engine.name, here)
    except UsageError:
        return NotApplicable(f"the parsers of {case.engine.name} {here} are not known here")
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
            says = f"{case.engine.name} {registry.version} has no {key} named {name!r}"
            remedy = f"Change {key} in the document's options. Near names: {near}."
            return Trouble(says, remedy, part="configuration")
        known.append(name)
    return (
        Fine(f"{registry.version} knows {', '.join(known)}") if known else NotApplicable("it names no parser")
    )


def snapshot(case: Case) -> Result:
    """Whether the model's folder holds all of its weights, each file to its end, and a tokenizer."""
    if case.weights is None:
        return NotApplicable("the weights are not on this disk")
    folder = case.weights
    for problem in _broken(folder):
        return Trouble(f"{folder}: {problem}", _remedy(folder))
    count = len(weight_files(local.listing(folder)))
    if not count and not any(folder.glob("*.bin")):
        return Trouble.of(EngineError("no-weights", path=folder))
    return Fine(f"{count} file{'s' if count != 1 else ''} of weights, each whole")


def _remedy(folder: Path) -> str:
    if folder.parent.name == "snapshots":
        return f"Remove {folder.parent.parent} and run again with --fetch."
    return "Fetch the files again; after git clone, run 'git lfs pull'."


def _broken(folder: Path) -> Iterator[str]:
    for path in sorted(folder.iterdir()):
        if path.suffix in READ and path.is_symlink() and not path.exists():
            yield f"{path.name} is a link to a file that is gone"
    if not any((folder / name).is_file() for name in CONFIGS):
        yield "config.json is missing"
    listed = local.listing(folder)
    if not any(TOKENIZERS.fullmatch(file.path) for file in listed):
        yield "there is no tokenizer"
    there = {file.path for file in listed}
    indexed = _indexed(folder)
    if not there.isdisjoint(indexed):  # an index of which nothing is here was left behind by one whole file
        yield from (f"{name} is missing, which {INDEX} names" for name in indexed if name not in there)
    for file in weight_files(listed):
        problem = _cut(folder / file.path)
        if problem is not None:
            yield f"{file.path} {problem}"


def _indexed(folder: Path) -> list[str]:
    """The files that hold weights, by the index; hostile or broken ones name none."""
    try:
        with (folder / INDEX).open("rb") as file:
            data = json.loads(file.read(safetensors.LONGEST))
        return sorted({str(name) for name in data["weight_map"].values()})
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return []


def _cut(path: Path) -> str | None:
    """Why a file of weights is not whole: its header tells where the last tensor ends."""
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            prefix = file.read(max(safetensors.PREFIX, len(POINTER)))
            if prefix.startswith(POINTER):
                return "is a pointer of git-lfs and not the file"
            length = safetensors.length(prefix, size)
            file.seek(safetensors.PREFIX)
            header = json.loads(file.read(length))
        ends = [entry["data_offsets"][1] for name, entry in header.items() if name != "__metadata__"]
        wanted = safetensors.PREFIX + length + max(ends, default=0)
    except safetensors.Malformed as error:
        return f"is cut or broken: {error}"
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError):
        return "is cut or broken: its header is not what safetensors have"
    except OSError as error:
        return f"cannot be read ({error.strerror})"
    cut = isinstance(wanted, int) and size < wanted
    return f"is cut: it has {size:,} bytes of {wanted:,}" if cut else None


def rope(case: Case) -> Result:
    """Whether the engine's class for the model looks for ``rope_theta`` where the config has it."""
    config = case.config()
    nested = config.get("text_config")
    inside = isinstance(nested, dict) and not {ROPE, PARAMETERS}.isdisjoint(nested)
    section = nested if isinstance(nested, dict) and inside else config
    inner = section.get(PARAMETERS)
    value = inner.get(ROPE) if isinstance(inner, dict) else None
    if section.get(ROPE) is not None or not isinstance(value, int | float):
        return NotApplicable(f"config.json has {ROPE} where every engine looks, or none at all")
    read = _reading(case, str(config.get("model_type")))
    if read is None:
        return NotApplicable("the engine's class for this model reads it, or is not known")
    file, default = read
    says = f"config.json has {ROPE} under {PARAMETERS} only, which {file} does not read"
    place = "text_config" if inside else "the top"
    write = f'Write "{ROPE}": {value:g} at {place} of config.json'
    remedy = f"{write} in a copy of the model, or use another engine."
    if default is None:
        return Trouble(f"{says}: it would end with an error", remedy, part="engine")
    if default == value:
        return Fine(f"{file} assumes {default:g}, which is right")
    says += f": it would take {default:g} for {value:g}, and long answers would go wrong"
    return Trouble(says, remedy, stops=False, part="engine")


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
