"""The document's stop words end answers, and stand in none of them."""

from __future__ import annotations

from collections.abc import Sequence

from importer.validation.context import Context
from importer.validation.outcome import Fail, Outcome, Pass
from importer.validation.promise import Promise, no_chat
from importer.validation.prompts import COUNT, GREETING, SUM
from importer.validation.reply import Reply

NAME = "stop-words"
LESSON = "A stop word that was meant for another model cut answers in the middle, with finish_reason stop."
ASKED = (GREETING, SUM, COUNT)


def needs(promise: Promise) -> str | None:
    """A chat, and stop words that clients send."""
    return no_chat(promise) or (None if words(promise) else "the document has no stop words to send")


def words(promise: Promise) -> tuple[str, ...]:
    """What clients send."""
    sent = promise.client_sampling.get("stop") or ()
    return (sent,) if isinstance(sent, str) else tuple(map(str, sent))


def run(ctx: Context) -> Outcome:
    """Ask without them: nothing that is answered may hold one."""
    return judge([ctx.ask(prompt, stop=None) for prompt in ASKED], words(ctx.promise))


def judge(replies: Sequence[Reply], stops: tuple[str, ...]) -> Outcome:
    """Answers that no stop word has ended."""
    for reply in replies:
        for place, text in (("answer", reply.content), ("thought", reply.reasoning)):
            word = next((w for w in stops if w in text), None)
            after = text.partition(word)[2].strip() if word else ""
            if word and after:
                return Fail(
                    f"the stop word {word!r} stands within an {place}, before {after[:40]!r}"
                    if place == "answer"
                    else f"the stop word {word!r} stands within a thought, before {after[:40]!r}",
                    "configuration",
                    f"Take {word!r} out of stopwords.",
                    trials=len(replies),
                )
    return Pass(f"no stop word within {len(replies)} answers", trials=len(replies))
