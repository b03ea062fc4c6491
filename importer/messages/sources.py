"""Sentences about the Hub, its answers, and files that were not read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importer.messages import Text


HUB: dict[str, dict[str, Text]] = {
    "BodyReason": {
        "coding": "it is packed in a way that was not asked for ({coding})",
        "damaged": "what it is packed in is damaged",
        "cut": "the answer was cut off",
    },
    "AddressReason": {
        "form": "it has the form https://HOST/PATH",
        "user": "it has a user name; the signature takes its place",
        "plain": "http is not encrypted",
        "unknown": "the name {host} has no address",
        "private": "{host} is a private address",
        "failed": "{host} could not be reached ({error})",
        "no-answer": "{host} sent no whole head of an answer within {seconds:.0f} s and {most:,} bytes",
    },
    "ExchangeReason": {
        "no-connection": "{says}",
        "not-connected": "no connection within {seconds:.0f} s",
        "silent": "no answer within {seconds:.0f} s",
        "slow": "the answer took longer than {seconds:.0f} s",
        "cut": "the answer was cut off",
        "failed": "the exchange failed ({name})",
        "short": "{have} of {size} bytes arrived",
        "hops": "it was redirected more than {hops} times",
        "broke-off": "the download broke off ({name})",
    },
    "RelatedReason": {
        "offline": "the Hub was not asked, and no answer of it is stored",
        "failed": "{problem}",
        "malformed": "the Hub's answer could not be read",
    },
    "ApiReason": {"refused": "it refused with status {status}", "listing": "the list of files"},
    "WaitReason": {"seconds": "{seconds:.0f} seconds", "untold": "a few minutes"},
    "ListingReason": {
        "long": "it is longer than {limit} bytes",
        "values": "it holds more than {limit:,} values",
        "files": "it lists {count:,} files, and {limit:,} are the most that are read",
        "not-text": "it is not UTF-8 text",
        "no-commit": "it names no commit",
        "other-commit": "it describes commit {commit}",
        "json": "{problem}",
    },
    "ListReason": {
        "long": "one entry is longer than {limit:,} bytes",
        "values": "it holds more than {limit:,} values",
        "no-list": "it is no JSON list",
        "no-name": "{name!r} is not the name of an organisation or a user on the Hub",
    },
    "PagingReason": {
        "loop": "this page of the list came before",
        "idle": "more than {limit:,} pages of the list have nothing new",
        "pages": "the list has more than {limit:,} pages",
        "entries": "the list has more than {limit:,} entries",
        "bytes": "the list has more than {limit:,} bytes",
        "seconds": "the list takes more than {limit:,.0f} seconds",
    },
    "FilterReason": {
        "form": "{text!r} does not have the form KEY=VALUE",
        "unknown": "{name!r} is no filter; filters: {known}",
        "twice": "{name} is given twice",
        "number": "{name} takes a whole number, not {value!r}",
        "date": "{name} takes a day such as 2026-01-31, not {value!r}",
        "gated": "{name} takes yes or no, not {value!r}",
        "word": "{name} takes one word of the Hub, not {value!r}",
        "sort": "{name} takes one of {known}, not {value!r}",
        "long": "the value of {name} has more than {most} characters",
    },
    "JsonReason": {
        "deep": "it is nested too deep",
        "broken": "{says}",
        "marked": "it begins with a byte order mark, so engines refuse it; save it without one",
        "no-object": "it is not an object",
    },
    "UnreadReason": {
        "not-listed": "the repository does not list it",
        "too-large": "it is larger than {limit}",
        "not-among": "it is not among the {most} files read",
        "not-text": "it is not UTF-8 text",
        "outside": "it links to a place outside the directory",
        "no-file": "it is not a plain file",
        "system": "{says}",
        "not-asked": "the Hub was not asked, so its tags and the card are not known",
        "not-kept": "it is not in the cache",
        "refused": "it is listed, but the Hub answered {status} for it",
    },
    "HeaderReason": {
        "short": "it is shorter than the eight bytes that every file begins with",
        "empty": "its header is empty",
        "beyond": "its header claims {said} bytes, and the file has {size}",
        "long": "its header claims {said} bytes, and {limit} is the most that is read",
        "values": "its header holds more than {limit:,} values",
        "no-json": "its header is not JSON",
        "no-object": "its header is not an object",
        "overlap": "its tensors overlap at byte {byte}",
        "gap": "its tensors leave a gap at byte {byte}",
        "room": "its tensors take {taken} bytes, and the file has {held} for them",
        "twice": "its header names something twice",
        "not-described": "its header does not describe {name!r}",
        "dtype": "{name!r} has the unknown dtype {dtype!r}",
        "shape": "{name!r} has no usable shape",
        "offsets": "{name!r} has no usable offsets",
        "size": "{name!r} takes {size} bytes, which its shape and dtype do not",
    },
    "WeightsReason": {
        "files": "it is one of more than {limit} files",
        "total": "its header and the others are larger than {limit} bytes",
        "twice": "{name!r} is in another file as well",
        "empty": "it is empty",
        "longer": "it is longer than the part that was asked for",
        "whole": "it is the whole file where a part was asked for",
        "unsaid": "it does not say which part it is",
        "other": "it is another part than was asked for",
    },
    "FileRemedy": {
        "beside": "Import {repo} itself: it has safetensors weights, too.",
        "made-from": "Import {repo}, the repository that it was made from.",
        "original": "Import the repository with the original safetensors weights; the card does not name it.",
    },
    "ReferenceReason": {
        "empty": "it is empty",
        "long": "it is longer than {limit} characters",
        "control": "it contains control characters",
        "no-revisions": "a directory has no revisions",
        "no-home": "the home directory is not known",
        "unknown-url": "this kind of URL is not known",
        "other-kind": "it names a {what}, not a model",
        "malformed-url": "it is not a well-formed URL",
        "user-name": "a URL with a user name in it is not accepted",
        "other-host": "{host} is not the Hub; if it is yours, set HF_ENDPOINT",
        "no-repository": "it names no repository",
        "no-owner": "the owner is missing (ids of one word are a legacy form: gpt2 is openai-community/gpt2)",
        "slashes": "an id is owner/name, with one slash",
        "characters": "{part!r} must be 1 to 96 letters, digits, '_', and inside also '.' or '-'",
        "doubled": "{part!r} contains '--' or '..'",
        "git": "an id does not end in '.git'",
        "empty-revision": "the revision is empty",
        "revision": "{revision!r} cannot be the name of a revision",
    },
}


PLACES: dict[str, dict[str, Text]] = {
    "GrantReason": {
        "code": "Running code that comes with a model ({subject})",
        "folder": "Reading the folder {subject}",
        "drafter": "Drafting with the second model {subject}",
        "setting": "{subject} ({effect})",
    },
    "Effect": {
        "code": "it loads code",
        "file": "it writes, reads or removes files of the engine's machine",
        "place": "it names a port, a host or a download site",
        "protection": "it switches a protection off",
        "text": "a text that the engine interprets: it may run code, open files or name hosts",
        "unreviewed": "importer does not know its effect: it may run code, open files or name hosts",
    },
}


SANDBOX: dict[str, dict[str, Text]] = {
    "AnalysisReason": {
        "nothing": "it names no architecture and lists no weights",
    },
    "SandboxReason": {
        "time": "it takes more than {seconds:g} s of processor time",
        "memory": "it needs more than {size:,} MiB of memory",
        "output": "what is made of it is larger than {size:,} MiB",
        "depth": "it is nested too deep",
    },
}


def _syntax(fields: Mapping[str, Any]) -> str:
    """The reader's own words, and what it was in the middle of."""
    problem = fields["problem"] or "it is not YAML"
    return (
        f"{problem}, {fields['context']} that begins on line {fields['since']}"
        if fields["since"]
        else problem
    )


YAML: dict[str, dict[str, Text]] = {
    "YamlReason": {
        "syntax": _syntax,
        "character": "the character U+{code} is not allowed; write it as an escape",
        "long": "it has more than {most:,} characters",
        "deep": "it is nested deeper than {most} levels",
        "many": "it holds more than {most:,} values, those of an alias counted each time",
        "endless": "the alias {name!r} stands inside of what it stands for",
        "empty": "it holds nothing",
        "several": "a second document begins here",
        "alias": "found undefined alias {name!r}",
        "anchor": "found duplicate anchor {name!r}",
        "tag": "could not determine a constructor for the tag {tag!r}",
        "value": "{value!r} is not of the type {tag}",
        "key": "a list or a map is no key",
        "number-key": "{key} is no key",
        "twice": "{key}: it stands on line {line} already",
        "merge": "only maps can be merged",
    },
}

TEXTS: dict[str, dict[str, Text]] = {**HUB, **PLACES, **SANDBOX, **YAML}
