"""The promises of docs/security.md, each against a repository, a server or a file that means harm."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from importer.cli.arguments import COMMANDS
from importer.cli.main import run
from tests.hubserver import Content, Fault, HubServer, Repo, isolate

TOKEN = "hf_thisTokenMustNeverLeave"
CONFIG = {"model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"]}
TEMPLATE = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}"
    "{% for c in m.tool_calls or [] %}<tool_call>{{ c.function | tojson }}</tool_call>{% endfor %}"
    "<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
# Sets a terminal's title, clears it, colours it by a one-byte sequence, turns the writing direction around.
ESCAPES = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e\u2028\x85"
INJECTION = f"x\n- injected: true # {ESCAPES}"


@dataclass(frozen=True)
class Ran:
    """An import: its exit code and all that it said."""

    code: int
    out: str
    err: str

    def json(self) -> dict[str, Any]:
        (line,) = self.out.splitlines()
        return dict(json.loads(line))


Command = Callable[..., Ran]


def _placed(arguments: Sequence[str], output: str) -> Iterator[str]:
    """With ``--output`` behind the command, or in front of a reference."""
    first, *rest = arguments
    yield from (first, "--output", output, *rest) if first in COMMANDS else ("--output", output, *arguments)


@pytest.fixture
def importer(
    importer_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Command:
    """The command line, writing into ``out`` of this test's folder."""
    monkeypatch.setenv("IMPORTER_HOME", str(importer_home))

    def command(*arguments: str) -> Ran:
        code = run([*_placed(arguments, str(tmp_path / "out"))])
        said = capsys.readouterr()
        return Ran(code, said.out, said.err)

    return command


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HubServer]:
    with HubServer({}, tokens=(TOKEN,)) as server:
        isolate(monkeypatch, tmp_path, server.url)
        yield server


def folder(path: Path, files: Mapping[str, Content]) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        data = content if isinstance(content, str | bytes) else json.dumps(content)
        (path / name).write_bytes(data.encode() if isinstance(data, str) else data)
    return path


# --- No code of a repository runs ---


