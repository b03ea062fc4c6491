"""Sentences about documents, their names, and the settings that an import is given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from importer.messages.signals import FIELDS

if TYPE_CHECKING:
    from importer.messages import Text


def _no_tools(fields: Mapping[str, Any]) -> str:
    """No tools: {reason}; what would offer some."""
    return "; ".join((f"no tools: {fields['reason']}", *fields["helps"]))


def _weights_for_mlx(fields: Mapping[str, Any]) -> str:
    original = fields["original"][0] if fields["original"] else "the original repository"
    return (
        f"{fields['backend']} does not read weights in MLX's own quantisation; import {original} for it, or "
        "choose one of Apple's devices"
    )


DOCUMENT: dict[str, dict[str, Text]] = {
    "MergeReason": {
        "conflict": "{path}: it was {was}, the file says {mine}, this import says {theirs}",
    },
    "ReviewReason": {
        "reads-less": "{key}: in pieces it reads less: {finding}",
        "stale": "its validation does not hold: {why}",
        "probe": "probe {probe}: {outcome}: {reason}",
    },
    "SchemaReason": {
        "at": "at {where}: {problem}",
        "at-top": "at the top level: {problem}",
        "under-parameters": "it belongs under parameters",
        "unknown-key": "unknown key",
        "unknown-key-near": "unknown key; near names: {near}",
        "too-wide": "it does not fit in 64 bits",
    },
    "TextReason": {
        "on-line": "line {line}: {problem}",
        "of-path": "{path}: {problem}",
        "not-a-map": "it is not a map of keys",
        "key-no-text": "the key {key} is not text; quote it",
        "no-number": "{value} is not a number that JSON has",
        "no-text": "{value!r} is not text",
        "no-json": "{value} is a {type}, which JSON does not have; quote it",
        "not-utf8": "it is not UTF-8 text",
    },
    "DocumentReason": {
        "problems": "{problems:;}",
        "problems-and-more": "{problems:;}; and {more} more",
    },
    "EditReason": {
        "meet": "two changes meet in one place",
        "nothing-left": "nothing of it would stay",
        "empty-dash": "a list or map that begins on the line of its dash would be empty",
        "broken": "the result would be broken",
        "broken-by": "the result would be broken, {problem}",
        "other-values": "the result would not hold the wanted values",
        "comment-lost": "a comment would be lost",
        "too-deep": "it is nested too deep",
    },
    "StoreReason": {"no-receipt": "it is missing or damaged"},
    "ChatTemplateReason": {
        "name": "{file!r} is no name of a file beside the document that ends in {ending}",
        "changed": "{file} was changed since it was written",
        "missing": "there is no file {file} beside it",
        "not-utf8": "{file} is not UTF-8 text",
        "unreadable": "{file} cannot be read ({problem})",
    },
    "NameReason": {
        "characters": "{name!r} is not made of a-z, 0-9, '.', '_' and '-' with a letter or digit at both ends",
        "reserved": "a gallery's list of its entries has the name {name!r}",
    },
    "PreferenceReason": {
        "form": "{given!r} does not have the form key=value",
        "set-too": "{key} is set by the same request",
        "not-one-of": "{key} is one of {known}",
        "no-parser": "{key} is the name of a parser, or none",
        "empty-step": "the path {key!r} has an empty step",
        "not-set-so": "{key} is not set this way",
        "control": "the value of {key} holds control characters",
        "empty": "the value of {key} is empty; write null to leave it unset",
        "unclosed": "the value of {key} begins like JSON, and is neither JSON nor YAML",
        "near": "Did you mean {names:or}?",
        "none-near": "No setting has a similar name.",
    },
    "TargetReason": {
        "weights-for-mlx": _weights_for_mlx,
        "required": "a document for one device alone requires a device",
        "only-on-apple": "{backend} does not run on cards; choose the backend vllm or one of Apple's devices",
        "not-on-apple": "vLLM does not run on Apple's graphics; choose the backend mlx or another device",
        "template-unknown": "how {backend} is started with another chat template is not known",
        "frontend-of-vllm": "only vLLM has several frontends, and the document is for {backend}",
        "calls-unread": "{backend} reads none of its calls; it reads {known}",
    },
    "DecidingReason": {
        "not-rendered": "it cannot be rendered: {problem}",
        "no-text": "no case gave a text",
    },
    "AttentionReason": {
        "grant": "{reason}",
        "does-not-fit": "{reason}",
        "will-not-start": "{reason}",
        "needs-code": "{reason}",
        "foreign-code": "{reason}",
        "prompts": "{reason}",
        "parser": "{reason}",
        "limited-tools": "{reason}",
        "no-tools": _no_tools,
        "way-in": "{reason}",
        "conflict": "{reason}",
        "other-device": "{reason}",
        "other": "{reason}",
    },
    "OtherDevice": {
        "none": "no device in particular",
        "changed": "the document was for {before} and is for {after} now; an import per device leaves it as it is",
    },
    "HoldingReason": {
        "edited": "it was edited since it was validated",
        "failed": lambda fields: (
            f"its validation failed: {', '.join(fields['probes']) or 'no probe applied'}"
        ),
        "other-engine": "it ran on {ran}, and the document is for {meant}",
        "other-version": "it ran on {engine} {ran}, and the document is for {meant}",
        "other-weights": "it ran on other weights ({files:and})",
        "new-files": "{files:and} were written since, and not compared yet",
    },
    "OfferReason": {
        "clients-send": "{engine} cannot be started with it: clients have to send it",
        "no-stop-words": "{engine} heeds no stop words, neither at its start nor in requests",
    },
}


def _own_place(fields: Mapping[str, Any]) -> str:
    """The place of an argument with a key of its own; of the same name it is the key alone."""
    if fields["key"] == fields["place"]:
        return f"it is not set here; use {fields['key']} at the top level"
    return f"{fields['key']} is not set here; use {fields['place']}"


def _not_one_of(fields: Mapping[str, Any]) -> str:
    """A value and the known ones, an empty text in quotes."""
    known = fields["known"]
    listed = [one if one != "" else "''" for one in ([known] if isinstance(known, str) else known)]
    return f"{fields['value']!r} is not one of {', '.join(map(str, listed))}"


def _requires(fields: Mapping[str, Any]) -> str:
    """The argument that a value requires, with the first of its values, and others in its place."""
    values, others = fields["values"], fields["others"]
    value = "" if not values else ": true" if values[0] is True else f": {values[0]}"
    more = f" (or another of its {len(values)} values)" if len(values) > 1 else ""
    instead = f", or {', '.join(others)}" if others else ""
    return f"it requires {fields['key']}{value}{more}{instead}"


ARGUMENTS: dict[str, dict[str, Text]] = {
    "ArgumentReason": {
        "unknown": "{of} has no argument of this name",
        "unknown-near": "{of} has no argument of this name; near names: {near}",
        "wrong-type": "{value!r} is not {kind}",
        "not-one-of": _not_one_of,
        "not-one-of-many": "{value!r} is none of its {count} values, such as {near}",
        "out-of-range": "{value!r} is not {limit}",
        "unprintable": "it holds characters that cannot be seen, or too many",
        "like-a-flag": "{value!r} is empty or begins like a flag",
        "unpinned-model": "{model} is a second repository: name its commit under revision, 40 hexadecimal digits",
    },
    "Refusal": {
        "launcher": "{key} belongs to the command that starts the server, so no document sets it",
        "own-place": _own_place,
        "secret": "{key} is a secret, so no document sets it",
        "trusted-clients": "{key} trusts what clients send, so no document sets it",
    },
    "PatternReason": {
        "slow": "the pattern takes too long on some texts: a model's answer could hold up the engine",
        "unread": "the pattern is no regular expression of Python's",
    },
    "ValueReason": {
        "no-model": "it begins like an option, or holds characters that cannot be seen",
        "not-a-name": "{value!r} is not a name",
        "flag-for-vllm": "{flag} is a flag of vLLM's, and {engine} takes its arguments from engine_args",
        "no-auto": "only vLLM measures its memory for the longest context; {engine} needs a number of tokens",
        "no-length": "{value!r} is no number of tokens; on vLLM auto is the longest context that fits",
        "variable-lost": "mlx-vlm has an option for no variable of the chat template but {only}",
    },
    "VariableReason": {
        "no-name": "it is not the name of an environment variable",
        "not-a-number": lambda fields: (
            f"{fields['value']!r} is not a {'whole ' if fields['whole'] else ''}number, as the engine reads it"
        ),
        "not-one-of": _not_one_of,
        "no-value": "its value is not a short text, a number, true or false",
        "not-a-family": "it is no variable of an engine or of a library that engines compute with",
        "near": "the engine reads no variable of this name; near names: {near}",
        "secret": "it is a secret, so no document sets it",
        "launcher": "importer sets it by itself",
        "too-many": "there are more than {most} variables",
    },
    "ArgumentConflict": {
        "speculation-and": "vLLM refuses every request with {key} while engine_args.speculative_config is set",
        "drafter-missing": "the method {method} needs a second repository under model, and its commit under revision",
        "requires": _requires,
        "divides": "it does not divide {key}, {value}",
        "at-most": "it is more than {key}, {value}",
        "at-least": "it is less than {key}, {value}, without chunked prefill",
        "layers-or-parts": "mlx-lm shares layers or their parts: it goes without tensor_parallel_size",
        "exclusive": "the engine takes it or {key}, not both",
    },
    "ModelConflict": {
        "no-experts": "the model has no experts",
        "heads": "it does not divide the model's {value} attention heads",
        "stages": "it is more than the model's {value} layers",
        "parts": "vLLM divides a sequence between copies of a head of keys: {keys} heads on {cards} cards allow "
        "{choices:or}",
        "not-drafting": "the model has no layers for multi-token prediction, which {method} drafts with",
        "float16": "vLLM does not compute {model_type} in float16; use bfloat16 or float32",
        "too-long": "the model's context is {value} tokens; a longer one needs {overrides}",
        "not-quantised": (
            "the weights have no quantisation {method}; for plain weights there are {known}, or leave it out"
        ),
        "other-class": "it is for models of the architecture {name}",
    },
}


RECHECK: dict[str, dict[str, Text]] = {
    "RecheckReason": {
        "backend": "it is decided for {backend} now",
        "no-such-parser": lambda fields: (
            f"{fields['engine']} has no {FIELDS[fields['field']]} named {fields['parser']}"
        ),
        "new-parser": lambda fields: (
            f"{fields['engine']} has the {FIELDS[fields['field']]} {fields['parser']}, "
            f"which {fields['before']} has not"
        ),
        "not-proved": "not proved now",
        "not-read": "{engine} does not read the template with {parser}: {problem}",
        "read-otherwise": "{says}",
        "new": "new: {says}",
        "changed": "{source} now says {now}; it said {then}",
        "gone": "no longer: {says}",
        "other-importer": "importer {now} weighs the same evidence otherwise than {then} did",
        "weighed-otherwise": "the same evidence is weighed otherwise now",
    },
}


GALLERY: dict[str, dict[str, Text]] = {
    "DatabaseReason": {
        "form": "it has the form sqlite:///FILE or postgresql://USER:PASSWORD@HOST/NAME",
        "own-copy": "PostgreSQL is copied by its own program: pg_dump with the custom format",
    },
    "PublicationReason": {
        "no-receipt": "it has no receipt",
        "rejected": "rejected by {by}, {at:moment}: {note}",
        "not-approved": "nobody has approved it as it is now",
        "edited": "it was edited since it was approved by {by}, {at:moment}",
        "outdated": "its validation does not hold: {why}",
        "never-validated": "it was never validated",
        "failed": "{why}",
        "no-commit": "it names no commit of its model, so its files could change",
        "no-entry": "{problem}",
        "not-for-localai": "LocalAI cannot be given it: {problem}",
        "not-released": "it is ready to be released",
    },
    "KeyNameReason": {
        "line": "it is a line of at most {most} characters",
        "own": "the audit log has the service's own actions under this name",
        "taken": "a key has or had this name, or one that looks like it, and the audit log has it",
    },
}

TEXTS: dict[str, dict[str, Text]] = {**DOCUMENT, **ARGUMENTS, **RECHECK, **GALLERY}
