"""Remedies of failed probes: one enumeration, so that root causes compare kinds."""

from __future__ import annotations

from enum import StrEnum

from importer.reasons import Reason


class Remedy(StrEnum):
    """A change to a document, a repository, an engine or a request; the fields of its reason have the
    values.
    """

    # Parsers.
    SET_PARSER = "set-parser"
    SET_PARSER_IN_PIECES = "set-parser-in-pieces"
    CHOOSE_TOOL_PARSER = "choose-tool-parser"
    CHOOSE_REASONING_PARSER = "choose-reasoning-parser"
    CHOOSE_FOR_CUT_THOUGHT = "choose-for-cut-thought"
    LEAVE_OUT_OR_CHOOSE = "leave-out-or-choose"
    LEAVE_OUT_PARSER = "leave-out-parser"
    NO_PARSER_READS = "no-parser-reads"
    SET_PARSER_TYPE = "set-parser-type"
    SET_PARSER_FOR_CASE = "set-parser-for-case"
    OTHER_VERSION_READS = "other-version-reads"
    DECODE_ONCE_MORE = "decode-once-more"
    START_WITH_PARSER = "start-with-parser"
    # Chat templates, tokenizers and weights.
    OTHER_TEMPLATE_BESIDE = "other-template-beside"
    RENDER_TOOL_ROLE = "render-tool-role"
    RENDER_TOOLS = "render-tools"
    WRITE_ARGUMENTS = "write-arguments"
    WRITE_NULL_AS_NOTHING = "write-null-as-nothing"
    RENDER_CALLS = "render-calls"
    RENDER_TURNS = "render-turns"
    RENDER_IMAGES = "render-images"
    FETCH_TOKENIZER_JSON = "fetch-tokenizer-json"
    WITHOUT_QUOTES = "without-quotes"
    TAKE_OUT_BEGINNING = "take-out-beginning"
    HEED_GENERATION_PROMPT = "heed-generation-prompt"
    CLOSE_BLOCK = "close-block"
    RENDER_SYSTEM_ROLE = "render-system-role"
    RENDER_EVERY_RESULT = "render-every-result"
    SHOW_TOOLS = "show-tools"
    NO_CLOCK = "no-clock"
    NO_ESCAPING = "no-escaping"
    WRITE_EMPTY = "write-empty"
    TAKE_THOUGHTS_OFF = "take-thoughts-off"
    SYSTEM_ONCE = "system-once"
    END_TURNS = "end-turns"
    OPEN_THOUGHT = "open-thought"
    WRITE_TURNS = "write-turns"
    BEGIN_TURNS_ALIKE = "begin-turns-alike"
    RENDER_EVERYTHING = "render-everything"
    RENDER_UNALTERED = "render-unaltered"
    RENDER_TEXT = "render-text"
    OWN_TOKENIZER = "own-tokenizer"
    TELL_AS_WRITTEN = "tell-as-written"
    LIST_TOOLS = "list-tools"
    OWN_TEMPLATE = "own-template"
    TRAINED_WEIGHTS = "trained-weights"
    ENDING_WEIGHTS = "ending-weights"
    WHOLE_WEIGHTS = "whole-weights"
    IMPORT_AGAIN = "import-again"
    OTHER_TEMPLATE = "other-template"
    FETCH_TEMPLATE = "fetch-template"
    ONE_TEMPLATE = "one-template"
    OTHER_WEIGHTS = "other-weights"
    PUT_BACK = "put-back"
    # Documents and starts.
    INSTALL_AGAIN = "install-again"
    START_WITHOUT = "start-without"
    TAKE_OUT_SETTING = "take-out-setting"
    CORRECT_SETTING = "correct-setting"
    TAKE_OUT_VARIABLE = "take-out-variable"
    CHOOSE_CONTEXT = "choose-context"
    SET_CONTEXT = "set-context"
    ONE_IMAGE = "one-image"
    SET_LONGEST = "set-longest"
    START_ANEW = "start-anew"
    RAISE_MAX_TOKENS = "raise-max-tokens"
    RAISE_LIMITS = "raise-limits"
    SAME_CONTEXT = "same-context"
    NO_FILTER = "no-filter"
    TAKE_OUT_ARGUMENT = "take-out-argument"
    START_WITH_VARIABLES = "start-with-variables"
    RENAME_VARIABLE = "rename-variable"
    START_WITH_VALUES = "start-with-values"
    START_WITH_VALUE = "start-with-value"
    TAKE_OUT_ADDED = "take-out-added"
    TAKE_OUT_STOPWORD = "take-out-stopword"
    TAKE_OUT_END = "take-out-end"
    END_THEM = "end-them"
    LOWER_TEMPERATURE = "lower-temperature"
    TAKE_OUT_FREQUENCY_PENALTY = "take-out-frequency-penalty"
    TAKE_OUT_PRESENCE_PENALTY = "take-out-presence-penalty"
    TAKE_OUT_REPEAT_PENALTY = "take-out-repeat-penalty"
    END_TURN = "end-turn"
    END_AT = "end-at"
    DECLARE = "declare"
    # Engines, clients and machines.
    CHAT_INSTEAD = "chat-instead"
    ALLOW_TOKENS = "allow-tokens"
    MORE_TIME = "more-time"
    RAISE_TIME_LIMIT = "raise-time-limit"
    LESS_LOAD = "less-load"
    REFUSE_NAMES = "refuse-names"
    ASK_BY_NAME = "ask-by-name"
    OTHER_VERSION_HISTORY = "other-version-history"
    OTHER_VERSION_FIELDS = "other-version-fields"
    ALLOW_OR_OTHER_PARSER = "allow-or-other-parser"
    SEND_SAMPLING = "send-sampling"
    REMOVE_SHARED = "remove-shared"
    SEE_PORT = "see-port"
    OTHER_VERSION_ORDER = "other-version-order"
    ANOTHER_ENGINE = "another-engine"
    MORE_TIME_OR_LOG = "more-time-or-log"
    OTHER_VERSION_TEMPLATE = "other-version-template"
    REQUESTS_UNALTERED = "requests-unaltered"
    ANSWERS_UNALTERED = "answers-unaltered"
    SERVERS_ALIKE = "servers-alike"
    SET_CLOCK = "set-clock"
    SHORTER_KEEP_ALIVE = "shorter-keep-alive"
    CALLS_FIELD = "calls-field"
    HEED_OPTIONS = "heed-options"
    OWN_STREAMS = "own-streams"
    OWN_ANSWERS = "own-answers"
    NO_CAP = "no-cap"
    STREAM_AT_ONCE = "stream-at-once"
    SOUND_CACHE = "sound-cache"
    TAKE_REQUEST = "take-request"
    OPTIONS_UNALTERED = "options-unaltered"
    NO_OWN_STOPS = "no-own-stops"
    SHORTER_ANSWERS = "shorter-answers"
    RAISE_RATE_LIMIT = "raise-rate-limit"
    RAISE_BODY_LIMIT = "raise-body-limit"
    WHOLE_ANSWERS = "whole-answers"
    LONGER_STREAMS = "longer-streams"
    SEE_DOCUMENT = "see-document"
    READ_LOG = "read-log"
    SEE_MEMORY = "see-memory"
    PROVIDE = "provide"
    SEND_VALUE = "send-value"