class Payload:
    """Unpickled, it leaves a mark."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, (f"touch '{self.mark}'",)


def with_code(mark: Path) -> dict[str, Content]:
    """A repository that brings code in every way that loaders are known to take it."""
    code = f"with open({str(mark)!r}, 'w'): pass\n"
    own = {name: f"evil.{name}" for name in ("AutoConfig", "AutoModelForCausalLM", "AutoTokenizer")}
    return {
        "config.json": {
            **CONFIG,
            "auto_map": own,
            "model_file": "evil.py",
            "custom_pipelines": {"x": "evil"},
        },
        "tokenizer_config.json": {
            "tokenizer_class": "evil.Tokenizer",
            "auto_map": {"AutoTokenizer": ["evil.Tokenizer", None]},
            "tool_parser_type": "evil",
            "chat_template": TEMPLATE,
        },
        "evil.py": code,
        "setup.py": code,
        "conftest.py": code,
        "handler.py": code,
        "pytorch_model.bin": pickle.dumps(Payload(mark)),
        "model.safetensors": pickle.dumps(Payload(mark)),
        "tokenizer.pkl": pickle.dumps(Payload(mark)),
    }


def test_the_payloads_would_leave_a_mark(tmp_path: Path) -> None:
    files = with_code(tmp_path / "mark")
    for name in ("pytorch_model.bin", "evil.py"):
        content = files[name]
        if isinstance(content, bytes):
            pickle.loads(content)
        else:
            exec(str(content))
        assert (tmp_path / "mark").exists()
        (tmp_path / "mark").unlink()


def test_code_on_the_hub_is_not_even_fetched(hub: HubServer, importer: Command, tmp_path: Path) -> None:
    hub.repos["a/evil"] = Repo(with_code(tmp_path / "mark"))
    assert importer("a/evil", "--yes", "--no-validate").code == 0
    asked = {path.rpartition("/")[2] for path in hub.paths()[1:]}
    assert asked == {"config.json", "tokenizer_config.json"}
    assert not (tmp_path / "mark").exists()


def test_code_in_a_directory_is_not_run(importer: Command, tmp_path: Path) -> None:
    model = folder(tmp_path / "evil", with_code(tmp_path / "mark"))
    assert importer(str(model), "--yes", "--no-validate").code == 0
    assert not (tmp_path / "mark").exists()
    document = (tmp_path / "out" / "evil.yaml").read_text(encoding="utf-8")
    assert "trust_remote_code" not in document


# --- Templates ---

ESCAPE_ATTEMPTS = (
    "{{ cycler.__init__.__globals__.os.system('touch MARK') }}",
    "{{ raise_exception.__globals__['__builtins__']['open']('MARK', 'w') }}",
    "{% for c in ''.__class__.__mro__[1].__subclasses__() %}{{ c(['touch', 'MARK']) }}{% endfor %}",
    "{{ (messages | map(attribute='__class__') | list)[0].__init__.__globals__ }}",
    "{% set f = '{0.__class__.__init__.__globals__}'.format %}{{ f(strftime_now) }}",
    "{{ self._TemplateReference__context.environment.from_string('x').module.__loader__ }}",
    "{% import '/etc/passwd' as p %}{% include '/etc/passwd' %}",
)


@pytest.mark.slow
def test_templates_do_not_leave_their_sandbox(importer: Command, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    for number, template in enumerate(ESCAPE_ATTEMPTS):
        text = template.replace("MARK", str(mark)) + TEMPLATE
        model = folder(tmp_path / f"m{number}", {"config.json": CONFIG, "chat_template.jinja": text})
        ran = importer(str(model), "--dry-run", "--json", "--explain")
        assert ran.code == 0, ran.err
        assert "root:" not in ran.out + ran.err
        assert not mark.exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "bomb",
    [
        "{% set n = namespace(s='x' * 9000) %}{% for i in range(60) %}{% set n.s = n.s ~ n.s %}{% endfor %}",
        "{{ '%9000000000d' | format(1) }}",
        "{% for i in range(99999) %}{{ 'x' * 20000 }}{% endfor %}",
        "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
        "{% for a in range(9**5) if tools %}{% for b in range(9**5) %}{% endfor %}{% endfor %}",
    ],
)
def test_a_template_bomb_costs_only_the_template(importer: Command, tmp_path: Path, bomb: str) -> None:
    """The worker's own limits end it (seconds of processor time, memory, output); the import goes on."""
    model = folder(tmp_path / "m", {"config.json": CONFIG, "chat_template.jinja": bomb + TEMPLATE})
    ran = importer(str(model), "--dry-run", "--json", "--ignore-name", "--backend", "vllm")
    assert ran.code == 0, ran.err
    decisions = ran.json()["decisions"]
    assert decisions["tool_parser"]["status"] in {"table", "abstained"}
    assert "parameters" in ran.json()["document"]


# --- An allow-list of small files, with caps ---


def test_a_gigabyte_announced_is_not_asked_for(hub: HubServer, importer: Command) -> None:
    hub.repos["a/big"] = Repo(
        {"config.json": CONFIG}, info={"siblings": [{"rfilename": "config.json", "size": 2**30}]}
    )
    ran = importer("a/big", "--json")
    assert (ran.code, ran.json()["error"]["kind"]) == (4, "too-large")
    assert len(hub.paths()) == 1


