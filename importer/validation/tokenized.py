"""What the tokenizer beside the weights makes of what is asked, without the engine."""

from __future__ import annotations

from unicodedata import normalize

from importer.engines.tokenizer import Tokenized
from importer.reasons import Reason
from importer.validation.context import Context
from importer.validation.prompts import GREETING
from importer.validation.remedy import Remedy

TEXT = "Say hello to Zo\u00eb, from K\u00f6ln!"
OWN = Reason(Remedy.OWN_TOKENIZER)


def asked(ctx: Context) -> Tokenized | None:
    """Return what comes of TEXT and of a prompt; ``None`` where nobody can tell."""
    if ctx.tokens is None:
        return None
    found = ctx.tokens((TEXT, ctx.rendered(GREETING) or TEXT))
    return found if found is not None and len(found.back) == 2 else None


def changed_prompt(ctx: Context) -> str | None:
    """Return what the tokenizer makes of a prompt where that is another text; ``None`` where it is the same.

    Whole tokenizers take spaces away beside special tokens, and put some there where tokens are not bytes.
    """
    found, prompt = asked(ctx), ctx.rendered(GREETING)
    if found is None or prompt is None:
        return None
    back = found.back[1]
    spaced = found.exact and len(back) > len(prompt)
    return back if spaced or letters(back) != letters(prompt) else None


def letters(text: str) -> str:
    """Return the text without its spaces."""
    return "".join(normalize("NFKC", text).split())
