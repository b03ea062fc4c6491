"""Remedies of failed probes: one enumeration, so that root causes compare kinds."""

from __future__ import annotations

from importer.reasons import Fields, Reason, ReasonKind


def noun(key: object) -> str:
    """Return a field of a document as a noun: ``tool parser``."""
    return str(key).replace("_", " ")


def _leave_out_parser(fields: Fields) -> str:
    what = {"tool_parser": "tool calls", "reasoning_parser": "reasoning"}[fields["key"]]
    return f"Leave {fields['key']} out of options: the template renders no {what}."


def _no_parser_reads(fields: Fields) -> str:
    kind = noun(fields["key"])
    engine = f"{fields['engine']} {fields['version']}"
    return f"No {kind} of {engine} reads what the template writes: use another template, or no {kind}."


def _set_parser(fields: Fields) -> str:
    why = f" ({fields['why']})" if fields.get("why") else ""
    other = f"; {fields['named']} does not{why}" if fields["named"] else ""
    return f"Set {fields['key']}:{fields['parser']} in options: it reads what the template writes{other}."


def _set_parser_type(fields: Fields) -> str:
    infers = f"{fields['engine']} {fields['version']} infers {fields['named'] or 'none'}"
    why = f"it names {fields['claimed']}" if fields["claimed"] else infers
    return f'Set "tool_parser_type": "{fields["parser"]}" in tokenizer_config.json; {why}.'


def _start_with_parser(fields: Fields) -> str:
    return f"Start the engine with the document's {noun(fields['key'])}."


def _other_version_reads(fields: Fields) -> str:
    change = f": {fields['change']}" if fields.get("change") else ""
    mend = f"Use another version of the engine, or correct what stands before it{change}."
    return f"{mend} Asked by itself, its parser {fields['parser']} reads this."


def _whole_answers(fields: Fields) -> str:
    mended = "Use whole answers until the engine, or what stands before it, is fixed"
    return f"{mended}: {fields['change']}." if fields.get("change") else f"{mended}."


# By the part of a request that a conversation of ``prompt-counts`` is about.
PARTS = {
    "plain": "any text",
    "letters": "letters beyond ASCII",
    "tags": "markup",
    "spaces": "white space",
    "filtered": "addresses, paths and numbers",
    "roles": "the roles of turns",
    "repeated": "turns that come twice",
    "tools": "tools",
    "schemas": "schemas of tools",
    "round": "turns with calls and results",
    "results": "results of several calls",
    "in-parts": "text in parts",
    "switch": "template variables",
    "ordinary": "questions with names and places",
    "long-user": "long texts",
    "long-system": "long system turns",
}


def _render_everything(fields: Fields) -> str:
    tools = fields.get("tools")
    what = "each tool with its description and whole schema" if tools else "every turn, call and result whole"
    where = f"{fields['where']}: " if fields.get("where") else ""
    shown = f" ({where}{fields['problem']})" if fields.get("problem") else ""
    return f"Use a chat template that renders {what}{'' if tools else ' and in order'}{shown}."


def _requests_unaltered(fields: Fields) -> str:
    parts = ", ".join(PARTS[part] for part in fields.get("parts", ()))
    shown = f" ({parts})" if parts else ""
    what = f": {fields['what']}" if fields.get("what") else ""
    mend = "Use another version of the engine, or correct what stands before it"
    return f"{mend}: it alters requests{shown}{what}."


def _provide(fields: Fields) -> str:
    lacking = str(fields["lacking"])
    return f"{lacking[:1].upper()}{lacking[1:]}."


def _other_template(fields: Fields) -> str:
    says = fields.get("says")
    shown = "" if says is None else f"; this one refuses it ({says})"
    return f"Use a chat template that takes this conversation{shown}."


