"""Texts of others: whatever they hold comes to data of a bearable size, or to one sentence."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gen_defaults import sdist as sdists
from gen_defaults.released import Index
from gen_defaults.sources.outside import DEEPEST, from_json, from_yaml
from importer.wheels import archive
from importer.wheels.index import IndexFailure
from tests.package_index import sdist, wheel

pytestmark = pytest.mark.slow  # the makers of tables

BOMB = "a: &a [x, x]\n" + "".join(
    f"{name}: &{name} [*{before}, *{before}, *{before}, *{before}, *{before}, *{before}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[" * 999_999, "it is nested deeper than 100 levels"),  # the parser in C would die of it
        ("[" * 999_999 + "]" * 999_999, "it is nested deeper than 100 levels"),
        ("- " * 999, "it is nested deeper than 100 levels"),
        ("- " * (DEEPEST + 1) + "1", "it is nested too deep"),
        (BOMB, "it holds more than 100,000 values"),
        ("a: &a [*a]", "the alias 'a' stands inside of what it stands for"),
        ("&a {a: *a}", "the alias 'a' stands inside of what it stands for"),
        ("a: {b: 1, b: 2}", "a.b: it stands on line 1 already"),
        ("a: {b: 1\n}\nc: {<<: 3}", "only maps can be merged on line 3"),
        ("a:\n\tb: 1", "found character that cannot start any token on line 2"),
        ("a: 1\n---\nb: 2", "a second document begins here on line 2"),
        ("a: !!python/object/apply:os.getcwd []", "could not determine a constructor"),
        ("a: \0", "the character U+0000 is not allowed"),
        ('a: "\\ud800"', ""),
    ],
)
def test_yaml_that_is_refused(text: str, says: str) -> None:
    with pytest.raises(IndexFailure, match=r"box-1\.0: values\.yaml cannot be read: ") as refused:
        from_yaml(text, "values.yaml", "box-1.0")
    assert says in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[" * 99_999, "it is nested too deep"),
        ('{"a": ' * (DEEPEST + 1) + "1" + "}" * (DEEPEST + 1), "it is nested too deep"),
        ('{"a": 1, "a": 2}', "the key 'a' stands twice in one place"),
        ('{"a": "\\ud800"}', "it holds half of a character"),
        (f'{{"a": {"9" * 5000}}}', "Exceeds the limit"),
        ("[1]", "it is not an object"),
        ("<html>", "Expecting value"),
    ],
)
def test_json_that_is_refused(text: str, says: str) -> None:
    with pytest.raises(IndexFailure, match=r"box-1\.0: values\.json cannot be read: ") as refused:
        from_json(text, "values.json", "box-1.0")
    assert says in str(refused.value)


def test_what_holds_nothing_is_empty() -> None:
    assert from_yaml("", "a", "b") == from_yaml("# only a comment\n", "a", "b") == {}
    assert from_yaml("a: &a [1]\nb: *a", "a", "b") == {"a": [1], "b": [1]}
    assert from_yaml("a: &a {b: 1}\nc: {<<: *a}", "a", "b")["c"] == {"b": 1}


@given(st.text(alphabet="ab:-[]{}&*!<>|\t\n \"'0.~,", max_size=40))
def test_any_text_is_data_or_a_sentence(text: str) -> None:
    for read in (from_yaml, from_json):
        try:
            said: object = read(text, "a", "b")
        except IndexFailure as failure:
            said = str(failure)
        assert isinstance(said, dict) or "\n" not in str(said)


# Archives that nobody vouches for


def wanted(path: str) -> bool:
    return path.startswith("kept/")


def opened(tmp_path: Path, name: str, data: bytes) -> dict[str, str]:
    (tmp_path / name).write_bytes(data)
    index = Index(tmp_path)
    (release,) = index.files("box")
    return dict(index.part(release, wanted).texts)


def changed(data: bytes, place: int) -> bytes:
    return data[:place] + bytes([data[place] ^ 0x10]) + data[place + 1 :]


def test_the_end_of_a_folders_sdist_is_read_too(tmp_path: Path) -> None:
    data = sdist("box", "1.0", {"kept/a.py": "a"})
    assert opened(tmp_path, "box-1.0.tar.gz", data) == {"kept/a.py": "a"}
    for broken in (data[:-6], changed(data, len(data) - 6)):
        with pytest.raises(IndexFailure, match=r"box-1\.0\.tar\.gz cannot be read: "):
            opened(tmp_path, "box-1.0.tar.gz", broken)


@pytest.mark.parametrize("name", ["kept/../../a", "kept/a\x1b[2J", "kept//a", "kept/..\\a"])
def test_a_name_that_leads_elsewhere(tmp_path: Path, name: str) -> None:
    odd = sdist("box", "1.0", {name: "a"})
    with pytest.raises(IndexFailure, match="has a file with the odd name"):
        opened(tmp_path, "box-1.0.tar.gz", odd)


def test_links_are_not_followed(tmp_path: Path) -> None:
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz") as made:
        link = tarfile.TarInfo("box-1.0/kept/a.py")
        link.type, link.linkname = tarfile.SYMTYPE, str(Path(__file__))
        made.addfile(link)
    assert opened(tmp_path, "box-1.0.tar.gz", raw.getvalue()) == {}


def test_many_files_are_too_large_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MOST", 3000)
    for name, data in (
        ("box-1.0.tar.gz", sdist("box", "1.0", {f"kept/{n}": " " * 999 for n in range(4)})),
        ("box-1.1-py3-none-any.whl", wheel({f"kept/{n}": " " * 999 for n in range(4)})),
    ):
        (tmp_path / name).write_bytes(data)
        index = Index(tmp_path)
        with pytest.raises(IndexFailure, match=f"what is read of {name} is larger than 0 MiB"):
            index.part(index.files("box")[-1], wanted)


def test_what_unpacks_to_too_much(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sdists, "UNPACKED", 1 << 20)
    with pytest.raises(IndexFailure, match=r"box-1\.0\.tar\.gz unpacks to more than 0 GiB"):
        opened(tmp_path, "box-1.0.tar.gz", sdist("box", "1.0", {"zeros": "\0" * (2 << 20)}))


def test_what_is_no_file_is_no_archive(tmp_path: Path) -> None:
    (tmp_path / "box-1.0.tar.gz").mkdir()
    with pytest.raises(IndexFailure, match=r"box-1\.0\.tar\.gz cannot be read: it is no file"):
        Index(tmp_path).files("box")
