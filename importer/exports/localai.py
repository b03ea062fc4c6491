"""A model's YAML for LocalAI, with the values that its loader and backends read differently from the
engines.

Read in LocalAI at 82c191a (2026-08-22): core/config, core/backend, backend/python/{vllm,mlx,mlx-vlm}.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from importer.document import argument_check, environment, schema, template_file
from importer.document.check import AUTO, CONTEXT, LIMITS, MODALITIES
from importer.document.document import Document, Parameters, document_of
from importer.document.document_keys import OPTIONS, parse, parser, write
from importer.document.engine_arguments import version_of
from importer.document.receipt import Receipt
from importer.engines import registries
from importer.engines.base import Address
from importer.engines.mlx import Mlx
from importer.engines.mlx_vlm import MlxVlm
from importer.engines.vllm import VllmCuda
from importer.errors import DocumentError
from importer.exports.base import Exported, Options, Origin, need_backend, need_named_parser, refused
from importer.exports.kinds import ExportRemedy, Loss, Unexportable
from importer.exports.texts import yaml_text
from importer.reasons import Reason

GREEDY = 0.01  # the lowest temperature that vLLM keeps; LocalAI's backends take 0 for unset
# Defaults of the engines; LocalAI would use the values of its own table, or those of llama.cpp.
UNSAID: dict[str, Parameters] = {
    "vllm": {"temperature": 1.0, "top_p": 1.0, "top_k": 0, "min_p": 0.0},
    "mlx": {"temperature": GREEDY, "top_p": 1.0, "top_k": 0, "min_p": 0.0},
    "mlx-vlm": {"temperature": GREEDY, "top_p": 1.0, "top_k": 0, "min_p": 0.0},
}
PENALTIES = ("repeat_penalty", "presence_penalty")  # LocalAI takes 0 for unset and uses its own table
THINKING = "enable_thinking"
ANSWER = 200  # default limit of an answer in LocalAI's backends, in tokens

# A step changes the data in place and returns the losses.
Step = Callable[[Document], list[Reason]]


def export(document: Document, receipt: Receipt | None, _options: Options) -> Exported:
    """Return the model's YAML without the block ``importer``; comments have the differences of LocalAI."""
    origin, data, lost = model(document, receipt)
    return Exported({f"{origin.name}.yaml": yaml_text(data, [*origin.comments(), *lost])}, tuple(lost))


def model(document: Document, receipt: Receipt | None) -> tuple[Origin, Document, list[Reason]]:
    """Return origin and data for LocalAI, and all differences there.

    Raises DocumentError: "cannot-export", and "invalid" for values that the adapters of importer reject too.
    """
    need_backend(document, *UNSAID)
    need_named_parser(document)
    origin, backend = Origin.of(document, receipt), str(document["backend"])
    if origin.hub_id is None:  # LocalAI looks only into its own folder of models
        raise refused(document, Reason(Unexportable.DIRECTORY), Reason(ExportRemedy.IMPORT_FROM_HUB))
    document, toolless = _own_template(document)
    _startable(document, backend)
    data = document_of({k: _copied(v) for k, v in document.items() if k not in ("importer", "artifacts")})
    steps: list[Step] = [_sampling, _thinking, _flags, _variables]
    steps += (
        [_vllm_options, _vllm_engine, _pinned(origin)] if backend == "vllm" else [_mlx, _unpinned(origin)]
    )
    lost = [loss for step in steps for loss in step(data)]
    data, dropped = _fitting(data)
    return origin, data, [*toolless, *lost, *_stops(document), *dropped]


def losses(document: Document, receipt: Receipt | None) -> list[Reason] | None:
    """Return what LocalAI would drop, change, add or not pin; ``None`` where there is no entry for it."""
    try:
        return model(document, receipt)[2]
    except DocumentError:
        return None


def _own_template(document: Document) -> tuple[Document, list[Reason]]:
    """Return the document without a template of its own: LocalAI uses only that of the model, without
    tools.
    """
    if not template_file.named(document):
        return document, []
    options = [o for o in document.get("options") or () if parse(o).key != "tool_parser"]
    block = document["importer"].copy()
    del block[template_file.KEY]
    return {**document, "options": options, "importer": block}, [Reason(Loss.TEMPLATE)]