# General remedies of judges that see a reply alone; ``diagnosis.with_remedy`` makes them specific.
OTHER_TOOL_PARSER = Reason(Remedy.CHOOSE_TOOL_PARSER)
OTHER_REASONING_PARSER = Reason(Remedy.CHOOSE_REASONING_PARSER)
CUT_THOUGHT = Reason(Remedy.CHOOSE_FOR_CUT_THOUGHT)
NO_REASONING_PARSER = Reason(Remedy.LEAVE_OUT_OR_CHOOSE)
END_TOKEN = Reason(Remedy.END_TURN)
WHOLE_ANSWERS = Reason(Remedy.WHOLE_ANSWERS)
TRAINED_WEIGHTS = Reason(Remedy.TRAINED_WEIGHTS)
ALLOW_TOKENS = Reason(Remedy.ALLOW_TOKENS)

# The field of a document that names the parser of a remedy.
PARSER_OF: dict[Remedy, str] = {
    Remedy.CHOOSE_TOOL_PARSER: "tool_parser",
    Remedy.CHOOSE_REASONING_PARSER: "reasoning_parser",
    Remedy.LEAVE_OUT_OR_CHOOSE: "reasoning_parser",
    Remedy.CHOOSE_FOR_CUT_THOUGHT: "reasoning_parser",
}


def end_at(token: str | None) -> Reason:
    """Return the change that makes an engine stop at a token, where the token is known."""
    return END_TOKEN if token is None else Reason(Remedy.END_AT, token=token)
