"""Forms of turns that published models were trained with: what stands around the words of each role.

They are tried on weights that answer noise to their template, and choose nothing. Source of each: the
published chat templates of the family that it is named after.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

from importer.chat_template.markers import SHAPE
from importer.frozen import frozen

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
