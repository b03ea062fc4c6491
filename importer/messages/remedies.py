"""Sentences about what would mend what a probe found."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importer.messages import Text

Fields = Mapping[str, Any]


def noun(key: object) -> str:
    """A field of a document as a noun: ``tool parser``."""
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
    mended = "Use whole answers until the engine, or what stands before it, is mended"
    return f"{mended}: {fields['change']}." if fields.get("change") else f"{mended}."


# By the part of a request that a conversation of ``prompt-arrives`` is about.
PARTS = {
    "plain": "any text",
    "letters": "letters beyond ASCII",
    "tags": "markup",
    "spaces": "white space",
    "filtered": "addresses, paths and numbers",
    "roles": "the roles of turns",
    "repeated": "turns that come twice",
    "tools": "tools",
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
    return f"Use another version of the engine, or correct what stands before it: it alters requests{shown}."


def _provide(fields: Fields) -> str:
    lacking = str(fields["lacking"])
    return f"{lacking[:1].upper()}{lacking[1:]}."


def _other_template(fields: Fields) -> str:
    says = fields.get("says")
    shown = "" if says is None else f"; this one refuses it ({says})"
    return f"Use a chat template that takes this conversation{shown}."


def _raise_time_limit(fields: Fields) -> str:
    seconds = fields.get("seconds")
    least = "" if seconds is None else f" to {seconds:.0f} s or more"
    return f"Raise the time limit of the validation{least}, or try a faster machine."


TEXTS: dict[str, dict[str, Text]] = {
    "Remedy": {
        "set-parser": _set_parser,
        "set-parser-in-pieces": (
            "Set {key}:{parser} in options: it reads calls in pieces, too, which {named} does not."
        ),
        "choose-tool-parser": "Choose the tool parser that reads what the model writes.",
        "choose-reasoning-parser": "Choose the reasoning parser that reads this model's markers.",
        "choose-for-cut-thought": "Choose a reasoning parser that reads a thought that is cut.",
        "leave-out-or-choose": "Leave the reasoning parser out, or choose the one that reads this model.",
        "leave-out-parser": _leave_out_parser,
        "no-parser-reads": _no_parser_reads,
        "set-parser-type": _set_parser_type,
        "set-parser-for-case": "Set {key}:{parser} in options: it reads {case}, which {named} does not.",
        "other-version-reads": _other_version_reads,
        "decode-once-more": (
            "Let the client decode arguments once more, or use weights that write them as the template does."
        ),
        "start-with-parser": _start_with_parser,
        "other-template-beside": (
            "The template beside the weights is not the one that was proved: import the model again."
        ),
        "render-tool-role": "Use a chat template that renders the role 'tool'.",
        "render-tools": "Use a chat template that renders tools.",
        "write-arguments": (
            "Use a chat template that writes arguments as the model does; most want them with tojson."
        ),
        "write-null-as-nothing": "Use a chat template that writes nothing where a turn's content is null.",
        "render-calls": "Use a chat template that renders tool_calls.",
        "render-turns": "Use a chat template that renders every turn.",
        "render-images": "Use a chat template that renders images.",
        "fetch-tokenizer-json": (
            "Fetch tokenizer.json anew: its decoder, which makes text of pieces, is missing or another's."
        ),
        "without-quotes": "Write {variable} in chat_template_kwargs without quotes.",
        "take-out-beginning": "Take one {bos} out of the chat template.",
        "heed-generation-prompt": "Use a chat template that heeds add_generation_prompt.",
        "close-block": "Use a chat template that closes the block where thinking is off.",
        "render-system-role": "Use a chat template that renders the role 'system'.",
        "render-every-result": "Use a chat template that renders every turn of the role 'tool'.",
        "show-tools": "Use a chat template that shows the tools in every request.",
        "no-clock": "Use a chat template that writes the date at most.",
        "no-escaping": "Use a chat template that does not escape what it writes.",
        "write-empty": "Use a chat template that writes {{}} for a call's arguments where there are none.",
        "take-thoughts-off": "Use a chat template that takes thoughts off answers alone.",
        "system-once": "Use a chat template that writes the system's turn once.",
        "end-turns": "Use a chat template that ends every turn of the assistant as the model does.",
        "write-turns": "Use the chat template of these weights: they know turns of {form}, such as {turns!r}.",
        "begin-turns-alike": "Use a chat template that begins every turn of the assistant alike.",
        "render-everything": _render_everything,
        "render-text": "Use a chat template that writes content that is a plain text, and not parts alone.",
        "render-unaltered": "Use a chat template that writes every field of a request as it was sent.",
        "own-tokenizer": "Use the tokenizer that belongs to the weights.",
        "tell-as-written": "Use a chat template that renders calls as the model writes them: {own!r}.",
        "list-tools": "Use a chat template that lists tools in the form that these weights know: {tool!r}.",
        "own-template": (
            "{parser} reads what the template writes, and the model writes otherwise: use its own template."
        ),
        "open-thought": (
            "Let the chat template begin an answer with {opening!r}, as the one of these weights does."
        ),
        "whole-weights": (
            "Fetch the weights again, or make them again from the original ones, whole and with more bits; or use "
            "those from before the last training: these are damaged, merged wrong, rounded too far or spoilt by it."
        ),
        "trained-weights": (
            "Use other weights, or train these: they do not do it, whether they were not trained for it or lost it."
        ),
        "ending-weights": "Use weights that were trained to end their turns: an answer of these goes on and on.",
        "import-again": "Fetch the model's own chat template, or import the model again.",
        "other-template": _other_template,
        "fetch-template": "Fetch the model's own chat template.",
        "one-template": (
            "Make the chat template in {files:and} the same as the model's, or name it in the document."
        ),
        "other-weights": "Use other weights; the log has more.",
        "take-out-added": "Take {tokens:and} out of the files of the tokenizer, or use weights with a row for each.",
        "put-back": "Put {files:and} back as imported, or import the model again.",
        "install-again": "Install the engine again, with the packages that {package} asks for.",
        "start-without": "Start the engine without {setting}: take it out, or correct it.",
        "take-out-setting": "Take {key} out of the document.",
        "correct-setting": "Correct {key} in the document.",
        "take-out-variable": "Take {variables:and} out of chat_template_kwargs.",
        "choose-context": "Choose max_model_len by what the engine reports, or leave it more memory.",
        "set-context": "Set max_model_len to {served}, or start the engine with {promised}.",
        "one-image": "Set limit_mm_per_prompt to one image.",
        "set-longest": (
            "Set max_model_len to the model's own longest context, or use an engine that takes a shorter one."
        ),
        "start-anew": "Start it anew from time to time.",
        "raise-max-tokens": "Raise max_tokens in parameters.",
        "raise-limits": "Raise max_tokens in parameters, or max_model_len: every answer is cut there.",
        "same-context": (
            "Give the engine the document's context, or a document the engine's: it cuts what does not fit."
        ),
        "take-out-argument": "Take {argument} out of the engine's start, or start it from the document.",
        "start-with-variables": "Start the engine with the document's chat_template_kwargs.",
        "rename-variable": "Take {variable} out of chat_template_kwargs, or name it as the template does.",
        "start-with-values": "Start the engine with the document's {names:and}.",
        "start-with-value": (
            "Start the engine with {key} {value:g}, in vLLM's override of the generation config."
        ),
        "take-out-stopword": "Take {word!r} out of stopwords.",
        "take-out-end": "Take {token} out of eos_token_id in generation_config.json and config.json.",
        "end-them": "End them before the next start.",
        "lower-temperature": "Lower the temperature in parameters.",
        "take-out-frequency-penalty": "Take frequency_penalty out of parameters, or set it near 0.",
        "take-out-presence-penalty": "Take presence_penalty out of parameters, or set it near 0.",
        "take-out-repeat-penalty": "Take repeat_penalty out of parameters, or set it near 1.",
        "end-turn": "Make the token that ends a turn an end-of-sequence token in generation_config.json.",
        "end-at": "Make {token} an end-of-sequence token in generation_config.json.",
        "declare": "Declare {token} as a special token, and as an end-of-sequence token if it ends the turn.",
        "chat-instead": "Use /v1/chat/completions until the engine is mended.",
        "allow-tokens": "Allow more tokens.",
        "raise-time-limit": _raise_time_limit,
        "less-load": "Ask while it serves fewer clients, or raise its limit of requests for this key.",
        "more-time": "Give it more time, or try a faster machine.",
        "refuse-names": "Let the client refuse names that it did not offer.",
        "ask-by-name": "Ask for the model by a name that is listed: {listed}.",
        "other-version-history": (
            "Use another version of the engine: it tells the template of earlier turns in another form."
        ),
        "other-version-fields": (
            "Use another version of the engine: clients read thoughts as reasoning or reasoning_content."
        ),
        "allow-or-other-parser": "Allow more tokens than the model thinks, or use another reasoning parser.",
        "send-sampling": "Let the client send the sampling values, or see with which the engine was started.",
        "remove-shared": "Remove what it left in /dev/shm.",
        "see-port": "See which process listens there.",
        "other-version-order": (
            "Use another version of the engine: it gives the template results in another order."
        ),
        "requests-unaltered": _requests_unaltered,
        "answers-unaltered": "Use another version of the engine, or correct what stands before it: {change}.",
        "servers-alike": (
            "Bring all servers behind the address to one version and one start, or take out those that differ."
        ),
        "set-clock": "Set the clock of the server's machine.",
        "shorter-keep-alive": (
            "Let what stands before the server end idle connections before the server does, or send again."
        ),
        "calls-field": (
            "Let the server, and what stands before it, answer with tool_calls: clients read no {field}."
        ),
        "take-request": (
            "Let the server, and what stands before it, take this request, whose form is that of the API: {says}"
        ),
        "options-unaltered": (
            "Correct the server, or what stands before it: it changes options of requests, such as logit_bias. To the "
            "same text the model answers right by itself."
        ),
        "no-own-stops": (
            "Take out the stop string that the server, or what stands before it, adds to requests: answers end "
            "before {before!r}."
        ),
        "shorter-answers": ("Let the server heed `max_tokens`, or validate fewer probes at a time."),
        "raise-rate-limit": (
            "Raise the rate of requests that the server, or what stands before it, allows, or validate later."
        ),
        "no-filter": (
            "Let the server, and what stands before it, take texts with markup, paths, statements and numbers."
        ),
        "raise-body-limit": (
            "Let the server, and what stands before it, take bodies of {size} bytes and more."
        ),
        "heed-options": (
            "Use an engine that heeds this option ({option}), or correct what stands before it: it changes requests."
        ),
        "own-streams": (
            "Correct the server, or what stands before it: it mixes the streams that several clients get at once."
        ),
        "own-answers": (
            "Correct the server, or what stands before it: an answer does not belong to its request."
        ),
        "no-cap": "Raise the limit of tokens that the server, or what stands before it, sets by itself.",
        "stream-at-once": "Switch off the buffering of answers in the server, or in what stands before it.",
        "sound-cache": (
            "Use a version of the engine whose prefix cache changes no answer, or switch that cache off: it loses "
            "or mixes up tokens of a prompt."
        ),
        "another-engine": (
            "Use another version of the engine, or correct what stands before it; the exchange in the receipt "
            "shows what is wrong."
        ),
        "more-time-or-log": "Give it more time, or see in its log what it waits for.",
        "other-version-template": (
            "Use another version of the engine: it does not give the template all that a request holds."
        ),
        "whole-answers": _whole_answers,
        "longer-streams": (
            "Raise the time or the size at which the server, or what stands before it, breaks streams off: "
            "{seconds:.1f} s, {size} bytes."
        ),
        "see-document": "Change the document or the model's files; the log has more.",
        "read-log": "Read its log to the end.",
        "see-memory": (
            "See what else needs memory on this machine; the system's own log may tell who ended it."
        ),
        "provide": _provide,
        "send-value": (
            "Let the client send {name}, or use a version of the engine that takes it at its start."
        ),
    },
}
