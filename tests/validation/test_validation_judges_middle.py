"""Judging prompts by their tokens, and options, streams and clients by answers that are forced."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import pytest

from importer.demo import MODEL
from importer.engines import tokenizer
from importer.engines.install import Installed
from importer.hub import local
from importer.reasons import Reason
from importer.validation import failures, mutations, prompts
from importer.validation.client import Client
from importer.validation.context import Context
from importer.validation.errors import RequestRefused
from importer.validation.expectations import Expectations
from importer.validation.mutations import Alteration
from importer.validation.outcome import Pass
from importer.validation.probes.prompt import (
    Sent,
    _apart,
    _chosen,
    _of_an_older_server,
    _of_equal_counts,
    _rendered_alike,
    explanation,
    numbers_of,
    tokens_of,
)
from importer.validation.probes.sampling import judge_limit, judge_streamed, options_kept
from importer.validation.prompts import NoncePrompt, Part
from importer.validation.remedy import Remedy
from importer.validation.rendering import PromptRendering
from importer.validation.reply import Reply, Usage
from importer.validation.tokens import Word, repeats, reply_letters, request
from tests.judging import words

ONE, OTHER = Word(7, " weather"), Word(9, "Zo\u00eb")


def answer(text: str, tokens: int | None = 7, prompt: int = 20, finish: str = "length") -> Reply:
    return Reply(text, "", (), finish, Usage(prompt, tokens))


@pytest.fixture
def ctx(mlx_engine: Installed) -> Iterator[Context]:
    with PromptRendering(local.resolve(str(MODEL), MODEL)) as render:
        tokens = tokenizer.asker(mlx_engine.python, MODEL)
        promise = Expectations(tool_parser="any", context=2048)
        yield Context(promise, "m", Client("http://127.0.0.1:1"), render=render, tokens=tokens)


def test_an_answer_of_one_word_is_counted_in_words() -> None:
    assert repeats(answer("weather weather\nweather"), ONE) == 3
    assert repeats(Reply("weather", "weather "), ONE) == 2
    assert repeats(answer("weather sun"), ONE) == repeats(answer(""), ONE) == 0
    assert reply_letters(Reply("b c", "a ")) == "abc"


def test_penalties_of_the_document_rule_no_forced_answer() -> None:
    ctx = Context(Expectations(sampling={"top_k": 1, "seed": 4}), "m", Client("http://127.0.0.1:1"))
    assert request(ctx, [ONE], 3) == {"logit_bias": {"7": 100}, "max_tokens": 3, "top_k": 0}


def test_counts_that_an_engine_gets_wrong_are_not_judged() -> None:
    assert isinstance(judge_limit(answer(" weather" * 7, 5), ONE, 7, counts=False), Pass)
    named = judge_limit(answer(" weather" * 40, 40), ONE, 7, counts=True, option="renamed")
    assert "renamed" in words(named)


@pytest.mark.parametrize(
    ("reply", "remedy"),
    [
        (answer("Zo\u00eb" * 96, 96), None),
        (answer("Zo\u00eb" * 24, 24), Remedy.NO_CAP),
        (answer("Zo\u00eb" * 5 + "Zo\ufffd\ufffd", 96), Remedy.WHOLE_ANSWERS),
        (answer("Zo" * 96, 96), Remedy.ANSWERS_UNALTERED),
        (answer("Zo\\u00eb" * 96, 96), Remedy.ANSWERS_UNALTERED),
        (answer("o\u00eb" + "Zo\u00eb" * 95, 96), Remedy.WHOLE_ANSWERS),
        (answer("weather" * 96, 96), Remedy.ANSWERS_UNALTERED),
        (answer("Zo\u00eb" * 96, None), Remedy.HEED_OPTIONS),
    ],
)
def test_a_long_stream_comes_whole(reply: Reply, remedy: Remedy | None) -> None:
    found = judge_streamed(reply, OTHER, 96, usage=True)
    assert (found.remedy.kind if found.remedy else None) is remedy


@pytest.mark.parametrize(
    ("seconds", "silent", "held"),
    [(0.7, 0.02, True), (0.7, 0.69, False), (0.7, math.inf, False), (3.5, math.inf, True)],
)
def test_a_busy_machine_holds_no_stream_back(seconds: float, silent: float, held: bool) -> None:
    assert options_kept(seconds, silent) is held


def sent(part: Part, size: int, **more: object) -> Sent:
    prompt = prompts.long("again")[0].prompt
    turn = {"role": "user", "content": "a" * size}
    one = Sent(NoncePrompt(part, replace(prompt, messages=(turn,))), tuple(range(size)), counted=size)
    return replace(one, **more)  # type: ignore[arg-type]


@pytest.mark.engine
def test_text_in_parts_is_another_form_that_an_older_server_refuses_and_a_broken_one_alters(
    ctx: Context,
) -> None:
    [one] = [each for each in prompts.short({}) if each.part is Part.IN_PARTS]
    assert one.sent is not None
    [told] = [turn["content"] for turn in one.prompt.messages]
    [parts] = [turn["content"] for turn in one.sent.messages]
    assert len(parts) == 2
    assert "".join(part["text"] for part in parts) == told
    size = tuple(range(40))
    assert not Sent(one, size, counted=41).differs  # a break between the two
    assert Sent(one, size, counted=20).differs  # the second one is away
    assert Sent(one, size, counted=60).differs  # the list itself is written
    plain = Sent(one, (1, 2, 3), refused=RequestRefused(400, "text alone"))
    assert _of_an_older_server(plain)
    assert not _of_an_older_server(replace(plain, refused=RequestRefused(500, "broke")))
    assert not _rendered_alike(ctx, [Sent(one, (1, 2, 3), counted=9)])


def test_numbers_of_tokens_tell_what_a_count_does_not() -> None:
    one = sent(Part.PLAIN, 3)
    assert not one.differs
    assert not replace(one, numbers=(0, 1, 2)).differs
    assert replace(one, numbers=(0, 2, 1)).differs
    assert numbers_of(Reply(raw=({"prompt_token_ids": [0, 1]},))) == (0, 1)
    assert numbers_of(Reply(raw=({"prompt_token_ids": None},))) is None


@pytest.mark.engine
def test_each_alteration_changes_a_count_and_is_named_by_it(ctx: Context) -> None:
    chosen = _chosen(ctx)
    assert {one.nonce.part for one in chosen} == set(Part) - {Part.ORDINARY}
    explained: set[Reason] = set()
    for alteration, change in mutations.CHANGES:
        wrong = []
        for one in chosen:
            told = change(one.nonce.prompt)
            other = told if isinstance(told, str) else failures.text_now(ctx, told) or ""
            [ids] = tokens_of(ctx, (other,)) or ((),)
            if len(ids) != len(one.tokens):
                wrong.append(replace(one, counted=len(ids)))
        if alteration.kind is Alteration.ANSWERS_AS_USER:
            assert not wrong  # both roles are one token: ``_of_equal_counts`` shows it
            continue
        assert wrong, alteration
        if explanation(ctx, wrong) is alteration:
            explained.add(alteration)
    assert {reason.kind for reason in explained} == set(Alteration) - {Alteration.ANSWERS_AS_USER}
    dropped = {reason.fields["keywords"] for reason in explained if "keywords" in reason.fields}
    assert len(dropped) > len(mutations.KEYWORDS) - 2  # two keywords may have as many tokens


@pytest.mark.engine
@pytest.mark.parametrize(
    ("part", "alteration"),
    [(Part.SCHEMAS, None), (Part.SCHEMAS, Alteration.KEYS_SORTED), (Part.ROLES, Alteration.ANSWERS_AS_USER)],
)
def test_an_alteration_is_seen_where_no_count_shows_it(
    ctx: Context, part: Part, alteration: Alteration | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = next(one for one in _chosen(ctx) if one.nonce.part is part)
    change = next((made for reason, made in mutations.CHANGES if reason.kind is alteration), None)
    sent = one.nonce.prompt if change is None else change(one.nonce.prompt)
    assert isinstance(sent, prompts.Prompt)

    def drawn(text: object) -> Reply:
        tops = [{"token": token, "logprob": -0.5 - n} for n, token in enumerate((str(text), "b"))]
        return Reply("a", logprobs=({"top_logprobs": tops},))

    monkeypatch.setattr(Client, "chat", lambda *_: drawn(ctx.rendered(sent)))
    monkeypatch.setattr(Client, "completion", lambda _self, body, _log: drawn(body["prompt"]))
    seen = _of_equal_counts(ctx, [one])
    if alteration is None:
        assert seen is None
        return
    assert seen is not None
    assert seen.remedy is not None
    assert seen.remedy.fields["what"].kind is alteration


TOP = {"token": "a", "logprob": -1}


@pytest.mark.parametrize(
    "entries",
    [
        (),
        ("a",),
        ({"top_logprobs": []},),
        ({"top_logprobs": [{"token": "a"}, {"logprob": -1}, "a"]},),
        ({"top_logprobs": [{"token": "a", "logprob": math.nan}, {"token": ["a"], "logprob": 10**400}]},),
    ],
)
def test_answers_without_tokens_are_infinitely_apart(entries: tuple[object, ...]) -> None:
    shown, none = Reply(logprobs=({"top_logprobs": [TOP, "a"]},)), Reply(logprobs=entries)
    assert (_apart(none, shown), _apart(shown, none), _apart(shown, shown)) == (math.inf, math.inf, 0)
