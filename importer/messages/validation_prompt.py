"""Sentences about prompts, templates and tokenizers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importer.messages import Text

TEXTS: dict[str, dict[str, Text]] = {
    "PromptReason": {
        "begins-twice": "the template writes {bos} twice",
        "begins-once": "begins once",
        "nothing-taken": "no variable is the engine's own",
        "taken": "{variable} is the engine's to say to the template",
        "turn-begun": "the assistant's turn is begun",
        "no-turn": "the template begins no turn of the assistant, though {shown!r} stands before its words",
        "proved": "the template is the one that was proved",
        "all-known": "every variable is known",
        "unknown": "the template does not know {variable}: it changes nothing",
        "started": "the engine was started with the document's template variables",
        "not-started": (
            "the prompt has {plain} tokens, and {told} where a request names the document's variables"
        ),
        "history-alike": "calls and results are rendered as the template does",
        "history-differs": (
            "calls and results take {more} tokens, and {rendered} as the template renders them"
        ),
        "taken-for-yes": "the template takes {variable}, the text {value!r}, for yes",
        "switches-heeded": "no switch is taken for its contrary",
        "counted": "{tokens} tokens",
        "differs": "the prompt has {chat} tokens, and what the template renders {rendered}",
        "another-read": "the engine reads another template",
    },
    "TurnsReason": {
        "tools-refused": "the template refuses tools",
        "breaks": "the chat template breaks: {says}",
        "refused": "the template refuses a conversation: {says}",
        "all-there": "every turn is in the prompt",
        "moved": "what the {role} said is not where it was said: {words!r}",
        "lost": "what the {role} said is not in the prompt: {words!r}",
        "for-a-web-page": "the template writes {written} for a letter, as for a web page",
        "for-ascii": "the template writes {written} for a letter, as for a reader of ASCII alone",
        "left-out": "see what is left out",
        "not-ended": "nothing ends an earlier answer in the prompt: {behind!r} stands behind it",
        "system-once": "the system speaks once",
        "system-twice": "what the system said is {times} times in the prompt",
        "tag-harmless": "a tag of a user's cuts nothing off",
        "tag-cuts": "where a user writes </think>, the rest is not in the prompt: {words!r}",
        "empty-alike": "a call without arguments is written as others are",
        "empty-differs": "a call without arguments is no JSON in the prompt, and one with arguments is",
        "begin-alike": "answers begin alike",
        "begin-differs": "earlier answers begin with {earlier!r}, a new one with {new!r}",
        "letters-kept": "letters are themselves",
        "no-clock": "the same an hour later",
        "clock": "the template writes the time of day: no prompt begins like another, and no cache helps",
    },
    "SystemRoleReason": {
        "unseen": "the system's words do not reach the prompt",
        "counted": "prompts of {short} and {longer} tokens",
    },
    "ImagesReason": {
        "not-promised": "the document says nothing of images",
        "not-counted": "all are answered; whether an image is seen, no count of tokens tells",
        "no-more": "{more}: {tokens} tokens, {less}: {fewer}",
        "unseen": "the image does not reach the prompt: {counts}",
        "counted": "{name} {tokens}",
        "seen": "tokens of the prompt: {counts}",
    },
    "RoundTripReason": {
        "no-tokens": "/tokenize gives no list of tokens",
        "count-differs": "/tokenize counts {count} and gives {tokens}",
        "no-text": "/detokenize gives no text",
        "changed": "{text!r} came back as {back!r}",
        "alike": "{tokens} tokens there and back",
    },
    "TokenizerReason": {
        "no-tokenizer": "there is no tokenizer.json that could be asked",
        "kept": "every letter is kept",
        "changed": "the tokenizer makes {back!r} of {text!r}",
        "unused": "of {sampled} words of its vocabulary the tokenizer makes {reached}",
        "used": "{reached} of {sampled} words of the vocabulary are in use",
        "in-place": "no marker stands in another's place",
        "crossed": "the model closes a thought with {marker}: added tokens have each other's number",
    },
    "FilesReason": {
        "not-known": "nobody wrote down what the files were",
        "same": "{count} files are as they were",
        "changed": "of {files:and} the document was made with another version",
    },
}
