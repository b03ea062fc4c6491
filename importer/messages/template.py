"""Sentences about chat templates: what one does not show, and why another cannot stand in its place."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importer.messages import Text

TEXTS: dict[str, dict[str, Text]] = {
    "TemplateProblem": {
        "answer-absent": "the answer is not in what the template writes",
        "arguments-absent": "arguments are not in what the template writes",
        "arguments-garbled": "the template writes the argument so that nobody could read it back",
        "block-closed": "the prompt closes the block before anything is written",
        "call-absent": "the call is not in what the template writes",
        "message-printed": "the template prints the message itself",
        "reasoning-dropped": "reasoning beside a call is dropped",
        "refused": "{words}",
        "text-dropped": "text beside the call is dropped",
    },
    "RefusalReason": {
        "length": "writes more than {limit:,} characters",
        "memory": "needs more memory than a rendering may take",
        "raised": "{words}",
        "time": "took more than {seconds:g} s of processor time",
    },
    "OverrideReason": {
        "characters": "it holds characters that no file of text has",
        "empty": "the file is empty",
        "no-file": "there is no such file, and the names are {known}",
        "not-text": "the file is not UTF-8 text",
        "nothing-to-dress": "the model has no chat template of its own whose turns could be kept; "
        "give a file",
        "too-long": "the file holds more than {limit:,} characters",
        "unreadable": "the file cannot be read ({problem})",
    },
    "DressReason": {
        "changed": "it would change what the model's own template writes without tools",
        "lost": "the model's own template does not show all that it is given, {text!r} is lost",
        "refused": "the model's own template does not go with it: {words}",
    },
}
