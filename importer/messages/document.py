"""Sentences about documents, their names, and the settings that an import is given."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importer.messages import Text

TEXTS: dict[str, dict[str, Text]] = {
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
        "near": "Did you mean {names:or}?",
        "none-near": "No setting has a name like it;",
    },
    "TargetReason": {
        "not-on-apple": "vLLM does not run on Apple's graphics; choose the backend mlx or another device",
        "template-unknown": "how {backend} is started with another chat template is not known",
        "calls-unread": "{backend} reads none of its calls; it reads {known}",
    },
    "DecidingReason": {
        "not-rendered": "it cannot be rendered: {problem}",
        "no-text": "no case gave a text",
        "nothing": "it has no config, no tokenizer settings, no chat template and no weights",
    },
}
