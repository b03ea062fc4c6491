"""Vendors' files, from a folder and from the Hub."""

from __future__ import annotations

import json

import pytest

from gen_defaults.place import load
from tests.gen_checkout import made, place, run, vendor_file
from tests.gen_releases import everything
from tests.hubserver import HubServer, Repo, isolate

__all__ = ["made", "place"]
pytestmark = pytest.mark.slow  # each test makes every file anew


def test_a_vendors_file_from_a_folder(made, tmp_path):
    folder = vendor_file(tmp_path / "models", '{"temperature": 0.0, "top_p": 1.0, "eos_token_id": 3}')
    assert run(made, "--only", "vendors", "--offline", str(folder)) == 0
    row = load(made.upstream("vendors"))["repositories"]["zeta/Zeta-1"]
    assert row["values"] == {"temperature": 0.0, "top_p": 1.0}
    assert row["commit"] is None
    rows = load(made.rows)
    rows["families"]["zeta-1"] = {"vendor": "zeta/Zeta-1", "values": {"top_k": 7}, "says": "its files"}
    made.rows.write_text(json.dumps(rows))
    assert run(made, "--only", "vendors", "--offline", str(folder)) == 0
    data = load(made.sampling)
    assert data["families"]["zeta-1"] == {"temperature": 0.0, "top_p": 1.0, "top_k": 7}
    assert [o["source"] for o in data["provenance"]["zeta-1"]] == ["generation_config.json", "by hand"]


def test_a_row_that_its_vendor_contradicts_is_not_written(made, tmp_path, capsys):
    folder = vendor_file(tmp_path / "models", '{"temperature": 0.9}')
    before = everything(made)
    assert run(made, "--only", "vendors", "--offline", str(folder)) == 1
    assert "zeta-1: temperature is 0, against 1 of 1 vendor files" in capsys.readouterr().err
    assert everything(made) == before


@pytest.mark.parametrize("gated", [False, True])
def test_a_vendors_file_from_the_hub(made, tmp_path, monkeypatch, capsys, gated):
    repo = Repo({"generation_config.json": '{"top_p": 1.0}', "config.json": "{}"}, gated=gated)
    with HubServer({"zeta/Zeta-1": repo}) as hub:
        isolate(monkeypatch, tmp_path / "hub", hub.url)
        assert run(made, "--only", "vendors") == (1 if gated else 0)
        known = load(made.upstream("vendors")).get("repositories", {})
        if gated:
            assert "zeta/Zeta-1 cannot be read" in capsys.readouterr().err
            return
        assert known["zeta/Zeta-1"]["commit"] == repo.revisions["main"]
        assert known["zeta/Zeta-1"]["released"] == "2026-01-05"
        repo.commit({"generation_config.json": '{"top_p": 0.3}', "config.json": "{}"})
        assert run(made, "--only", "vendors", "--check") == 0
        before = everything(made)
        assert run(made, "--only", "vendors") == 1
        assert (
            "zeta-1: top_p is 1, against 1 of 1 vendor files: zeta/Zeta-1 says 0.3" in capsys.readouterr().err
        )
        assert everything(made) == before
        repo.commit({"generation_config.json": '{"top_p": 0.4}', "config.json": "{}"})
        repo.gated = True
        assert run(made, "--with", "vendors") == 0  # as the weekly job asks
        assert everything(made) == before
        assert "zeta/Zeta-1 keeps its values" in capsys.readouterr().err


def test_what_was_known_stays_where_a_folder_lacks_it(made, tmp_path):
    known = vendor_file(tmp_path / "models", '{"top_p": 1.0}')
    assert run(made, "--only", "vendors", "--offline", str(known)) == 0
    before = everything(made)
    (tmp_path / "empty").mkdir()
    assert run(made, "--only", "vendors", "--offline", str(tmp_path / "empty")) == 0
    assert everything(made) == before