class Remedy(ReasonKind):
    """A change to a document, a repository, an engine or a request; the fields of its reason have the
    values.
    """

    # Parsers.
    SET_PARSER = "set-parser", _set_parser
    SET_PARSER_IN_PIECES = (
        "set-parser-in-pieces",
        "Set {key}:{parser} in options: it also reads calls in pieces, and {named} does not.",
    )
    CHOOSE_TOOL_PARSER = "choose-tool-parser", "Choose the tool parser that reads what the model writes."
    CHOOSE_REASONING_PARSER = (
        "choose-reasoning-parser",
        "Choose the reasoning parser that reads this model's markers.",
    )
    CHOOSE_FOR_CUT_THOUGHT = (
        "choose-for-cut-thought",
        "Choose a reasoning parser that reads a thought that is cut.",
    )
    LEAVE_OUT_OR_CHOOSE = (
        "leave-out-or-choose",
        "Leave the reasoning parser out, or choose the one that reads this model.",
    )
    LEAVE_OUT_PARSER = "leave-out-parser", _leave_out_parser
    NO_PARSER_READS = "no-parser-reads", _no_parser_reads
    SET_PARSER_TYPE = "set-parser-type", _set_parser_type
    SET_PARSER_FOR_CASE = (
        "set-parser-for-case",
        "Set {key}:{parser} in options: it reads {case}, which {named} does not.",
    )
    OTHER_VERSION_READS = "other-version-reads", _other_version_reads
    DECODE_ONCE_MORE = (
        "decode-once-more",
        "Let the client decode arguments once more, or use weights that write them as the template does.",
    )
    START_WITH_PARSER = "start-with-parser", _start_with_parser
    # Chat templates, tokenizers and weights.
    OTHER_TEMPLATE_BESIDE = (
        "other-template-beside",
        "The template beside the weights is not the one that was proved: import the model again.",
    )
    RENDER_TOOL_ROLE = "render-tool-role", "Use a chat template that renders the role 'tool'."
    RENDER_TOOLS = "render-tools", "Use a chat template that renders tools."
    WRITE_ARGUMENTS = (
        "write-arguments",
        "Use a chat template that writes arguments as the model does; most want them with tojson.",
    )
    WRITE_NULL_AS_NOTHING = (
        "write-null-as-nothing",
        "Use a chat template that writes nothing where a turn's content is null.",
    )
    RENDER_CALLS = "render-calls", "Use a chat template that renders tool_calls."
    RENDER_TURNS = "render-turns", "Use a chat template that renders every turn."
    RENDER_IMAGES = "render-images", "Use a chat template that renders images."
    FETCH_TOKENIZER_JSON = (
        "fetch-tokenizer-json",
        "Fetch tokenizer.json again: its decoder is missing, or belongs to another tokenizer.",
    )
    WITHOUT_QUOTES = "without-quotes", "Write {variable} in chat_template_kwargs without quotes."
    TAKE_OUT_BEGINNING = "take-out-beginning", "Take one {bos} out of the chat template."
    HEED_GENERATION_PROMPT = "heed-generation-prompt", "Use a chat template that heeds add_generation_prompt."
    CLOSE_BLOCK = "close-block", "Use a chat template that closes the block where thinking is off."
    RENDER_SYSTEM_ROLE = "render-system-role", "Use a chat template that renders the role 'system'."
    RENDER_EVERY_RESULT = (
        "render-every-result",
        "Use a chat template that renders every turn of the role 'tool'.",
    )
    SHOW_TOOLS = "show-tools", "Use a chat template that shows the tools in every request."
    NO_CLOCK = "no-clock", "Use a chat template that writes the date at most."
    NO_ESCAPING = "no-escaping", "Use a chat template that does not escape what it writes."
    WRITE_EMPTY = (
        "write-empty",
        "Use a chat template that writes {{}} for a call's arguments where there are none.",
    )
    TAKE_THOUGHTS_OFF = "take-thoughts-off", "Use a chat template that takes thoughts off answers alone."
    SYSTEM_ONCE = "system-once", "Use a chat template that writes the system's turn once."
    END_TURNS = "end-turns", "Use a chat template that ends every turn of the assistant as the model does."
    OPEN_THOUGHT = (
        "open-thought",
        "Let the chat template begin an answer with {opening!r}, as the one of these weights does.",
    )
    WRITE_TURNS = (
        "write-turns",
        "Use the chat template of these weights: they know turns of {form}, such as {turns!r}.",
    )
    BEGIN_TURNS_ALIKE = (
        "begin-turns-alike",
        "Use a chat template that begins every turn of the assistant alike.",
    )
    RENDER_EVERYTHING = "render-everything", _render_everything
    RENDER_UNALTERED = (
        "render-unaltered",
        "Use a chat template that writes every field of a request as it was sent.",
    )
    RENDER_TEXT = (
        "render-text",
        "Use a chat template that writes content that is a plain text, and not parts alone.",
    )
    OWN_TOKENIZER = "own-tokenizer", "Use the tokenizer that belongs to the weights."
    TELL_AS_WRITTEN = (
        "tell-as-written",
        "Use a chat template that renders calls as the model writes them: {own!r}.",
    )
    LIST_TOOLS = (
        "list-tools",
        "Use a chat template that lists tools in the form that these weights know: {tool!r}.",
    )
    OWN_TEMPLATE = (
        "own-template",
        "{parser} reads what the template writes, and the model writes otherwise: use its own template.",
    )
    ENDING_WEIGHTS = (
        "ending-weights",
        "Use weights that were trained to end their turns: an answer of these goes on and on.",
    )
    WHOLE_WEIGHTS = (
        "whole-weights",
        (
            "Fetch the weights again, or make them again from the original ones, whole and with more bits; "
            "or use those from before the last training: these are damaged, merged wrong, rounded too far or "
            "spoilt by it."
        ),
    )
    IMPORT_AGAIN = "import-again", "Fetch the model's own chat template, or import the model again."
    OTHER_TEMPLATE = "other-template", _other_template
    FETCH_TEMPLATE = "fetch-template", "Fetch the model's own chat template."
    ONE_TEMPLATE = (
        "one-template",
        "Make the chat template in {files:and} the same as the model's, or name it in the document.",
    )
    OTHER_WEIGHTS = "other-weights", "Use other weights; the log has more."
    PUT_BACK = "put-back", "Put {files:and} back as imported, or import the model again."
    # Documents and starts.
    INSTALL_AGAIN = "install-again", "Install the engine again, with the packages that {package} asks for."
    START_WITHOUT = "start-without", "Start the engine without {setting}: take it out, or correct it."
    TAKE_OUT_SETTING = "take-out-setting", "Take {key} out of the document."
    CORRECT_SETTING = "correct-setting", "Correct {key} in the document."
    TAKE_OUT_VARIABLE = "take-out-variable", "Take {variables:and} out of chat_template_kwargs."
    CHOOSE_CONTEXT = (
        "choose-context",
        "Choose max_model_len by what the engine reports, or leave it more memory.",
    )
    SET_CONTEXT = "set-context", "Set max_model_len to {served}, or start the engine with {promised}."
    ONE_IMAGE = "one-image", "Set limit_mm_per_prompt to one image."
    SET_LONGEST = (
        "set-longest",
        "Set max_model_len to the model's own longest context, or use an engine that takes a shorter one.",
    )
    START_ANEW = "start-anew", "Restart it from time to time."
    RAISE_MAX_TOKENS = "raise-max-tokens", "Raise max_tokens in parameters."
    RAISE_LIMITS = (
        "raise-limits",
        "Raise max_tokens in parameters, or max_model_len: every answer is cut there.",
    )
    SAME_CONTEXT = (
        "same-context",
        "Give the engine the document's context, or a document the engine's: it cuts what does not fit.",
    )
    NO_FILTER = (
        "no-filter",
        "Let the server, and what stands before it, take texts with markup, paths, statements and numbers.",
    )
    TAKE_OUT_ARGUMENT = (
        "take-out-argument",
        "Take {argument} out of the engine's start, or start it from the document.",
    )
    START_WITH_VARIABLES = (
        "start-with-variables",
        "Start the engine with the document's chat_template_kwargs.",
    )
    RENAME_VARIABLE = (
        "rename-variable",
        "Take {variable} out of chat_template_kwargs, or name it as the template does.",
    )
    START_WITH_VALUES = "start-with-values", "Start the engine with the document's {names:and}."
    START_WITH_VALUE = (
        "start-with-value",
        "Start the engine with {key} {value:g}, in vLLM's override of the generation config.",
    )
    TAKE_OUT_ADDED = (
        "take-out-added",
        "Take {tokens:and} out of the files of the tokenizer, or use weights with a row for each.",
    )
    TAKE_OUT_STOPWORD = "take-out-stopword", "Take {word!r} out of stopwords."
    TAKE_OUT_END = (
        "take-out-end",
        "Take {token} out of eos_token_id in generation_config.json and config.json.",
    )
    END_THEM = "end-them", "End them before the next start."
    LOWER_TEMPERATURE = "lower-temperature", "Lower the temperature in parameters."
    TAKE_OUT_FREQUENCY_PENALTY = (
        "take-out-frequency-penalty",
        "Take frequency_penalty out of parameters, or set it near 0.",
    )
    TAKE_OUT_PRESENCE_PENALTY = (
        "take-out-presence-penalty",
        "Take presence_penalty out of parameters, or set it near 0.",
    )
    TAKE_OUT_REPEAT_PENALTY = (
        "take-out-repeat-penalty",
        "Take repeat_penalty out of parameters, or set it near 1.",
    )
    END_TURN = (
        "end-turn",
        "Make the token that ends a turn an end-of-sequence token in generation_config.json.",
    )
    END_AT = "end-at", "Make {token} an end-of-sequence token in generation_config.json."
    DECLARE = (
        "declare",
        "Declare {token} as a special token, and as an end-of-sequence token if it ends the turn.",
    )
    # Engines, clients and machines.
    CHAT_INSTEAD = "chat-instead", "Use /v1/chat/completions until the engine is fixed."
    REQUIRE_CALLS = (
        "require-calls",
        "Let clients send tool_choice: required where they want a call; by itself none of its calls is read.",
    )
    SERVE_TEMPLATE = (
        "serve-template",
        "Import the model again with the chat template {template}: in that form its calls arrive.",
    )
    OFFER_NO_TOOLS = (
        "offer-no-tools",
        "Leave out the tool parser: in no form that was tried do its calls arrive.",
    )
    MORE_TIME = "more-time", "Give it more time, or try a faster machine."
    RAISE_TIME_LIMIT = "raise-time-limit", "Raise the time limit of the validation, or try a faster machine."
    LESS_LOAD = "less-load", "Ask while it serves fewer clients, or raise its limit of requests for this key."
    SEND_INSTEAD = "send-instead", "Let clients send {instead} in place of {form}."
    REFUSE_NAMES = "refuse-names", "Let the client refuse names that it did not offer."
    ASK_BY_NAME = "ask-by-name", "Ask for the model by a name that is listed: {listed}."
    OTHER_VERSION_HISTORY = (
        "other-version-history",
        "Use another version of the engine: it tells the template of earlier turns in another form.",
    )
    OTHER_VERSION_FIELDS = (
        "other-version-fields",
        "Use another version of the engine: clients read thoughts as reasoning or reasoning_content.",
    )
    ALLOW_OR_OTHER_PARSER = (
        "allow-or-other-parser",
        "Allow more tokens than the model thinks, or use another reasoning parser.",
    )
    SEND_SAMPLING = (
        "send-sampling",
        "Let the client send the sampling values, or check the values that the engine was started with.",
    )
    REMOVE_SHARED = "remove-shared", "Remove what it left in /dev/shm."
    SEE_PORT = "see-port", "Find the process that listens there."
    OTHER_VERSION_ORDER = (
        "other-version-order",
        "Use another version of the engine: it gives the template results in another order.",
    )
    MORE_TIME_OR_LOG = "more-time-or-log", "Give it more time, or see in its log what it waits for."
    OTHER_VERSION_TEMPLATE = (
        "other-version-template",
        "Use another version of the engine: it does not give the template all that a request holds.",
    )
    REQUESTS_UNALTERED = "requests-unaltered", _requests_unaltered
    ANSWERS_UNALTERED = (
        "answers-unaltered",
        "Use another version of the engine, or correct what stands before it: {change}.",
    )
    SERVERS_ALIKE = (
        "servers-alike",
        "Bring all servers behind the address to one version and one start, or take out those that differ.",
    )
    SET_CLOCK = "set-clock", "Set the clock of the server's machine."
    SHORTER_KEEP_ALIVE = (
        "shorter-keep-alive",
        "Let what stands before the server end idle connections before the server does, or send again.",
    )
    CALLS_FIELD = (
        "calls-field",
        "Let the server, and what stands before it, answer with tool_calls: clients read no {field}.",
    )
    HEED_OPTIONS = (
        "heed-options",
        (
            "Use an engine that heeds this option ({option}), or correct what stands before it: it changes "
            "requests."
        ),
    )
    OWN_STREAMS = (
        "own-streams",
        (
            "Correct the server, or what stands before it: it mixes the streams that several clients get at "
            "once."
        ),
    )
    OWN_ANSWERS = (
        "own-answers",
        "Correct the server, or what stands before it: an answer does not belong to its request.",
    )
    NO_CAP = "no-cap", "Raise the limit of tokens that the server, or what stands before it, sets by itself."
    STREAM_AT_ONCE = (
        "stream-at-once",
        "Switch off the buffering of answers in the server, or in what stands before it.",
    )
    SOUND_CACHE = (
        "sound-cache",
        (
            "Use a version of the engine whose prefix cache changes no answer, or switch that cache off: it "
            "loses or mixes up tokens of a prompt."
        ),
    )
    TAKE_REQUEST = (
        "take-request",
        "Let the server, and what stands before it, take this request, whose form is that of the API: {says}",
    )
    OPTIONS_UNALTERED = (
        "options-unaltered",
        (
            "Correct the server, or what stands before it: it changes options of requests, such as "
            "logit_bias. To the same text the model answers right by itself."
        ),
    )
    NO_OWN_STOPS = (
        "no-own-stops",
        (
            "Take out the stop string that the server, or what stands before it, adds to requests: answers "
            "end before {before!r}."
        ),
    )
    SHORTER_ANSWERS = (
        "shorter-answers",
        "Let the server heed `max_tokens`, or validate fewer probes at a time.",
    )
    RAISE_RATE_LIMIT = (
        "raise-rate-limit",
        "Raise the rate of requests that the server, or what stands before it, allows, or validate later.",
    )
    RAISE_BODY_LIMIT = (
        "raise-body-limit",
        "Let the server, and what stands before it, take bodies of {size} bytes and more.",
    )
    WHOLE_ANSWERS = "whole-answers", _whole_answers
    LONGER_STREAMS = (
        "longer-streams",
        (
            "Raise the time or the size at which the server, or what stands before it, breaks streams off: "
            "{seconds:.1f} s, {size} bytes."
        ),
    )
    SEE_DOCUMENT = "see-document", "Change the document or the model's files; the log has more."
    READ_LOG = "read-log", "Read its log to the end."
    SEE_MEMORY = (
        "see-memory",
        "See what else needs memory on this machine; the system's own log may tell who ended it.",
    )
    PROVIDE = "provide", _provide
    SEND_VALUE = (
        "send-value",
        "Let the client send {name}, or use a version of the engine that takes it at its start.",
    )