def _startable(document: Document, backend: str) -> None:
    """Raise DocumentError("invalid") for values that are no words, numbers or known options of the engine."""
    if backend == "vllm":
        VllmCuda().settings(document)
    else:
        (Mlx() if backend == "mlx" else MlxVlm()).settings(document, "", Address())


def _copied(value: Any) -> Any:
    """Return a copy without shared parts: aliases of YAML share them, and a step must change one place
    only.
    """
    if isinstance(value, dict):
        return {k: _copied(v) for k, v in value.items()}
    return [_copied(v) for v in value] if isinstance(value, list) else value


def _sampling(data: Document) -> list[Reason]:
    """Write every sampling value, none of them zero where LocalAI reads zero as unset; return the losses."""
    parameters, lost = data["parameters"], []
    added = {k: value for k, value in UNSAID[str(data["backend"])].items() if parameters.get(k) is None}
    if added:
        parameters = data["parameters"] = cast("Parameters", {**parameters, **added})
        lost.append(Reason(Loss.ADDED, values=[f"{key} {value}" for key, value in added.items()]))
    if parameters["temperature"] == 0:
        parameters["temperature"] = GREEDY
        lost.append(Reason(Loss.GREEDY, value=GREEDY))
    if parameters.get("max_tokens") is None:
        if not isinstance(limit := data.get("max_model_len"), int):
            lost.append(Reason(Loss.MAXIMUM, tokens=ANSWER))
        else:
            parameters["max_tokens"] = limit
            lost.append(Reason(Loss.CONTEXT_AS_MAXIMUM, tokens=ANSWER))
    if parameters.get("seed") == 0:
        lost.append(Reason(Loss.SEED))
    table = [key for key in PENALTIES if not parameters.get(key)]
    if table:
        lost.append(Reason(Loss.PENALTIES, keys=table))
    return lost


def _thinking(data: Document) -> list[Reason]:
    """Write the switch for thinking: the Python backends pass this variable only, and only where it is
    true.
    """
    variables = data.get("chat_template_kwargs") or {}
    lost = [Reason(Loss.VARIABLE, key=key) for key in variables if key != THINKING]
    if isinstance(variables.get(THINKING), bool):
        reasoning = data.get("reasoning") or {}
        data["reasoning"] = {**reasoning, "disable": reasoning.get("disable", not variables[THINKING])}
        if not variables[THINKING]:
            lost.append(Reason(Loss.THINKING_OFF, key=THINKING))
    return lost


def _flags(data: Document) -> list[Reason]:
    """Remove options that begin like a flag."""
    options = [o for o in data.get("options") or () if not o.lstrip().startswith("-")]
    dropped = [o for o in data.get("options") or () if o not in options]
    if "options" in data:
        data["options"] = options
    return [Reason(Loss.FLAG, option=option) for option in dropped]


def _vllm_options(data: Document) -> list[Reason]:
    """Write parsers, with an empty name for none: it keeps LocalAI's own table from adding one."""
    named = {key: parser(data, key) for key in OPTIONS}
    others = [o for o in data.get("options") or () if parse(o).key not in OPTIONS]
    data["options"] = [write(key, name or "") for key, name in named.items()] + others
    return [s for key, name in named.items() if name for s in _versions(key, name)]


def _versions(key: str, name: str) -> list[Reason]:
    """Return the versions of vLLM without this parser: LocalAI brings a vLLM of its own, and only logs
    the lack.
    """
    known = registries.versions("vllm")
    lacking = [v for v in known if not registries.load("vllm", v).has(registries.KINDS[key], name)]
    return [Reason(Loss.PARSER_VERSIONS, key=key, name=name, versions=lacking)] if lacking else []


