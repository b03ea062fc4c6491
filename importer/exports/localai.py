"""A model's YAML for LocalAI, whose loader and backends read some values otherwise than the engines do.

Read in LocalAI at 82c191a (2026-08-22): core/config, core/backend, backend/python/{vllm,mlx,mlx-vlm}.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from importer.config_file import schema, template_file
from importer.config_file.field_paths import OPTIONS, parse, parser, write
from importer.config_file.receipt import Receipt
from importer.engines import registries
from importer.engines.base import Address, Document
from importer.engines.mlx import Mlx
from importer.engines.mlx_vlm import MlxVlm
from importer.engines.vllm import VllmCuda
from importer.engines.vllm_arguments import with_flags
from importer.exports.base import (
    Exported,
    ExportRefused,
    ExportRemedy,
    Loss,
    Options,
    Origin,
    Unexportable,
    yaml_text,
)
from importer.reasons import Reason

GREEDY = 0.01  # the lowest temperature that vLLM keeps; LocalAI's backends take 0 for unset
# What the engines do where nothing is said; LocalAI would take its own table's values, or llama.cpp's.
UNSAID: dict[str, dict[str, Any]] = {
    "vllm": {"temperature": 1.0, "top_p": 1.0, "top_k": 0, "min_p": 0.0},
    "mlx": {"temperature": GREEDY, "top_p": 1.0, "top_k": 0, "min_p": 0.0},
    "mlx-vlm": {"temperature": GREEDY, "top_p": 1.0, "top_k": 0, "min_p": 0.0},
}
SERVERS = ("tool_strict_level",)  # engine_args of vLLM's server, not of its engine: LocalAI fails on them
PENALTIES = ("repeat_penalty", "presence_penalty")  # LocalAI takes 0 for unset and asks its own table
MODALITIES = {"image", "video", "audio"}
THINKING = "enable_thinking"
ANSWER = 200  # tokens after which LocalAI's backends end an answer, unless told

# A step changes the data in place and gives what it could not carry over.
Step = Callable[[dict[str, Any]], list[Reason]]


def export(document: Document, receipt: Receipt | None, _options: Options) -> Exported | ExportRefused:
    """Return the model's YAML without our block; comments say what LocalAI will do otherwise."""
    found = model(document, receipt)
    if isinstance(found, ExportRefused):
        return found
    origin, data, lost = found
    return Exported({f"{origin.name}.yaml": yaml_text(data, [*origin.comments(), *lost])}, tuple(lost))


def model(
    document: Document, receipt: Receipt | None
) -> tuple[Origin, dict[str, Any], list[Reason]] | ExportRefused:
    """Return the data as LocalAI must be given it, and all that it will do otherwise.

    Raises DocumentError("invalid") for what our own adapter would not start either.
    """
    backend = document["backend"]
    if backend not in UNSAID:
        remedy = Reason(ExportRemedy.IMPORT_FOR, backends=["vllm", "mlx"])
        return ExportRefused(Reason(Unexportable.LOCALAI_BACKEND, backend=backend), remedy)
    origin = Origin.of(document, receipt)
    if origin.hub_id is None:
        remedy = Reason(ExportRemedy.IMPORT_FROM_HUB)
        return ExportRefused(Reason(Unexportable.LOCALAI_DIRECTORY), remedy)
    document, toolless = _own_template(document)
    document = with_flags(document) if backend == "vllm" else document
    _startable(document, backend)
    data = {k: _copied(v) for k, v in document.items() if k not in ("importer", "artifacts")}
    steps: list[Step] = [_sampling, _thinking, _flags]
    steps += (
        [_vllm_options, _vllm_engine, _pinned(origin)] if backend == "vllm" else [_mlx, _unpinned(origin)]
    )
    lost = [loss for step in steps for loss in step(data)]
    return origin, data, [*toolless, *lost, *_stops(document), *_fitting(data)]


def _own_template(document: Document) -> tuple[Document, list[Reason]]:
    """Return the document without a template of its own: LocalAI knows none but the model's, which has no
    tools.
    """
    if not template_file.named(document):
        return document, []
    kept = [o for o in document.get("options") or () if parse(o).key != "tool_parser"]
    block = {k: v for k, v in document["importer"].items() if k != template_file.KEY}
    return {**document, "options": kept, "importer": block}, [Reason(Loss.TEMPLATE)]


def _startable(document: Document, backend: str) -> None:
    """Values that are no words, numbers or known options reach no engine through LocalAI either."""
    if backend == "vllm":
        VllmCuda().settings(document)
    else:
        (Mlx() if backend == "mlx" else MlxVlm()).settings(document, "", Address())


def _copied(value: Any) -> Any:
    """Return a copy without shared parts: YAML's aliases share them, and a step must change one place
    only.
    """
    if isinstance(value, dict):
        return {k: _copied(v) for k, v in value.items()}
    return [_copied(v) for v in value] if isinstance(value, list) else value


def _sampling(data: dict[str, Any]) -> list[Reason]:
    """Return every value said, none of them zero where zero would mean unset."""
    parameters, lost = data["parameters"], []
    for key, value in UNSAID[data["backend"]].items():
        if parameters.get(key) is None:
            parameters[key] = value
    if parameters["temperature"] == 0:
        parameters["temperature"] = GREEDY
        lost.append(Reason(Loss.GREEDY, value=GREEDY))
    if parameters.get("max_tokens") is None:
        if data.get("max_model_len") is None:
            lost.append(Reason(Loss.MAXIMUM, tokens=ANSWER))
        else:
            parameters["max_tokens"] = data["max_model_len"]
            lost.append(Reason(Loss.CONTEXT_AS_MAXIMUM, tokens=ANSWER))
    if parameters.get("seed") == 0:
        lost.append(Reason(Loss.SEED))
    table = [key for key in PENALTIES if not parameters.get(key)]
    if table:
        lost.append(Reason(Loss.PENALTIES, keys=table))
    return lost