def test_a_gigabyte_hidden_in_a_small_answer_is_never_unpacked(hub: HubServer, tmp_path: Path) -> None:
    """A megabyte of gzip that holds a gigabyte: counted while it unpacks, in bounded memory."""
    hub.repos["a/bomb"] = Repo({"config.json": CONFIG}, info={"siblings": [{"rfilename": "config.json"}]})
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    block = packer.compress(b" " * 2**23) + packer.flush(zlib.Z_FULL_FLUSH)
    header = 10  # bytes of gzip's own; what follows can be repeated, since each block stands alone
    body = block + block[header:] * 127
    assert zlib.decompressobj(31).decompress(body, 2**24) == b" " * 2**24
    hub.faults.append(Fault("/resolve/", status=200, headers={"Content-Encoding": "gzip"}, body=body))
    # ru_maxrss survives an exec on Linux, and would be that of the tests' own process
    code = (
        "import resource, sys; from pathlib import Path; from importer.cli.main import run;"
        "code = run(sys.argv[1:]); own = Path('/proc/self/status');"
        "peak = own.read_text().split('VmHWM:')[1].split()[0] if own.exists() else"
        " resource.getrusage(resource.RUSAGE_SELF).ru_maxrss; print(peak); sys.exit(code)"
    )
    argv = [sys.executable, "-c", code, "a/bomb", "--dry-run", "--json"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    answer, peak = done.stdout.splitlines()
    assert (done.returncode, json.loads(answer)["error"]["kind"]) == (4, "too-large")
    kib = int(peak) // (1024 if sys.platform == "darwin" else 1)
    assert kib < 400 * 1024


@pytest.mark.parametrize("text", ['{"a":' * 40_000, "[" * 100_000, '{"a":' * 500 + "1" + "}" * 500])
@pytest.mark.parametrize("name", ["config.json", "tokenizer_config.json", "generation_config.json"])
def test_deep_json_is_one_sentence(importer: Command, tmp_path: Path, name: str, text: str) -> None:
    model = folder(tmp_path / "m", {"config.json": CONFIG, name: text})
    ran = importer(str(model), "--json")
    assert (ran.code, ran.json()["error"]["kind"]) == (4, "broken-json")
    assert "Traceback" not in ran.err


def test_a_pipe_and_links_out_of_the_directory_are_not_read(importer: Command, tmp_path: Path) -> None:
    secret = tmp_path / "secret.json"
    secret.write_text(json.dumps({**CONFIG, "model_type": "verysecret"}), encoding="utf-8")
    for name, make in (("pipe", os.mkfifo), ("link", lambda p: p.symlink_to(secret)),
                       ("device", lambda p: p.symlink_to("/dev/zero"))):  # fmt: skip
        model = folder(tmp_path / name, {"tokenizer_config.json": {"chat_template": TEMPLATE}})
        make(model / "config.json")
        ran = importer(str(model), "--json", "--explain")
        assert (ran.code, ran.json()["error"]["kind"]) == (4, "unreadable"), name
        assert "verysecret" not in ran.out + ran.err


def test_a_listing_cannot_name_a_place(hub: HubServer, importer: Command, tmp_path: Path) -> None:
    names = ["../../config.json", "/etc/passwd", "config.json\n", "a\\..\\config.json", "config.json"]
    hub.repos["a/b"] = Repo(
        {"config.json": CONFIG},
        info={"siblings": [{"rfilename": n} for n in names], "id": "../../../etc", "modelId": "a/b/../../c"},
    )
    ran = importer("a/b", "--yes", "--no-validate")
    assert ran.code == 0, ran.err
    assert [p.partition("/resolve/")[2].partition("/")[2] for p in hub.paths()[1:]] == ["config.json"]
    written = sorted(p.name for p in (tmp_path / "out").rglob("*") if p.is_file())
    assert written == ["b.receipt.json", "b.yaml", "document.schema.json"]


# --- Nothing from a repository becomes a flag, a path or markup ---


def hostile() -> dict[str, Content]:
    """Every string that a reader looks at, hostile."""
    return {
        "config.json": {
            "model_type": INJECTION,
            "architectures": [INJECTION, f"DeepseekOCR{INJECTION}"],
            "_name_or_path": f"../../{INJECTION}",
            "quantization_config": {"quant_method": INJECTION, "group_size": INJECTION, "bits": INJECTION},
            "torch_dtype": INJECTION,
        },
        "generation_config.json": {"temperature": INJECTION, "top_p": 0.5, "eos_token_id": INJECTION},
        "hf_quant_config.json": {"quantization": {"quant_algo": INJECTION}},
        "tokenizer_config.json": {
            "tool_parser_type": f"--help {INJECTION}",
            "response_template": INJECTION,
            "eos_token": INJECTION,
            "added_tokens_decoder": {"9" * 6000: {"content": INJECTION}, "1": {"content": ESCAPES}},
            "chat_template": f"{{{{ raise_exception({INJECTION!r}) }}}}",
        },
    }


def calm(text: str) -> bool:
    """Whether a terminal would only print it."""
    return all(c.isprintable() or c == "\n" for c in text)


@pytest.mark.slow
def test_a_hostile_repository_is_only_data(hub: HubServer, importer: Command, tmp_path: Path) -> None:
    hub.repos["a/b"] = Repo(
        hostile(),
        info={"tags": [INJECTION], "pipeline_tag": INJECTION, "cardData": {"base_model": INJECTION}},
    )
    for backend in ("vllm", "mlx", "vllm-mlx"):
        shown = importer("a/b", "--backend", backend, "--explain", "--dry-run")
        ran = importer("a/b", "--backend", backend, "--name", backend, "--yes", "--no-validate", "--json")
        assert (shown.code, ran.code) == (0, 0), shown.err + ran.err
        assert calm(shown.out + shown.err + ran.out + ran.err)
        document = ran.json()["document"]
        text = (tmp_path / "out" / f"{backend}.yaml").read_text(encoding="utf-8")
        assert yaml.safe_load(text) == document
        assert calm(text)
        assert "injected" not in text
        assert "options" not in document
        for listing in (("show", backend), ("list",), ("show", backend, "--json"), ("list", "--json")):
            said = importer(*listing)
            assert said.code == 0
            assert calm(said.out + said.err)
    assert {p.name for p in tmp_path.iterdir()} <= {"out", "home", "hf"}


@pytest.mark.parametrize(
    "claim", ["../../x", "os", "--help", "hermes --trust-remote-code", "a\nb", "x" * 10_000]
)
@pytest.mark.parametrize("backend", ["vllm", "mlx", "mlx-vlm", "vllm-mlx"])
def test_a_claimed_parser_is_one_of_the_engines_or_nothing(
    importer: Command, tmp_path: Path, claim: str, backend: str
) -> None:
    files = {"config.json": {"model_type": "unheard-of"}, "chat_template.jinja": "{{ messages[0].content }}"}
    model = folder(tmp_path / "m", {**files, "tokenizer_config.json": {"tool_parser_type": claim}})
    ran = importer(str(model), "--dry-run", "--json", "--backend", backend)
    assert ran.code == 0, ran.err
    assert "options" not in ran.json()["document"]
    assert ran.json()["decisions"]["tool_parser"]["value"] is None


def test_a_gguf_repository_names_its_origin_without_steering(hub: HubServer, importer: Command) -> None:
    hub.repos["a/b"] = Repo({"x.gguf": "GGUF"}, info={"cardData": {"base_model": f"evil/{ESCAPES}name"}})
    ran = importer("a/b", "--json")
    assert (ran.code, ran.json()["error"]["kind"]) == (4, "gguf-only")
    assert calm(ran.out + ran.err)


@pytest.mark.slow
def test_names_of_folders_and_files_stay_names(
    importer: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("--help", "-rf", "..hidden", "a: b # c", "[/bold]", INJECTION.replace("/", "")):
        model = folder(tmp_path / "in" / name, {"config.json": CONFIG})
        monkeypatch.chdir(model)
        ran = importer(".", "--yes", "--no-validate", "--json")
        assert ran.code == 0, ran.err
        assert ran.json()["document"]["parameters"]["model"] == str(model)
        assert calm(ran.out + ran.err)
    for path in (tmp_path / "out").glob("*.yaml"):
        assert path.stem.strip("-.") == path.stem
        assert calm(path.read_text(encoding="utf-8"))
        assert str(yaml.safe_load(path.read_text(encoding="utf-8"))["name"]) == path.stem


def test_hub_ids_that_look_like_options_are_refused(importer: Command) -> None:
    for reference in (
        "a/--help",
        "--output/x",
        "a/b@--upload-pack=x",
        "a/b@../../x",
        "a/..",
        "hf://a/%2e%2e",
    ):
        ran = importer("--json", "--", reference)
        assert (ran.code, ran.json()["error"]["kind"]) in {(2, "bad-reference"), (2, "traversal")}, reference


def on_a_terminal(tmp_path: Path, *arguments: str) -> tuple[int, bytes]:
    """Exit code, and all that a terminal got."""
    import pty

    leader, follower = pty.openpty()
    argv = [sys.executable, "-m", "importer", *arguments]
    variables = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1]), "TERM": "xterm"}
    with subprocess.Popen(
        argv, stdin=follower, stdout=follower, stderr=follower, cwd=tmp_path, env=variables
    ) as process:
        os.close(follower)
        said = b""
        try:
            while piece := os.read(leader, 65536):
                said += piece
        except OSError:
            pass  # how the end of a terminal is told on Linux
        os.close(leader)
    return process.returncode, said


