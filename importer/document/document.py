"""The data of a document, with its keys and their types as ``document.schema.json`` has them.

LocalAI's keys that importer does not read are left out: no code can read one by its name.
Annotations here are values, not texts: a TypedDict would compile each text on every start.
"""

from collections.abc import Mapping, Sequence
from typing import TypeAlias, TypedDict, cast

from importer.decisions.decision import Frontend

Setting: TypeAlias = "bool | int | float | str | Sequence[Setting] | Mapping[str, Setting] | None"
Settings: TypeAlias = Mapping[str, Setting]


class Parameters(TypedDict, total=False):
    """The model and the sampling that a client may override."""

    model: str
    temperature: float | None
    top_p: float | None
    top_k: int | None
    min_p: float | None
    repeat_penalty: float | None
    presence_penalty: float | None
    frequency_penalty: float | None
    max_tokens: int | None
    seed: int | None
    n: int | None


class Template(TypedDict, total=False):
    """How LocalAI makes a prompt."""

    use_tokenizer_template: bool


class Engine(TypedDict, total=False):
    """The engine that the import decided for."""

    name: str
    version: str
    frontend: Frontend


class NamedTemplate(TypedDict):
    """The chat template that stands beside the document."""

    name: str
    file: str
    sha256: str


class Block(TypedDict, total=False):
    """The facts that importer adds for itself; LocalAI ignores them."""

    schema: int
    reference: str
    model_id: str
    revision: str
    kind: str
    family: str
    license: str
    quantization: str
    quantization_scheme: str
    outputs: Settings
    modalities: Sequence[str]
    no_parser: Mapping[str, str]
    engine: Engine
    end_tokens: Mapping[str, str | None]
    sampling_modes: Mapping[str, Mapping[str, float]]
    unset: Sequence[str]
    chat_template: NamedTemplate
    response_template: Settings
    client_sampling: Settings
    streaming: Settings


class Document(TypedDict, total=False):
    """The YAML that an import writes and a person reviews."""

    name: str
    description: str | None
    backend: str | None
    known_usecases: Sequence[str] | None
    parameters: Parameters
    template: Template | None
    options: Sequence[str] | None
    context_size: int | None
    max_model_len: int | str | None
    dtype: str | None
    quantization: str | None
    load_format: str | None
    gpu_memory_utilization: float | None
    trust_remote_code: bool | None
    enforce_eager: bool | None
    tensor_parallel_size: int | None
    disable_log_stats: bool | None
    limit_mm_per_prompt: Settings | None
    engine_args: Settings | None
    env: Settings | None
    chat_template_kwargs: Settings | None
    stopwords: Sequence[str] | None
    system_prompt: str | None
    reasoning: Settings | None
    reasoning_effort: str | None
    function: Settings | None
    artifacts: Sequence[Settings] | None
    draft_model: str | None
    n_draft: int | None
    lora_adapter: str | None
    type: str | None
    mmproj: str | None
    embeddings: bool | None
    threads: int | None
    f16: bool | None
    importer: Block


def document_of(data: Mapping[str, object]) -> Document:
    """Return data of a document's shape as a document: from YAML, or changed data of a document."""
    return cast("Document", data)