def _vllm_engine(data: Document) -> list[Reason]:
    """Write limits to the keys that the backend reads; return the losses."""
    lost = []
    if data.get("max_model_len") is None and data.get("context_size") is not None:
        data["max_model_len"] = data["context_size"]  # context_size never reaches vLLM
    if data.get(CONTEXT) == AUTO:
        del data[CONTEXT]
        lost.append(Reason(Loss.AUTO_CONTEXT))
    arguments = {**(data.get("engine_args") or {})}
    for key in [k for k in arguments if _of_server(data, k)]:  # LocalAI fails on them
        del arguments[key]
        lost.append(Reason(Loss.ARGUMENT_OF_SERVER, key=key))
    limits = data.get("limit_mm_per_prompt") or {}
    if 0 in limits.values() or {*limits} - {*MODALITIES}:
        arguments[LIMITS] = limits  # under its own key, LocalAI makes 1 of a 0
    if any(isinstance(one, dict) for one in limits.values()):
        arguments[LIMITS] = data.pop(LIMITS)  # there a number alone is valid
    if arguments or data.get("engine_args"):
        data["engine_args"] = arguments
    if data["parameters"].get("repeat_penalty") not in (None, 1):
        lost.append(Reason(Loss.REPEAT_PENALTY))
    return lost


def _of_server(data: Document, key: str) -> bool:
    """Return whether an argument is of vLLM's server, not of its engine."""
    argument = argument_check.known("vllm", version_of(data), key)
    return argument is not None and argument.server


def _variables(data: Document) -> list[Reason]:
    """Remove the variables: a model's YAML has no place for them in LocalAI."""
    return [
        Reason(Loss.ENVIRONMENT, key=key) for key in environment.variables_of({"env": data.pop("env", None)})
    ]


def _stops(document: Document) -> list[Reason]:
    """Return the loss of stop words that are end tokens: vLLM needs a file for them, and LocalAI passes
    none.
    """
    if document["backend"] == "vllm" and VllmCuda().files(document):
        return [Reason(Loss.STOPS)]
    return []


def _mlx(data: Document) -> list[Reason]:
    """Move the repetition penalty to the options, and drop ``engine_args``: the MLX backends read none."""
    lost = []
    parameters = data["parameters"]
    parameters["top_k"] = max(0, parameters["top_k"] or 0)
    if parameters.get("repeat_penalty") not in (None, 1):
        data["options"] = [
            *(data.get("options") or ()),
            write("repetition_penalty", parameters["repeat_penalty"]),
        ]
    arguments = data.pop("engine_args", None)
    if arguments:
        lost.append(Reason(Loss.ARGUMENTS, keys=[*arguments], backend=data["backend"]))
    if data["backend"] == "mlx-vlm" and data.get("trust_remote_code"):
        lost.append(Reason(Loss.REMOTE_CODE))
    return lost


def _pinned(origin: Origin) -> Step:
    """Return the step that writes the commit as an artifact, fetched by LocalAI before the start of the
    backend.
    """

    def step(data: Document) -> list[Reason]:
        if origin.revision is not None:
            source = {"type": "huggingface", "repo": origin.hub_id, "revision": origin.revision}
            data["artifacts"] = [{"name": "model", "target": "model", "source": source}]
        return []

    return step


def _unpinned(origin: Origin) -> Step:
    """Return the step that reports the loss of the commit: the MLX backends fetch the newest one."""

    def step(data: Document) -> list[Reason]:
        if origin.revision is None:
            return []
        return [Reason(Loss.COMMIT, backend=data["backend"])]

    return step


def _fitting(data: Document) -> tuple[Document, list[Reason]]:
    """Return the data without values that the types of LocalAI cannot hold, and the losses."""
    dropped, parameters = list[Reason](), dict[str, object](data["parameters"])
    kept: dict[str, object] = {**data, "parameters": parameters}
    for fault in list(schema.faults("localai-model", data)):
        path = [str(step) for step in fault.path]
        *place, key = path[: 2 if path[0] == "parameters" else 1]
        if (parameters if place else kept).pop(key, None) is not None:
            dropped.append(Reason(Loss.VALUE, key=".".join(path), problem=fault.message))
    return document_of(kept), dropped
