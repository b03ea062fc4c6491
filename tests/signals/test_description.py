"""Descriptions out of model cards: what is one, what is none, and what a hostile card makes of it."""

from __future__ import annotations

import re
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from importer.analysis import Question
from importer.app.session import ImportSession
from importer.hub.snapshot import RepoFile, Snapshot
from importer.signals.card import plain
from importer.signals.description import MOST, description
from importer.signals.engine_capabilities import Machine

IT = "Tiny is a language model with eight layers that answers questions about trains."
LINKED = f"🚂 **{IT}**".replace("language model", "[language model](https://a.example)").replace(
    "eight", "`eight`"
)
MARKUP = re.compile(r"<[A-Za-z/!?]|\]\(|!\[|\]\[|https?://")


def read(text: str) -> str | None:
    return description(Snapshot("r", "acme/thing", None, (), {"README.md": text}))


@pytest.mark.parametrize(
    "card",
    [
        IT,
        f"---\nlicense: mit\ntags:\n- a\n---\n\n# Tiny\n\n{IT}\n\nMore words about it stand here.\n",
        f"# Tiny\n\n[![ci](https://a.example/b.svg)](https://a.example) ![x](y.png)\n\n{IT}",
        f'<div align="center">\n<img src="logo.png">\n</div>\n<hr>\n<h1>Tiny</h1>\n<p>{IT}</p>',
        f'<p><a href="x">Paper</a> | <a href="y">Blog</a> | <a href="z">Discord</a></p>\n\n{IT}',
        f"# Tiny\n\n| size | layers |\n|---|---|\n| 1B | 8 |\n\n{IT}",
        f"# Tiny\n\n```python\nprint('a model that is a sentence of eight words')\n```\n\n{IT}",
        f"# Tiny\n\n> [!NOTE]\n> Read the licence before you use this model for anything at all.\n\n{IT}",
        f"<style>\n.a {{ color: red; and more words that make a sentence of it }}\n</style>\n{IT}",
        f"<script>alert('a script with quite many words in it')</script>\n\n{IT}",
        f"<details><summary>Old news</summary>All that was new last year, in one sentence.</details>\n\n{IT}",
        f"# Tiny\n\nOriginal model: [Tiny](https://a.example) by the people of Acme in Europe\n\n{IT}",
        f"# Tiny\n\nPlease see our paper for all that you want to know about this model.\n\n{IT}",
        f"# Tiny\n\n## About it\n\n{IT}\n\n## Licence\n\nThe weights are under a licence of our own words.",
        LINKED,
        IT.replace(" ", "&nbsp;", 3),
        f"{IT} \u202e\u2066\u200b\x00\x1b[0m".replace("[0m", ""),
        f"{IT} It has these parts:\n\n- one\n- two",
    ],
)  # fmt: skip
def test_the_first_plain_paragraph_is_the_description(card: str) -> None:
    assert read(card) == IT


@pytest.mark.parametrize(
    "card",
    [
        "",
        "---\nlicense: mit\ntags:\n- a language model that answers questions about trains\n---\n",
        "Tiny, a model.",
        "[One](https://a.example/1) [two of the words](https://a.example/2) [and three more](http://a.example)",
        "https://a.example/a https://a.example/b https://a.example/c https://a.example/d and more",
        "- an item with as many words as a description has",
        "```\na fence that is never closed, with as many words as a description has\n",
        "Here are some of the models that were merged into this one here:",
        "[More Information Needed] about the model and all that it can do for you",
        "{{ model_summary | default('a summary of the model in a few words', true) }}",
        "a = 1; b = 2; c = {d: 3}; e = <f>; g = {h: 4}; i = 5; j = {k: 6} and some more words",
        "An unfinished <a href='https://a.example tag with as many words as a description has",
        "&lt;img src=x onerror=alert(1)&gt; with as many words as any description could have",
    ],
)
def test_what_describes_nothing_is_no_description(card: str) -> None:
    assert read(card) is None


@pytest.mark.parametrize(
    "text",
    [
        "Tiny ist ein Sprachmodell mit acht Schichten, das Fragen über Eisenbahnen beantwortet.",
        "Tiny は鉄道についての質問に答える、八層からなる小さな言語モデルです。日本語と英語に対応しています。",
        "小火车是一个八层的语言模型，它回答关于铁路、车站和时刻表的各种问题，并支持中文与英文。",
        "نموذج لغوي صغير من ثماني طبقات يجيب عن الأسئلة المتعلقة بالقطارات والسكك الحديدية.",
        "यह आठ परतों वाला एक छोटा भाषा मॉडल है जो रेलगाड़ियों के बारे में प्रश्नों के उत्तर देता है।",
    ],
)
def test_a_card_may_be_in_any_language(text: str) -> None:
    assert read(f"# Tiny\n\n{text}") == plain(text)  # in plain punctuation, as the whole card is read


def test_a_long_paragraph_ends_with_a_sentence_or_a_word() -> None:
    long = read(" ".join([IT] * 100))
    assert long is not None
    assert (long.replace(IT, "").strip(), len(long) <= MOST) == ("", True)
    words = read("word " * 2000)
    assert words is not None
    assert (words.endswith("word…"), len(words) <= MOST) == (True, True)
    assert len(read("x" * 10_000 + " and a few more words than six") or "") <= MOST


pieces = st.sampled_from(
    ["<", ">", "</", "<a href='", "'>", "</a>", "<script>", "</script>", "<!--", "-->", "[", "](", ")", "![",
     "https://a.example/", "&lt;", "&#60;img", "\u202e", "\u2066", "\x00", "\u0336", "\ud7ff", "word ",
     "Model. ", "\n", "\n\n", "# ", "- ", "> ", "|", "---\n", "```", "**", "_", ":", "…", "　", "模型", "<p>",
     "</p>", "{", "}"]
)  # fmt: skip


def test_marks_are_not_piled_up() -> None:
    piled = read(IT.replace("Tiny", "T" + "\u0336" * 100 + "iny"))
    assert piled is not None
    assert piled.count("\u0336") == 4


@given(st.one_of(st.text(max_size=600), st.lists(pieces, max_size=120).map("".join)))
@example("# T\n\n" + "[a](b" * 50 + IT)
@example("[" * 400 + IT + "](x)" * 400)
def test_any_card_gives_a_line_of_plain_text_or_nothing(card: str) -> None:
    found = read(f"{card}\n\n{IT}")
    for text in (found, read(card)):
        if text is None:
            continue
        assert 0 < len(text) <= MOST
        assert text == " ".join(text.split())
        assert not MARKUP.search(text), text
        assert not [c for c in text if unicodedata.category(c)[0] == "C" and c not in "\u200c\u200d"]
        assert read(text) in (text, None)  # nothing appears by a second reading


def test_a_card_is_read_in_the_sandbox() -> None:
    files = {"config.json": '{"model_type": "llama"}', "README.md": f"# Tiny\n\n{IT}"}
    snapshot = Snapshot("r", "acme/thing", "0" * 40, tuple(RepoFile(p, 1) for p in files), files)
    with ImportSession(proves=False) as session:
        analysis = session.analyse(Question(snapshot, "linux", Machine("cuda")))
    assert analysis.description == IT
