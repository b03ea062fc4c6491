"""A person's rows, what the sources said last, and the tables that ship."""

from __future__ import annotations

import json
import re

import pytest

from gen_defaults import sampling
from gen_defaults.__main__ import main
from gen_defaults.place import Place, load
from gen_defaults.sources import vendors
from importer.signals import tables
from tests.gen_checkout import made, place, run
from tests.gen_releases import everything

__all__ = ["made", "place"]
pytestmark = pytest.mark.slow  # each test makes every file anew


def test_a_row_taken_from_what_nobody_has_is_said(made, capsys):
    for row, says in (
        ({"unsloth": "gone"}, "does not have any more"),
        ({"vendor": "a/b"}, "nothing was read"),
    ):
        rows = load(made.rows)
        rows["families"]["new"] = row
        made.rows.write_text(json.dumps(rows))
        assert run(made, "--only", "mlx-lm") == 1
        assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    ("row", "says"),
    [
        ({"vaues": {"top_p": 1}, "says": "x"}, "families.new: "),
        ({"values": {"top_p": "1"}, "says": "x"}, "families.new.values.top_p: '1' is not of type 'number'"),
        (3, "families.new: 3 is not of type 'object'"),
    ],
)
def test_a_persons_mistake_is_told_at_its_place(made, capsys, row, says):
    rows = load(made.rows)
    rows["families"]["new"] = row
    made.rows.write_text(json.dumps(rows))
    before = everything(made)
    assert run(made, "--only", "tables") == 1
    assert f"gen_defaults: sampling_rows.json: {says}" in capsys.readouterr().err
    assert everything(made) == before


@pytest.mark.parametrize("text", ["{", "[]", "[" * 99999])
@pytest.mark.parametrize("file", ["sampling_rows.json", "parser_defaults.json", "upstream/unsloth.json"])
def test_a_file_of_ours_that_is_broken_is_named(made, capsys, file, text):
    next(p for p in made.root.rglob("*.json") if str(p).endswith(file)).write_text(text)
    assert run(made, "--only", "tables") == 1
    assert f"{file.rpartition('/')[2]} cannot be read: " in capsys.readouterr().err


@pytest.mark.parametrize(
    "text", ['{"families": 3}', '{"families": {"acme-2": {"top_p": null}}}', '{"source": 1}']
)
def test_what_a_source_said_is_not_for_editing(made, capsys, text):
    made.upstream("unsloth").write_text(text)
    before = everything(made)
    assert run(made, "--only", "tables") == 1
    assert capsys.readouterr().err.endswith("nothing was written\n")
    assert everything(made) == before


def test_an_installed_package_is_no_checkout(tmp_path, capsys):
    assert run(Place(tmp_path)) == 1
    assert "is no checkout: it has no parser_defaults.json" in capsys.readouterr().err


# The tables that ship


def test_the_committed_table_is_what_the_committed_sources_give():
    place = Place()
    unsloth_said, vendors_said = load(place.upstream("unsloth")), load(place.upstream(vendors.NAME))
    made = sampling.render(sampling.table(load(place.rows), unsloth_said, vendors_said))
    assert made == place.sampling.read_text(encoding="utf-8")


def test_the_committed_proposal_is_of_the_committed_table(capsys):
    """After an edit of ``parser_defaults.json``: ``python -m gen_defaults --only tables``."""
    assert main(["--only", "tables", "--check"]) == 0, capsys.readouterr().out


def test_every_row_says_where_it_is_from():
    data = tables.raw("inference_defaults")
    assert {*data["provenance"]} == {*data["families"]}
    for family, origins in data["provenance"].items():
        for origin in origins:
            assert {*origin} == {"source", "row", "version", "sha256", "released"}, family
            assert len(origin["sha256"]) == 64, family
            if origin["source"] != "generation_config.json":  # of a copy in a folder nobody tells the commit
                assert origin["version"], family
                assert re.fullmatch(r"\d{4}-\d\d-\d\d", origin["released"]), family


def test_a_persons_row_has_the_day_that_it_names(made):
    rows = load(made.rows)
    rows["families"]["by-hand"]["day"] = "2026-02-03"
    made.rows.write_text(json.dumps(rows))
    digests = set()
    for value in (1.2, 1.3):
        rows["families"]["by-hand"]["values"]["temperature"] = value
        made.rows.write_text(json.dumps(rows))
        assert run(made, "--only", "tables") == 0
        (origin,) = load(made.sampling)["provenance"]["by-hand"]
        assert (origin["source"], origin["row"]) == ("by hand", "by-hand")
        assert origin["version"] == origin["released"] == "2026-02-03"
        digests.add(origin["sha256"])
    assert len(digests) == 2


@pytest.mark.nightly
def test_the_committed_files_are_what_their_releases_give():
    """Asks the package index for the very releases that the files name."""
    assert main(["--check"]) == 0


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"families": []}, "parser_defaults.json: families is nested: [] where an object belongs"),
        ({"patterns": ["acme-2", "acme-2"]}, "parser_defaults.json: acme-2: patterns has it twice"),
        ({"patterns": None}, "patterns is null where a list belongs"),
    ],
)
def test_a_mistake_in_the_parser_table_is_told_at_its_place(made, capsys, changes, says):
    made.parsers.write_text(json.dumps(load(made.parsers) | changes))
    before = everything(made)
    assert run(made, "--only", "tables") == 1
    assert says in capsys.readouterr().err
    assert everything(made) == before