def _thinking(data: dict[str, Any]) -> list[Reason]:
    """Return its Python backends pass one variable to the template, and only where it is true."""
    variables = data.get("chat_template_kwargs") or {}
    lost = [Reason(Loss.VARIABLE, key=key) for key in variables if key != THINKING]
    if isinstance(variables.get(THINKING), bool):
        data.setdefault("reasoning", {}).setdefault("disable", not variables[THINKING])
        if not variables[THINKING]:
            lost.append(Reason(Loss.THINKING_OFF, key=THINKING))
    return lost


def _flags(data: dict[str, Any]) -> list[Reason]:
    """Return what else begins like a flag: those that may be set are ``engine_args`` by now."""
    kept = [o for o in data.get("options") or () if not o.lstrip().startswith("-")]
    dropped = [o for o in data.get("options") or () if o not in kept]
    if "options" in data:
        data["options"] = kept
    return [Reason(Loss.FLAG, option=option) for option in dropped]


def _vllm_options(data: dict[str, Any]) -> list[Reason]:
    """Return parsers: an empty name keeps LocalAI's own table from adding one to a model that has none."""
    named = {key: parser(data, key) for key in OPTIONS}
    kept = [o for o in data.get("options") or () if parse(o).key not in OPTIONS]
    data["options"] = [write(key, name or "") for key, name in named.items()] + kept
    return [s for key, name in named.items() if name for s in _versions(key, name)]


def _versions(key: str, name: str) -> list[Reason]:
    """LocalAI brings a vLLM of its own, and only logs it where that has no parser of this name."""
    kind: registries.Kind = "tool" if key == "tool_parser" else "reasoning"
    known = registries.versions("vllm")
    lacking = [v for v in known if not registries.load("vllm", v).has(kind, name)]
    return [Reason(Loss.PARSER_VERSIONS, key=key, name=name, versions=lacking)] if lacking else []


def _vllm_engine(data: dict[str, Any]) -> list[Reason]:
    """Limits where its backend looks for them."""
    lost = []
    if data.get("max_model_len") is None and data.get("context_size") is not None:
        data["max_model_len"] = data["context_size"]  # context_size never reaches vLLM
    arguments = data.get("engine_args") or {}
    for key in [k for k in SERVERS if k in arguments]:
        del arguments[key]
        lost.append(Reason(Loss.ARGUMENT_OF_SERVER, key=key))
    limits = data.get("limit_mm_per_prompt") or {}
    if 0 in limits.values() or set(limits) - MODALITIES:
        arguments["limit_mm_per_prompt"] = limits  # under its own key, LocalAI makes 1 of a 0
    if arguments:
        data["engine_args"] = arguments
    if data["parameters"].get("repeat_penalty") not in (None, 1):
        lost.append(Reason(Loss.REPEAT_PENALTY))
    return lost


def _stops(document: Document) -> list[Reason]:
    """Stop words that are end tokens: vLLM needs a file for them, which LocalAI does not hand on."""
    if document["backend"] == "vllm" and VllmCuda().files(document):
        return [Reason(Loss.STOPS)]
    return []


def _mlx(data: dict[str, Any]) -> list[Reason]:
    """Return its MLX backends read no engine_args, and a repetition penalty only among the options."""
    lost = []
    parameters = data["parameters"]
    parameters["top_k"] = max(0, parameters["top_k"])
    if parameters.get("repeat_penalty") not in (None, 1):
        data["options"] = [
            *data.get("options", ()),
            write("repetition_penalty", parameters["repeat_penalty"]),
        ]
    arguments = data.pop("engine_args", None)
    if arguments:
        lost.append(Reason(Loss.ARGUMENTS, keys=[*arguments], backend=data["backend"]))
    if data["backend"] == "mlx-vlm" and data.get("trust_remote_code"):
        lost.append(Reason(Loss.REMOTE_CODE))
    return lost


def _pinned(origin: Origin) -> Step:
    """Return the commit, as an artifact that LocalAI fetches before it starts the backend."""

    def step(data: dict[str, Any]) -> list[Reason]:
        if origin.revision is not None:
            source = {"type": "huggingface", "repo": origin.hub_id, "revision": origin.revision}
            data["artifacts"] = [{"name": "model", "target": "model", "source": source}]
        return []

    return step


def _unpinned(origin: Origin) -> Step:
    """Mlx is handed the id itself and fetches what is newest."""

    def step(data: dict[str, Any]) -> list[Reason]:
        if origin.revision is None:
            return []
        return [Reason(Loss.COMMIT, backend=data["backend"])]

    return step


def _fitting(data: dict[str, Any]) -> list[Reason]:
    """Take out what LocalAI's types cannot hold, and say so."""
    dropped = []
    for fault in list(schema.faults("localai-model", data)):
        path = [str(step) for step in fault.path]
        *place, key = path[: 2 if path[0] == "parameters" else 1]
        if (data["parameters"] if place else data).pop(key, None) is not None:
            dropped.append(Reason(Loss.VALUE, key=".".join(path), problem=fault.message))
    return dropped
