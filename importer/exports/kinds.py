"""The kinds of reasons in exports: why there is none, what helps, what a consumer lacks, and comments."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from importer.reasons import Fields, Reason, ReasonKind
from importer.sentences import render


class Unexportable(ReasonKind):
    """Why a document has no such export."""

    DIRECTORY = "its model is a directory of one machine"
    FRONTEND = "it is written for vLLM's Rust frontend, and {consumer} has a frontend of its own"
    NO_FEATURE = "{consumer} has no feature for {uses:and}"
    OTHER_BACKEND = "it is written for {backend}, and this consumer starts {engines:or}"
    PARSER_IS_DATA = (
        "its parser is a response template, which this consumer reads from the model's {file} alone"
    )
    TEMPLATE_IS_FILE = "its chat template is a file, and this consumer takes none"


class ExportRemedy(ReasonKind):
    """The change that makes an export possible."""

    IMPORT_A_COPY = "Put importer.response_template into {file} of a copy of the model, and import the copy."
    IMPORT_FOR = "Import the model again for {backends:or}."
    OTHER_FORMAT = "Export it as kubernetes: a Deployment serves every kind of model."
    IMPORT_FROM_HUB = "Import the model from the Hub."
    PYTHON_FRONTEND = "Import the model again for vLLM's Python frontend."
    SERVE_A_COPY = "Put the template into a copy of that folder as {file}, and serve the copy."
    WITHOUT_TEMPLATE = "Serve it another way, or import the model again without the template."


class LossEffect(StrEnum):
    """What a consumer makes of a part of a document."""

    ADDED = "added"
    CHANGED = "changed"
    DROPPED = "dropped"
    NOT_PINNED = "not-pinned"


class Loss(ReasonKind):
    """A part of a document that a consumer lacks or changes, or that the export adds."""

    ADDED = "{values} is added: what the engine does by itself, in place of LocalAI's own values."
    ARGUMENT_OF_SERVER = (
        "engine_args.{key} is left out: it is the server's, and LocalAI runs the engine alone."
    )
    AUTO_CONTEXT = "max_model_len auto is left out: LocalAI takes a number, and vLLM the model's own context."
    ARGUMENTS = "engine_args ({keys}): LocalAI's {backend} backend reads none."
    COMMIT = (
        "The commit is not pinned: LocalAI's {backend} backend asks the Hub for the newest one. "
        "HF_HUB_OFFLINE=1 after its first start keeps the one that is installed."
    )
    CONTEXT_AS_MAXIMUM = (
        "max_tokens is the whole context: unset, LocalAI's backend ends after {tokens} tokens."
    )
    ENVIRONMENT = "env.{key} is left out: set the variable for LocalAI's process."
    FILE_NAME = "{file!r} is left out of files: such a name may lead out of LocalAI's folder."
    FLAG = "options: {option!r} is left out: LocalAI would make it a flag of the engine."
    GREEDY = "temperature 0 is written as {value}: LocalAI's backends take 0 for unset."
    KEY = "{key}"
    MAXIMUM = "max_tokens is not set, so LocalAI's backend ends every answer after {tokens} tokens."
    NO_PIN = "The commit {revision} is not pinned: {consumer} has no place for a revision."
    PARSER_VERSIONS = "{key} {name} is not in vLLM {versions}; look which one LocalAI runs."
    PENALTIES = "{keys}: LocalAI's own table may set what is zero or unset here."
    REMOTE_CODE = "trust_remote_code: LocalAI's mlx-vlm backend never sets it."
    REPEAT_PENALTY = (
        "repeat_penalty does not reach vLLM through LocalAI; clients cannot send it there either."
    )
    SEED = "seed 0 is none for LocalAI's backends."
    SERVED_NAME = "Clients use the id {model} in place of the name {name}: a recipe serves no other name."
    STOPS = "stopwords: LocalAI looks for them in text, from which vLLM has taken special tokens out."
    TEMPLATE = "The chat template is not carried over, nor its tools: LocalAI renders with the model's own."
    THINKING_OFF = "{key}: false does not reach the template; a template that thinks by default will."
    VALUE = "{key} is left out: {problem}."
    VARIABLE = "chat_template_kwargs.{key} does not reach the template."


# The effect of a loss; every other one drops a part.
EFFECTS: Mapping[Loss, LossEffect] = {
    Loss.ADDED: LossEffect.ADDED,
    Loss.COMMIT: LossEffect.NOT_PINNED,
    Loss.CONTEXT_AS_MAXIMUM: LossEffect.ADDED,
    Loss.GREEDY: LossEffect.CHANGED,
    Loss.MAXIMUM: LossEffect.ADDED,
    Loss.PARSER_VERSIONS: LossEffect.CHANGED,
    Loss.PENALTIES: LossEffect.ADDED,
}


def loss_json(loss: Reason) -> dict[str, str]:
    """Return effect, kind and sentence of a loss."""
    kind = Loss(loss.kind)
    effect = EFFECTS.get(kind, LossEffect.DROPPED)
    return {"effect": effect.value, "kind": kind.value, "message": render(loss)}


def _source(fields: Fields) -> str:
    at = f" at {fields['revision']}" if fields["revision"] else ""
    return f"{fields['name']}: {fields['model']}{at}, for {fields['engine']}"


class ExportComment(ReasonKind):
    """A comment of an export."""

    CACHE_GUESSED = (
        "{variable} is a guess: {gib} GiB of this machine's memory for the KV cache; raise it for more load."
    )
    COMMAND = "{command}"
    ENGINE_OF_CONSUMER = (
        "The document is for vLLM {version}; {consumer} runs the vLLM that is installed with it."
    )
    FITTED = "Context and memory were chosen for {device} ({kind})."
    FITTED_ONCE = "The import chose for {device} ({kind}); since then {edited:and} was edited."
    FITTED_TO_OTHER = "WARNING: this is for {meant}, and the document for something else."
    FROM_CLIENTS = "{server} takes these from clients only, so send them: {values}"
    INFERRED = "The server infers its parsers from the chat template and the vocabulary; it takes no names."
    NO_OPTION = "{server} has no option for: {losses}"
    NO_REVISION = "{server} takes no revision, so {folder} links to this commit in the Hub's cache."
    RESOURCES = "Check the resources: {processors} processors are a guess, {memory}Gi is {why}."
    SOURCE = (_source,)
    UNAPPROVED = "WARNING: this document is not approved in its present form."
    UNPINNED = "WARNING: the document names no commit, so whatever is newest will be served."
    UNRUN = "{text}"
    WRITTEN = "Written by importer {version} from the document {digest} (review: {review})."


def unrun(text: str, **fields: object) -> Reason:
    """Return the comment on how a format was checked, and what it needs before it runs."""
    return Reason(ExportComment.UNRUN, text=text.format(**fields))


class MemoryReason(ReasonKind):
    """Why an export requests so much of a machine's own memory."""

    ESTIMATE = "the fit's high estimate with a cache of {gib} GiB"
    GUESS = "a guess"
    WEIGHTS_ONCE = "{gib} GiB and the weights once"
