"""Forms of turns of published models, tried on weights that answer noise to their template.

They choose nothing. Source of each: the published chat templates of the family that it is named after.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, islice, product

from importer.chat_template.markers import SHAPE
from importer.frozen import frozen
from importer.validation.context import Context
from importer.validation.errors import attempt
from importer.validation.prompts import Prompt
from importer.validation.tokens import neutral, tokens_of

ANSWER = 64  # tokens
TRIED = 12  # forms for one question
THOUGHT = 192  # tokens of an answer with a thought
GAPS = ("", "\n", " ")  # between a role and the words: conversions lose or add them


@frozen
class TurnForm:
    """One form: the texts before and behind the words of each role, and ``begin`` once before everything."""

    name: str
    user: str
    user_end: str
    answer: str
    answer_end: str
    begin: str = ""

    @property
    def markers(self) -> tuple[str, ...]:
        """Return what a tokenizer that belongs to the form has as single tokens."""
        text = " ".join((self.begin, self.user, self.user_end, self.answer, self.answer_end))
        return tuple(dict.fromkeys(match[0] for match in SHAPE.finditer(text)))

    def render(self, turns: Sequence[tuple[str, str]]) -> str:
        """Return pairs of role (``user`` or ``assistant``) and words, and the beginning of an answer."""
        frames = {"user": (self.user, self.user_end), "assistant": (self.answer, self.answer_end)}
        written = [f"{frames[role][0]}{words}{frames[role][1]}" for role, words in turns]
        return self.begin + "".join(written) + self.answer


def _roles(name: str, begin: str, role: str, behind: str, end: str) -> TurnForm:
    """Return a form with one frame around the words for a role."""
    user, answer = (f"{role}{word}{behind}" for word in ("user", "assistant"))
    return TurnForm(name, user, end, answer, end, begin)


FORMS: tuple[TurnForm, ...] = (
    _roles("ChatML", "", "<|im_start|>", "\n", "<|im_end|>\n"),
    _roles("Phi-4", "", "<|im_start|>", "<|im_sep|>", "<|im_end|>"),
    _roles("Llama 3", "<|begin_of_text|>", "<|start_header_id|>", "<|end_header_id|>\n\n", "<|eot_id|>"),
    _roles("Llama 4", "<|begin_of_text|>", "<|header_start|>", "<|header_end|>\n\n", "<|eot|>"),
    _roles("Granite", "", "<|start_of_role|>", "<|end_of_role|>", "<|end_of_text|>\n"),
    _roles("Megrez", "", "<|role_start|>", "<|role_end|>", "<|turn_end|>"),
    _roles("OpenBuddy", "", "<|role|>", "<|says|>", "<|end|>\n"),
    _roles("Seed", "", "<seed:bos>", "\n", "<seed:eos>"),
    TurnForm("Mistral", "[INST]", "[/INST]", "", "</s>", "<s>"),
    TurnForm("Llama 2", "[INST] ", " [/INST]", "", " </s>", "<s>"),
    TurnForm(
        "Gemma", "<start_of_turn>user\n", "<end_of_turn>\n", "<start_of_turn>model\n", "<end_of_turn>\n",
        "<bos>",
    ),
    TurnForm("Gemma 4", "<|turn>user\n", "<turn|>\n", "<|turn>model\n", "<turn|>\n", "<bos>"),
    TurnForm("Phi-3", "<|user|>\n", "<|end|>\n", "<|assistant|>\n", "<|end|>\n"),
    TurnForm("Zephyr", "<|user|>\n", "</s>\n", "<|assistant|>\n", "</s>\n"),
    TurnForm("GLM", "<|user|>\n", "", "<|assistant|>", "", "[gMASK]<sop>"),
    TurnForm("Tulu", "<|user|>\n", "\n", "<|assistant|>\n", "<|endoftext|>\n"),
    TurnForm(
        "DeepSeek", "<｜User｜>", "", "<｜Assistant｜>", "<｜end▁of▁sentence｜>", "<｜begin▁of▁sentence｜>"
    ),
    TurnForm(
        "Hunyuan", "<｜hy_User｜>", "", "<｜hy_Assistant｜>", "<｜hy_place▁holder▁no▁2｜>",
        "<｜hy_begin▁of▁sentence｜>",
    ),
    TurnForm(
        "Command R", "<|START_OF_TURN_TOKEN|><|USER_TOKEN|>", "<|END_OF_TURN_TOKEN|>",
        "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>", "<|END_OF_TURN_TOKEN|>", "<BOS_TOKEN>",
    ),
    TurnForm("EXAONE", "[|user|]", "\n", "[|assistant|]", "[|endofturn|]\n"),
    TurnForm(
        "Kimi", "<|im_user|>user<|im_middle|>", "<|im_end|>", "<|im_assistant|>assistant<|im_middle|>",
        "<|im_end|>",
    ),
    TurnForm(
        "Harmony", "<|start|>user<|message|>", "<|end|>", "<|start|>assistant<|channel|>final<|message|>",
        "<|end|>",
    ),
    TurnForm("MiniMax", "]~b]user\n", "[e~[\n", "]~b]ai\n", "[e~[\n", "]~!b["),
    TurnForm("Vicuna", "USER: ", " ", "ASSISTANT:", "</s>"),
    TurnForm("Alpaca", "### Instruction:\n", "\n\n", "### Response:\n", "\n\n"),
    TurnForm("SOLAR", "### User:\n", "\n\n", "### Assistant:\n", "\n\n"),
    TurnForm("plain words", "User: ", "\n\n", "Assistant:", "\n\n"),
)  # fmt: skip


def variants(form: TurnForm) -> Iterator[TurnForm]:
    """Yield the form as it was published, and then with other gaps behind its roles."""
    yield form
    user, answer = (form.user.rstrip(), form.answer.rstrip())
    for one, other in sorted(product(GAPS, repeat=2), key=lambda gaps: gaps[0] != gaps[1]):
        changed = replace(form, user=user + one, answer=answer + other)
        if changed != form:
            yield changed


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
        reply = attempt(partial(ctx.behind, text, max_tokens=most, temperature=0.0, **neutral(ctx)))
        known[text, most] = "" if reply is None else reply.written or reply.content
    return known[text, most]