# General remedies of judges that see a reply alone; ``diagnosis.with_remedy`` makes them specific.
OTHER_TOOL_PARSER = Reason(Remedy.CHOOSE_TOOL_PARSER)
OTHER_REASONING_PARSER = Reason(Remedy.CHOOSE_REASONING_PARSER)
CUT_THOUGHT = Reason(Remedy.CHOOSE_FOR_CUT_THOUGHT)
NO_REASONING_PARSER = Reason(Remedy.LEAVE_OUT_OR_CHOOSE)
END_TOKEN = Reason(Remedy.END_TURN)
WHOLE_ANSWERS = Reason(Remedy.WHOLE_ANSWERS)

# The field of a document that names the parser of a remedy.
PARSER_OF: dict[Remedy, str] = {
    Remedy.CHOOSE_TOOL_PARSER: "tool_parser",
    Remedy.CHOOSE_REASONING_PARSER: "reasoning_parser",
    Remedy.LEAVE_OUT_OR_CHOOSE: "reasoning_parser",
    Remedy.CHOOSE_FOR_CUT_THOUGHT: "reasoning_parser",
}

# Changes of the chat template, wherever it stands.
TEMPLATES = (
    Remedy.RENDER_TOOL_ROLE, Remedy.RENDER_TOOLS, Remedy.WRITE_ARGUMENTS, Remedy.WRITE_NULL_AS_NOTHING,
    Remedy.RENDER_CALLS, Remedy.RENDER_TURNS, Remedy.RENDER_IMAGES, Remedy.TAKE_OUT_BEGINNING,
    Remedy.HEED_GENERATION_PROMPT, Remedy.CLOSE_BLOCK, Remedy.RENDER_SYSTEM_ROLE, Remedy.RENDER_EVERY_RESULT,
    Remedy.SHOW_TOOLS, Remedy.NO_CLOCK, Remedy.NO_ESCAPING, Remedy.WRITE_EMPTY, Remedy.TAKE_THOUGHTS_OFF,
    Remedy.SYSTEM_ONCE, Remedy.END_TURNS, Remedy.OPEN_THOUGHT, Remedy.WRITE_TURNS, Remedy.BEGIN_TURNS_ALIKE,
    Remedy.RENDER_EVERYTHING, Remedy.RENDER_UNALTERED, Remedy.RENDER_TEXT, Remedy.TELL_AS_WRITTEN,
    Remedy.LIST_TOOLS, Remedy.OTHER_TEMPLATE,
)  # fmt: skip
# Changes of the parser that a document names.
NAMES_PARSER = (
    Remedy.SET_PARSER, Remedy.SET_PARSER_TYPE, Remedy.SET_PARSER_FOR_CASE, Remedy.SET_PARSER_IN_PIECES,
    Remedy.LEAVE_OUT_PARSER,
)  # fmt: skip


def end_at(token: str | None) -> Reason:
    """Return the change that makes an engine stop at a token, where the token is known."""
    return END_TOKEN if token is None else Reason(Remedy.END_AT, token=token)
