"""What may be typed to name a model, and what is refused."""

from __future__ import annotations

import string
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from importer.errors import Setting, UsageError
from importer.hub.reference import Reference, check_whole, parse, without_scheme


@pytest.fixture(autouse=True)
def _public_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HF_ENDPOINT", raising=False)


REPOSITORIES = [
    ("Qwen/Qwen3-8B", "Qwen/Qwen3-8B", None),
    ("a_b/_c.d-e", "a_b/_c.d-e", None),
    ("Qwen/Qwen3-8B@main", "Qwen/Qwen3-8B", "main"),
    ("Qwen/Qwen3-8B@refs/pr/1", "Qwen/Qwen3-8B", "refs/pr/1"),
    ("hf://models/Qwen/Qwen3-8B@v1", "Qwen/Qwen3-8B", "v1"),
    ("hf://Qwen/Qwen3-8B/tree/v1.0", "Qwen/Qwen3-8B", "v1.0"),
    ("hf://Qwen/Qwen3-8B/tree/refs/pr/12/sub", "Qwen/Qwen3-8B", "refs/pr/12"),
    ("huggingface://Qwen/Qwen3-8B/model.safetensors", "Qwen/Qwen3-8B", None),
    ("http://hf.co/Qwen/Qwen3-8B?library=vllm#usage", "Qwen/Qwen3-8B", None),
    ("https://HuggingFace.co:443/Qwen/Qwen3-8B", "Qwen/Qwen3-8B", None),
    ("https://huggingface.co/Qwen/Qwen3-8B/tree/main/sub/dir", "Qwen/Qwen3-8B", "main"),
    ("https://huggingface.co/Qwen/Qwen3-8B/tree/refs%2Fpr%2F12/sub", "Qwen/Qwen3-8B", "refs/pr/12"),
    ("https://huggingface.co/Qwen/Qwen3-8B/resolve/v1/config.json?download=true", "Qwen/Qwen3-8B", "v1"),
    ("https://huggingface.co/Qwen/Qwen3-8B/commit/" + "a" * 40, "Qwen/Qwen3-8B", "a" * 40),
    ("https://huggingface.co/api/models/Qwen/Qwen3-8B/revision/v1", "Qwen/Qwen3-8B", "v1"),
]


@pytest.mark.parametrize(("text", "repo", "revision"), REPOSITORIES)
def test_repository_forms(text: str, repo: str, revision: str | None) -> None:
    assert parse(text) == Reference(text, repo=repo, revision=revision)


@pytest.mark.parametrize(
    ("text", "repo", "revision", "tag"),
    [
        ("a/b-GGUF:Q4_K_M", "a/b-GGUF", None, "Q4_K_M"), ("hf.co/a/b:Q8_0", "a/b", None, "Q8_0"),
        ("https://huggingface.co/a/b:UD-IQ2_XXS", "a/b", None, "UD-IQ2_XXS"),
        ("hf://a/b:latest@v1", "a/b", "v1", "latest"), ("a/b:fastest", "a/b", None, "fastest"),
    ],
)  # fmt: skip
def test_a_tag_behind_an_id(text: str, repo: str, revision: str | None, tag: str) -> None:
    assert parse(text) == Reference(text, repo=repo, revision=revision, tag=tag)
    with pytest.raises(UsageError):
        check_whole(text)
    check_whole(repo)


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("file:///models/a%20b", "/models/a b"), ("FILE://localhost/models/a", "/models/a"),
        ("./a", "./a"), ("a/b", "a/b"), ("s3://a/b", "s3://a/b"),
    ],
)  # fmt: skip
def test_the_path_of_a_file_url(text: str, path: str) -> None:
    assert without_scheme(text) == path


def test_a_file_url_of_another_machine_is_refused() -> None:
    with pytest.raises(UsageError, match="without file://"):
        without_scheme("file://nas/models/a")


@pytest.mark.parametrize("text", ["/models/a", "./a", "../a", ".", "..", "~/a", "./", "./a@b", "/"])
def test_directory_forms(text: str) -> None:
    assert parse(text) == Reference(text, directory=Path(text).expanduser())