def test_a_terminal_gets_no_escape_of_a_repository(hub: HubServer, tmp_path: Path) -> None:
    """On a real terminal our own colours are escapes too, so theirs are looked for by what they hold."""
    hub.repos["a/b"] = Repo(hostile(), info={"tags": [INJECTION]})
    code, said = on_a_terminal(tmp_path, "a/b", "--explain", "--dry-run")
    assert code == 0, said
    assert b"decision" in said
    for sequence in ("\x1b]0;", "\x1b[2J", "\x07", "\x9b", "\u202e", "\u2028", "\x85"):
        assert sequence.encode() not in said


@pytest.mark.slow
def test_brackets_are_no_markup_on_a_terminal(importer_home: Path, tmp_path: Path) -> None:
    folder(tmp_path / "[/bold]", {"config.json": CONFIG})
    code, said = on_a_terminal(tmp_path, "./[/bold]", "--dry-run")
    assert code == 0, said
    assert b"[/bold]" in said


# --- YAML ---


@pytest.mark.parametrize(
    "evil",
    [
        "name: !!python/object/apply:os.system ['touch MARK']",
        "name: !!python/object/new:subprocess.Popen [['touch', 'MARK']]",
        "name: !!python/name:os.system",
        "? !!python/object/apply:os.system ['touch MARK']\n: 1",
    ],
)
def test_yaml_tags_are_refused(importer: Command, tmp_path: Path, evil: str) -> None:
    mark = tmp_path / "mark"
    folder(tmp_path / "out", {"evil.yaml": evil.replace("MARK", str(mark))})
    for words in (("show", "evil"), ("approve", "evil"), ("validate", "evil"), ("list",)):
        ran = importer(*words)
        assert "Traceback" not in ran.err
        assert ran.code == (0 if words == ("list",) else 5), (words, ran)
    assert not mark.exists()
    model = folder(tmp_path / "m", {"config.json": CONFIG})
    importer(
        str(model), "--dry-run", "--set", f"description={evil.partition(': ')[2].replace('MARK', str(mark))}"
    )
    assert not mark.exists()


