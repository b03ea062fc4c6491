"""Remedies of failed probes: one enumeration, so that root causes compare kinds."""

from __future__ import annotations

from typing import Any

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


def _other_version_reads(fields: Fields) -> str:
    change = f": {fields['change']}" if fields.get("change") else ""
    mend = f"Use another version of the engine, or correct what stands before it{change}."
    return f"{mend} Asked by itself, its parser {fields['parser']} reads this."


def _whole_answers(fields: Fields) -> str:
    mended = "Use whole answers until the engine, or what stands before it, is fixed"
    return f"{mended}: {fields['change']}." if fields.get("change") else f"{mended}."


# By the part of a request that a conversation of ``prompt-rendered`` is about.
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
    return f"renders {what}{'' if tools else ' and in order'}{shown}"


def _requests_unaltered(fields: Fields) -> str:
    parts = ", ".join(PARTS[part] for part in fields.get("parts", ()))
    shown = f" ({parts})" if parts else ""
    what = f": {fields['what']}" if fields.get("what") else ""
    mend = "Use another version of the engine, or correct what stands before it"
    return f"{mend}: it alters requests{shown}{what}."


def _provide(fields: Fields) -> str:
    lacking = str(fields["lacking"])
    return f"{lacking[:1].upper()}{lacking[1:]}."


def _take_conversation(fields: Fields) -> str:
    says = fields.get("says")
    return f"takes this conversation{'' if says is None else f'; this one refuses it ({says})'}"


def _end_at(fields: Fields) -> str:
    token = fields.get("token") or "the token that ends a turn"
    return f"Make {token} an end-of-sequence token in generation_config.json."


class Need(ReasonKind):
    """What a chat template has to do."""

    TAKE_CONVERSATION = (_take_conversation,)
    RENDER_TOOL_ROLE = "renders the role 'tool'"
    RENDER_EVERY_RESULT = "renders every turn of the role 'tool'"
    RENDER_TOOLS = "renders tools"
    SHOW_TOOLS = "shows the tools in every request"
    RENDER_CALLS = "renders tool_calls"
    WRITE_ARGUMENTS = "writes arguments as the model does; most want them with tojson"
    WRITE_EMPTY = "writes {{}} for a call's arguments where there are none"
    WRITE_NULL_AS_NOTHING = "writes nothing where a turn's content is null"
    RENDER_TURNS = "renders every turn"
    RENDER_IMAGES = "renders images"
    RENDER_SYSTEM_ROLE = "renders the role 'system'"
    SYSTEM_ONCE = "writes the system's turn once"
    HEED_GENERATION_PROMPT = "heeds add_generation_prompt"
    BEGIN_ONCE = "writes {bos} once"
    BEGIN_TURNS_ALIKE = "begins every turn of the assistant alike"
    END_TURNS = "ends every turn of the assistant as the model does"
    CLOSE_BLOCK = "closes the block where thinking is off"
    TAKE_THOUGHTS_OFF = "takes thoughts off answers alone"
    NO_CLOCK = "writes the date at most"
    NO_ESCAPING = "does not escape what it writes"
    RENDER_EVERYTHING = (_render_everything,)
    RENDER_UNALTERED = "writes every field of a request as it was sent"


