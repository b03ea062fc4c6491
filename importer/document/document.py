"""The data of a document, with its keys and their types as ``document.schema.json`` has them.

LocalAI's keys that importer does not read are left out: no code can read one by its name.
Annotations here are values, not texts: a TypedDict would compile each text on every start.

The records in a receipt, with their keys and types as ``receipt.schema.json`` has them.

No key is certain: a file on disk may be damaged.
"""

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, TypedDict, cast

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


class Overruled(TypedDict, total=False):
    """A value that lost against the decision."""

    value: Any
    source: str
    why: str


class DecisionRecord(TypedDict, total=False):
    """A decision with its reasons."""

    value: Any
    status: str
    why: Sequence[str]
    overruled: Sequence[Overruled]
    reasons: Sequence[Settings]


class ProofVerdict(TypedDict):
    """What a proof found of one parser; ``lost`` is the first needed case that failed, with the problem."""

    parser: str
    passed: Sequence[str]
    failed: Mapping[str, str]
    lost: str | None


class Fact(TypedDict, total=False):
    """A piece of evidence."""

    rule: str
    key: str
    value: Any
    source: str
    message: str
    quote: str


class ReviewRecord(TypedDict, total=False):
    """What a person said about the data with that digest."""

    state: str
    by: str | None
    at: str | None
    digest: str | None
    note: str | None


class Approved(ReviewRecord, total=False):
    """The last approval, with the data that it is for."""

    data: Document


class Remark(TypedDict):
    """A comment of importer at a person's value."""

    path: Sequence[str | int]
    text: str


class OutcomeRecord(TypedDict, total=False):
    """What a probe found."""

    probe: str
    outcome: str
    reason: str
    attribution: str | None
    remedy_message: str
    cause: Settings
    remedy: Settings | None
    trials: int
    agreed: int
    interval: Sequence[float] | None
    seconds: float
    lesson: str
    log: str
    exchanges: Sequence[Settings]
    package: str
    tried: Settings | None
    ability: str


class AbilityRecord(TypedDict):
    """How often the model did what was asked."""

    shown: int
    asked: int
    interval: Sequence[float] | None


class FormRecord(TypedDict):
    """A form of calls that was tried on the model, as ``CallForm.to_json`` returns it."""

    parser: str | None
    right: int
    asked: int
    template: str
    digest: str
    choice: str
    spelling: Mapping[str, str]


class Carried(TypedDict):
    """The earlier commit that was run."""

    revision: str
    digest: str


class Partial(TypedDict, total=False):
    """What a partial run asked: the probes, the address of a server that runs elsewhere, its model's name."""

    probes: Sequence[str]
    against: str | None
    model: str


class Report(TypedDict, total=False):
    """The report of a validation."""

    digest: str
    passed: bool
    carried: Carried
    partial: Partial
    fit: Mapping[str, Mapping[str, float]] | None
    weights: Mapping[str, str]
    likelihood: Settings
    run: Settings
    engine: Engine
    remote: Mapping[str, str]
    started: str
    seconds: Mapping[str, float]
    speed: Settings
    outcomes: Sequence[OutcomeRecord]
    contract: str
    health: str
    abilities: Mapping[str, AbilityRecord]
    observed: Sequence[FormRecord]