@pytest.mark.slow
def test_a_yaml_bomb_is_one_sentence(importer: Command, tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]" for i in range(1, 12)]
    folder(tmp_path / "out", {"bomb.yaml": "\n".join(lines), "deep.yaml": "[" * 500})
    for name in ("bomb", "deep"):
        ran = importer("show", name)
        assert ran.code == 5
        assert "Traceback" not in ran.err


# --- The one fetch function, and the token ---


def written(*folders: Path) -> Iterator[tuple[Path, bytes]]:
    for place in folders:
        yield from ((p, p.read_bytes()) for p in place.rglob("*") if p.is_file())


def test_the_token_is_sent_to_the_hub_and_nowhere_kept(
    hub: HubServer,
    importer: Command,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    hub.repos["a/private"] = Repo(
        {"config.json": CONFIG, "chat_template.jinja": TEMPLATE}, private=True, readers=(TOKEN,)
    )
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    caplog.set_level(0)
    ran = importer("a/private", "--yes", "--no-validate", "--explain", "--json")
    assert ran.code == 0, ran.err
    assert all(TOKEN in str(e.headers["Authorization"]) for e in hub.log)
    monkeypatch.setenv("HF_TOKEN", wrong := TOKEN + "Wrong")
    refused = importer("a/private", "--json")
    assert (refused.code, refused.json()["error"]["kind"]) == (3, "bad-token")
    said = ran.out + ran.err + refused.out + refused.err + caplog.text
    assert TOKEN not in said
    assert wrong not in said
    kept = [path for path, data in written(tmp_path) if TOKEN.encode() in data]
    assert kept == []
    assert len(list(written(tmp_path))) >= 5


@pytest.mark.parametrize(
    "place",
    [
        "http://169.254.169.254/latest/meta-data/",
        "http://[::1]:9/",
        "http://hub.example.org/x",
        "file:///etc/passwd",
        "OTHER",
    ],
)
@pytest.mark.parametrize("where", ["/api/models/a/b", "/resolve/"])
@pytest.mark.parametrize("status", [302, 307])
def test_redirects_to_other_places_are_refused(
    hub: HubServer, importer: Command, monkeypatch: pytest.MonkeyPatch, place: str, where: str, status: int
) -> None:
    hub.repos["a/b"] = Repo({"config.json": CONFIG}, private=True, readers=(TOKEN,))
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    with HubServer({"a/b": {"config.json": CONFIG}}) as other:
        target = place.replace("OTHER", f"{other.url}/api/models/a/b")
        hub.faults.append(Fault(where, status=status, headers={"Location": target}, times=9))
        ran = importer("a/b", "--json")
        assert (ran.code, ran.json()["error"]["kind"]) == (3, "refused-host")
        assert other.log == []
    assert TOKEN not in ran.out + ran.err


def test_weights_elsewhere_are_fetched_without_the_token(
    hub: HubServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Weights come through the Hub's own client, which follows redirects; the token stays behind."""
    from importer.hub import fetch_weights, parse, resolve

    files: dict[str, Content] = {
        "config.json": CONFIG,
        "model.safetensors": b"w" * 64,
        "tokenizer.json": "{}",
    }
    repo = hub.repos["a/b"] = Repo(files, private=True, readers=(TOKEN,))
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    with HubServer({"a/b": repo.commits[repo.sha]}) as storage:
        elsewhere = f"{storage.url}/a/b/resolve/main/model.safetensors"
        oid = "a" * 64
        linked = {
            "Location": elsewhere,
            "X-Linked-Size": "64",
            "X-Linked-Etag": f'"{oid}"',
            "X-Repo-Commit": repo.sha,
        }
        hub.faults.append(Fault("model.safetensors", status=302, headers=linked, times=9))
        where = fetch_weights(resolve(parse("a/b")), lambda _done, _total: None)
        assert (where / "model.safetensors").read_bytes() == b"w" * 64
        assert storage.log
        assert all("Authorization" not in e.headers for e in storage.log)


# --- Everything is pinned ---


class Moving(Repo):
    """Its branch moves on as soon as the API has described it."""

    moved = ""

    @property
    def info(self) -> dict[str, Any]:
        if not self.moved:
            self.moved = self.commit({"config.json": {"model_type": "llama"}, "chat_template.jinja": "moved"})
        return {}

    @info.setter
    def info(self, _words: object) -> None:
        """There are none."""


def test_a_branch_that_moves_meanwhile_changes_nothing(hub: HubServer, importer: Command) -> None:
    repo = Moving({"config.json": CONFIG, "chat_template.jinja": TEMPLATE})
    first = repo.sha
    hub.repos["a/b"] = repo
    ran = importer("a/b", "--yes", "--no-validate", "--json")
    assert ran.code == 0, ran.err
    assert repo.sha == repo.moved != first
    assert ran.json()["revision"] == first
    assert ran.json()["document"]["artifacts"][0]["source"]["revision"] == first
    files = hub.paths()[1:]
    assert len(files) == 2
    assert all(f"/resolve/{first}/" in path for path in files)


def test_an_answer_for_another_commit_is_refused(hub: HubServer, importer: Command) -> None:
    repo = hub.repos["a/b"] = Repo({"config.json": CONFIG}, info={"sha": "0" * 40})
    for reference in (f"a/b@{repo.sha}",):
        ran = importer(reference, "--json")
        assert (ran.code, ran.json()["error"]["kind"]) == (3, "bad-answer")


# --- Whatever the files hold ---

FILES = (
    "config.json", "tokenizer_config.json", "generation_config.json", "added_tokens.json",
    "chat_template.json",
    "special_tokens_map.json", "processor_config.json", "hf_quant_config.json",
)  # fmt: skip
KEYS = (
    "model_type", "architectures", "text_config", "vision_config", "quantization_config", "quantization",
    "quant_method", "quant_algo", "group_size", "bits", "max_position_embeddings", "eos_token_id",
    "temperature",
    "top_p", "top_k", "do_sample", "chat_template", "name", "template", "content", "special", "eos_token",
    "bos_token", "added_tokens_decoder", "additional_special_tokens", "extra_special_tokens", "auto_map",
    "tool_parser_type", "response_template", "tokenizer_class", "_name_or_path", "speculators_config",
    "0", "1",
)  # fmt: skip
TEXTS = (
    "qwen3",
    "Qwen3ForCausalLM",
    ESCAPES,
    INJECTION,
    "\ud800",
    "9" * 5000,
    "../x",
    "!!python/name:os",
    "<think>",
)
scalars = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(TEXTS) | st.text(max_size=9)
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6),
    max_leaves=25,
)
objects = st.dictionaries(st.sampled_from(KEYS), values, max_size=10)


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(files=st.dictionaries(st.sampled_from(FILES), objects, min_size=1, max_size=6))
@example(files={"tokenizer_config.json": {"chat_template": [{"name": [], "template": "x"}]}})
@example(files={"tokenizer_config.json": {"added_tokens_decoder": {"9" * 6000: {"content": "x"}}}})
def test_whatever_the_files_hold_the_answer_is_a_document_or_a_sentence(
    importer: Command, tmp_path: Path, files: dict[str, Content]
) -> None:
    """Never exit code 70, which is a fault of ours; always one calm line of JSON."""
    model = tmp_path / "fuzzed"
    if model.exists():
        shutil.rmtree(model)
    ran = importer(str(folder(model, files)), "--dry-run", "--json")
    assert ran.code in {0, 4}, ran.err
    assert calm(ran.out)
    assert ran.json()["schema"] == 1
