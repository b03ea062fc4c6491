"""What an export says: why there is none, what it cannot carry, and the comments it begins with."""

from __future__ import annotations

from enum import StrEnum


class Unexportable(StrEnum):
    """Why a document has no such export."""

    DIRECTORY = "directory"
    LOCALAI_BACKEND = "localai-backend"
    LOCALAI_DIRECTORY = "localai-directory"
    OTHER_BACKEND = "other-backend"
    TEMPLATE_IN_FOLDER = "template-in-folder"
    TEMPLATE_IS_FILE = "template-is-file"
    VLLM_LACKS = "vllm-lacks"


class ExportRemedy(StrEnum):
    """What to do instead."""

    IMPORT_FOR = "import-for"
    IMPORT_FROM_HUB = "import-from-hub"
    SERVE_A_COPY = "serve-a-copy"
    WITHOUT_TEMPLATE = "without-template"


class Loss(StrEnum):
    """What a consumer is not given, or takes otherwise."""

    ARGUMENT_OF_SERVER = "argument-of-server"
    ARGUMENTS = "arguments"
    COMMIT = "commit"
    CONTEXT_AS_MAXIMUM = "context-as-maximum"
    FLAG = "flag"
    GREEDY = "greedy"
    KEY = "key"
    MAXIMUM = "maximum"
    PARSER_VERSIONS = "parser-versions"
    PENALTIES = "penalties"
    REMOTE_CODE = "remote-code"
    REPEAT_PENALTY = "repeat-penalty"
    SEED = "seed"
    STOPS = "stops"
    TEMPLATE = "template"
    THINKING_OFF = "thinking-off"
    VALUE = "value"
    VARIABLE = "variable"


class ExportComment(StrEnum):
    """A comment of an export."""

    COMMAND = "command"
    FITTED = "fitted"
    FITTED_TO_OTHER = "fitted-to-other"
    FROM_CLIENTS = "from-clients"
    INFERRED = "inferred"
    NO_OPTION = "no-option"
    NO_REVISION = "no-revision"
    RESOURCES = "resources"
    SOURCE = "source"
    UNAPPROVED = "unapproved"
    UNPINNED = "unpinned"
    UNRUN_COMPOSE = "unrun-compose"
    UNRUN_KSERVE = "unrun-kserve"
    WRITTEN = "written"


class MemoryReason(StrEnum):
    """Why an export asks for so much of a machine's own memory."""

    ESTIMATE = "estimate"
    GUESS = "guess"
    WEIGHTS_ONCE = "weights-once"