@pytest.mark.parametrize(
    "text",
    [
        "http://hub.local:8080/mirror/a/b/tree/v1",
        "hub.local:8080/mirror/a/b/tree/v1",
        "https://huggingface.co/a/b/tree/v1",
    ],
)
def test_the_operators_own_hub_is_known(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://hub.local:8080/mirror/")
    assert parse(text) == Reference(text, repo="a/b", revision="v1")


TRAVERSALS = [
    "a/..", "a//b", "a/../b", "a/%2e%2e", "a/%252e%252e", "a/b/../../c",
    "hf://a/../b", "hf://a/%2E%2E/b", "https://huggingface.co/a/../b", "https://huggingface.co//a/b",
    "https://huggingface.co/a/b/tree/..%2f..%2fetc", "https://huggingface.co/a/b/resolve/main/../../x",
    "a\\b", "a/b%5c..", "a/b@../../c", "a/b@x/../y", "a/b@%2e%2e/c", "a/b@x//y",
]  # fmt: skip


@pytest.mark.parametrize("text", TRAVERSALS)
def test_traversal(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(text)
    assert caught.value.kind == "traversal"


BAD = [
    ("", "no repository"), ("gpt2", "openai-community/gpt2"), ("a/b/c", "one slash"), ("a/b\n", "control"),
    ("a/b\u202e", "control"), ("a/" + "b" * 97, "1 to 96"), ("a/-b", "inside also"), ("-a/b", "inside also"),
    ("a/b c", "1 to 96"), ("a/b--c", "single"), ("a/b..c", "single"), ("a/b.git", "1 to 96"),
    ("a/b@", "'' cannot be the name of a revision"), ("a/b@-x", "revision"), ("a/b@" + "x" * 256, "revision"),
    ("x" * 3000, "longer"), ("https://huggingface.co/datasets/a/b", "dataset"),
    ("https://huggingface.co/spaces/a/b", "Space"), ("https://example.com/a/b", "example.com is not the Hub"),
    ("https://huggingface.co@evil.com/a/b", "user name"),
    ("https://user:secret@huggingface.co/a/b", "user name"),
    ("https://huggingface.co:8443/a/b", "not the Hub"), ("https://[::1/a/b", "well-formed"),
    ("https://huggingface.co/", "no repository"),
    ("https://huggingface.co/a/b/discussions/4", "'discussions/4'"), ("hf://a/b/tree/v1@v2", "two revisions"),
    ("file:///etc/passwd", "without file://"), ("s3://bucket/model", "not s3://"),
    ("modelscope.cn/models/a/b", "ModelScope is not supported"),
    ("https://www.modelscope.cn/models/a/b", "ModelScope is not supported"), ("ms://a/b", "ModelScope"),
    ("ollama://qwen3", "Ollama's library"), ("qwen3:8b", "Ollama's library"),
    ("docker.io/ai/smollm2:360M", "Docker Hub"), ("hub.example:5000/a/b", "hub.example is not the Hub"),
    ("D:\\models\\a", "path of Windows"), ("C:/models/a", "/mnt/c"), ("\\\\nas\\a", "path of Windows"),
    ("a/b/model.gguf", "before a path write hf://"), ("a/b:", "1 to 96"), ("a/b:c:d", "1 to 96"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "word"), BAD)
def test_bad_references(text: str, word: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(text)
    assert caught.value.kind == "bad-reference"
    assert word in caught.value.message
    assert "secret" not in caught.value.message.partition("is not a model reference")[2]


def test_a_revision_is_named_once() -> None:
    assert parse("a/b", "v1").revision == "v1"
    assert parse("a/b@v1", "v1").revision == "v1"
    with pytest.raises(UsageError) as caught:
        parse("a/b@v1", "v2")
    assert (caught.value.kind, caught.value.details) == (
        "revision-conflict",
        {"inline": "v1", "option": "v2"},
    )
    with pytest.raises(UsageError) as caught:
        parse("a/b", "../v2")
    assert (caught.value.kind, caught.value.details["setting"]) == ("bad-value", Setting.REVISION)
    with pytest.raises(UsageError) as caught:
        parse("./a", "v1")
    assert caught.value.kind == "bad-value"


ALNUM = string.ascii_letters + string.digits
HALF = st.from_regex(r"[A-Za-z0-9](?:[A-Za-z0-9]|[._-](?=[A-Za-z0-9])){0,40}", fullmatch=True)
REVISION = st.lists(st.text(ALNUM + "_", min_size=1, max_size=12), min_size=1, max_size=3).map("/".join)


@given(owner=HALF, name=HALF.filter(lambda n: not n.endswith(".git")), revision=REVISION)
def test_ids_round_trip(owner: str, name: str, revision: str) -> None:
    repo = f"{owner}/{name}"
    if owner in {"hf.co", "huggingface.co"}:
        return
    assert parse(repo) == Reference(repo, repo=repo)
    assert parse(f"{repo}@{revision}").revision == revision
    once = parse(f"hf://{repo}@{revision}")
    assert parse(f"{once.repo}@{once.revision}") == Reference(f"{repo}@{revision}", repo, revision)


PIECES = st.sampled_from(
    ["hf://", "https://", "huggingface.co/", "hf.co", "//", "/", "..", ".", "@", "%2e", "%2F", "%00", "\\",
     "a", "b", "?", "#", "[", "]", ":", "tree", "refs/pr/1", " ", "\n", "~", "\ud800", "é", "models/"]
)  # fmt: skip


@given(text=st.one_of(st.text(), st.lists(PIECES).map("".join)), revision=st.one_of(st.none(), st.text()))
@example(text="https://[", revision=None)
@example(text="http://hf.co:x/a/b", revision=None)
@example(text="https://hf.co\u2100/a/b", revision=None)
@example(text="https://huggingface.co/HUGGINGFACE.CO/0", revision=None)
def test_parse_raises_nothing_but_usage_errors(text: str, revision: str | None) -> None:
    try:
        parsed = parse(text, revision)
    except UsageError:
        return
    assert (parsed.repo is None) != (parsed.directory is None)
    if parsed.repo is not None:
        names_host = parsed.repo.lower().startswith(("hf.co/", "huggingface.co/"))
        assert names_host or parse(parsed.repo).repo == parsed.repo
        assert ".." not in parsed.repo.split("/")
        assert ".." not in (parsed.revision or "").split("/")