class Remedy(ReasonKind):
    """A change to a document, a repository, an engine or a request; the fields of its reason have the
    values.
    """

    # Parsers.
    SET_PARSER = (_set_parser,)
    CHOOSE_TOOL_PARSER = "Choose the tool parser that reads what the model writes."
    CHOOSE_REASONING_PARSER = "Choose the reasoning parser that reads this model's markers."
    LEAVE_OUT_OR_CHOOSE = "Leave the reasoning parser out, or choose the one that reads this model."
    LEAVE_OUT_PARSER = (_leave_out_parser,)
    NO_PARSER_READS = (_no_parser_reads,)
    SET_PARSER_TYPE = (_set_parser_type,)
    OTHER_VERSION_READS = (_other_version_reads,)
    DECODE_ONCE_MORE = (
        "Let the client decode arguments once more, or use weights that write them as the template does."
    )
    # Chat templates, tokenizers and weights.
    WITHOUT_QUOTES = "Write {variable} in chat_template_kwargs without quotes."
    WRITE_TURNS = "Use the chat template of these weights: they know turns of {form}, such as {turns!r}."
    OWN_TOKENIZER = "Use the tokenizer that belongs to the weights: fetch tokenizer.json again."
    OWN_TEMPLATE = (
        "{parser} reads what the template writes, and the model writes otherwise: use its own template."
    )
    ENDING_WEIGHTS = "Use weights that were trained to end their turns: an answer of these goes on and on."
    WHOLE_WEIGHTS = (
        "Fetch the weights again, or make them again from the original ones, whole and with more bits; "
        "or use those from before the last training: these are damaged, merged wrong, rounded too far or "
        "spoilt by it."
    )
    IMPORT_AGAIN = "Fetch the model's own chat template, or import the model again."
    FETCH_TEMPLATE = "Fetch the model's own chat template."
    ONE_TEMPLATE = (
        "Make the chat template in {files:and} the same as the model's, or name it in the document."
    )
    PUT_BACK = "Put {files:and} back as imported, or import the model again."
    TEMPLATE = "Use a chat template that {needs}."
    # Documents and starts.
    SET_CONTEXT = (
        "Set max_model_len to the context that the engine serves, or start the engine with the document's."
    )
    START_WITH = "Start the engine with the document's {names:and}."
    LOWER_TEMPERATURE = "Lower {key} in the document."
    END_AT = (_end_at,)
    END_IT = "End or remove before the next start what is left of this one: {left}."
    MORE_TIME = "Raise the time limit of the validation, or try a faster machine."
    LESS_LOAD = (
        "Validate while the server has less load, or raise the rate of requests that it allows for this key."
    )
    SEND_VALUES = (
        "Let the client send {names:and}, or use a version of the engine that takes them at its start."
    )
    START_WITHOUT = "Start the engine without {setting}: take it out, or correct it."
    TAKE_OUT_SETTING = "Take {key} out of the document."
    CORRECT_SETTING = "Correct {key} in the document."
    TAKE_OUT_VARIABLE = "Take {variables:and} out of chat_template_kwargs."
    RAISE_MAX_TOKENS = "Raise max_tokens in parameters."
    RAISE_LIMITS = "Raise max_tokens in parameters, or max_model_len: every answer is cut there."
    TAKE_OUT_ADDED = (
        "Take {tokens:and} out of the files of the tokenizer, or use weights with a row for each."
    )
    TAKE_OUT_STOPWORD = "Take {word!r} out of stopwords."
    TAKE_OUT_END = "Take {token} out of eos_token_id in generation_config.json and config.json."
    DECLARE = "Declare {token} as a special token, and as an end-of-sequence token if it ends the turn."
    # Engines, clients and machines.
    CHAT_INSTEAD = "Use /v1/chat/completions until the engine is fixed."
    REQUIRE_CALLS = (
        "Let clients send tool_choice: required where they want a call; by itself none of its calls is read."
    )
    SERVE_TEMPLATE = (
        "Import the model again with the chat template {template}: in that form its calls arrive."
    )
    OFFER_NO_TOOLS = "Leave out the tool parser: in no form that was tried do its calls arrive."
    REFUSE_NAMES = "Let the client refuse names that it did not offer."
    ASK_BY_NAME = "Ask for the model by a name that is listed: {listed}."
    ALLOW_OR_OTHER_PARSER = "Allow more tokens than the model thinks, or use another reasoning parser."
    OTHER_VERSION_TEMPLATE = (
        "Use another version of the engine: it does not give the template all that a request holds."
    )
    REQUESTS_UNALTERED = (_requests_unaltered,)
    ANSWERS_UNALTERED = "Use another version of the engine, or correct what stands before it: {change}."
    SERVERS_ALIKE = (
        "Bring all servers behind the address to one version and one start, or take out those that differ."
    )
    SHORTER_KEEP_ALIVE = (
        "Let what stands before the server end idle connections before the server does, or send again."
    )
    HEED_OPTIONS = (
        "Use an engine that heeds this option ({option}), or correct what stands before it: it changes "
        "requests."
    )
    NO_CAP = "Raise the limit of tokens that the server, or what stands before it, sets by itself."
    STREAM_AT_ONCE = "Switch off the buffering of answers in the server, or in what stands before it."
    SOUND_CACHE = (
        "Use a version of the engine whose prefix cache changes no answer, or switch that cache off: it "
        "loses or mixes up tokens of a prompt."
    )
    RAISE_BODY_LIMIT = "Let the server, and what stands before it, take bodies of {size} bytes and more."
    WHOLE_ANSWERS = (_whole_answers,)
    LONGER_STREAMS = (
        "Raise the time or the size at which the server, or what stands before it, breaks streams off: "
        "{seconds:.1f} s, {size} bytes."
    )
    SEE_DOCUMENT = "Change the document or the model's files; the log has more."
    READ_LOG = "Read its log to the end."
    SEE_MEMORY = "See what else needs memory on this machine; the system's own log may tell who ended it."
    PROVIDE = (_provide,)


# General remedies of judges that see a reply alone; ``cause.by_proof`` makes them specific.
OTHER_TOOL_PARSER = Reason(Remedy.CHOOSE_TOOL_PARSER)
OTHER_REASONING_PARSER = Reason(Remedy.CHOOSE_REASONING_PARSER)
NO_REASONING_PARSER = Reason(Remedy.LEAVE_OUT_OR_CHOOSE)
END_TOKEN = Reason(Remedy.END_AT)
WHOLE_ANSWERS = Reason(Remedy.WHOLE_ANSWERS)

# The field of a document that names the parser of a remedy.
PARSER_OF: dict[Remedy, str] = {
    Remedy.CHOOSE_TOOL_PARSER: "tool_parser",
    Remedy.CHOOSE_REASONING_PARSER: "reasoning_parser",
    Remedy.LEAVE_OUT_OR_CHOOSE: "reasoning_parser",
}

# Changes of the chat template, wherever it stands.
TEMPLATES = (Remedy.TEMPLATE, Remedy.WRITE_TURNS)
# Changes of the parser that a document names.
NAMES_PARSER = (
    Remedy.SET_PARSER, Remedy.SET_PARSER_TYPE,
    Remedy.LEAVE_OUT_PARSER,
)  # fmt: skip


def end_at(token: str | None) -> Reason:
    """Return the change that makes an engine stop at a token, where the token is known."""
    return END_TOKEN if token is None else Reason(Remedy.END_AT, token=token)


def template(need: Need, **fields: Any) -> Reason:
    """Return the change to a chat template that does this."""
    return Reason(Remedy.TEMPLATE, needs=Reason(need, **fields))


def needed(remedy: Reason | None, *needs: Need) -> bool:
    """Return whether a change is one to a template that does one of these."""
    need = remedy.fields.get("needs") if remedy is not None else None
    return isinstance(need, Reason) and need.kind in needs
