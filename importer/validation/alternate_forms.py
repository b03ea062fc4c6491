"""Whether weights answer right to turns, or to tools, in another form than their template's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, islice

from importer.validation.context import Context
from importer.validation.errors import ExchangeError
from importer.validation.prompts import Prompt
from importer.validation.tokens import neutral, tokens_of
from importer.validation.turn_forms import FORMS, TurnForm, variants

ANSWER = 64  # tokens
TRIED = 12  # forms for one question
THOUGHT = 192  # tokens of an answer with a thought


def answering(ctx: Context, prompts: Sequence[Prompt], *, noise: bool) -> TurnForm | None:
    """Return the first form in which all questions are answered right, and not that of the template.

    ``noise``  whether all of them are answered wrong to the template; else gaps that no model was published
    with prove nothing, for damaged weights answer some right to any prompt.
    ``None`` where there is none, or no completion can be asked for.
    """
    if ctx.promise.lacks("completions") or 2 * _own_right(ctx, prompts, ANSWER) > len(prompts):
        return None
    forms = _candidates(ctx, prompts[0], gaps=noise)
    found = (form for form in forms if all(_right(ctx, text_of(form, p), p) for p in prompts))
    return next(found, None)


def right_by_itself(ctx: Context, prompts: Sequence[Prompt]) -> bool:
    """Return whether the weights answer all questions right behind the template's own text."""
    lacks = ctx.promise.lacks("completions")
    return lacks is None and _own_right(ctx, prompts, THOUGHT) == len(prompts)


def _candidates(ctx: Context, prompt: Prompt, *, gaps: bool) -> Iterator[TurnForm]:
    """Yield forms whose markers are tokens of the model, without that of its template: as published first."""
    served = ctx.rendered(prompt)
    known = [form for form in FORMS if _has(ctx, form.markers)]
    others = (other for form in known for other in islice(variants(form), 1, None)) if gaps else ()
    tried = (form for form in chain(known, others) if text_of(form, prompt) != served)
    yield from islice(tried, TRIED)


def _has(ctx: Context, markers: tuple[str, ...]) -> bool:
    """Return whether each marker is one token; forms without any are for all."""
    numbers = tokens_of(ctx, markers) if markers else ()
    return numbers is not None and all(len(ids) == 1 for ids in numbers)


def text_of(form: TurnForm, prompt: Prompt) -> str:
    """Return a conversation without tools in a form."""
    return form.render([(str(m["role"]), str(m["content"])) for m in prompt.messages])


def _own_right(ctx: Context, prompts: Sequence[Prompt], most: int) -> int:
    """Return to how many questions in the template's own text the answers are right: where they are to most,
    no form of it is at fault.
    """
    texts = [ctx.rendered(prompt) or "" for prompt in prompts]
    return sum(bool(text) and _right(ctx, text, p, most) for text, p in zip(texts, prompts, strict=True))


def _right(ctx: Context, text: str, prompt: Prompt, most: int = ANSWER) -> bool:
    return prompt.answered_by(greedily(ctx, text, most))


def greedily(ctx: Context, text: str, most: int) -> str:
    """Return what the weights write behind a text, in ``most`` tokens; nothing where they were not asked."""
    known = ctx.shared.written
    if (text, most) not in known:
        known[text, most] = _asked(ctx, text, most)
    return known[text, most]


def _asked(ctx: Context, text: str, most: int) -> str:
    try:
        reply = ctx.behind(text, max_tokens=most, temperature=0.0, **neutral(ctx))
    except ExchangeError:
        return ""
    return reply.written or reply.content
