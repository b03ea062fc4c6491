"""The shape of the code: direction of imports, size of modules, and calls that nobody may make."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

import pytest

from importer import backends
from tests.syntax import MODULES, ROOT, nodes, written

pytestmark = pytest.mark.xdist_group("syntax")  # one process parses the modules

# Each room imports only from rooms before it; CONTRIBUTING.md shows the same list.
ROOMS = (
    "version", "frozen", "backends", "reasons", "sentences", "errors", "registry", "config", "kept",
    "storage", "progress", "launcher", "wheels", "yaml_reader", "sandbox",
    "hub", "chat_template", "signals", "memory", "decisions", "document",
    "engines", "exports", "proof", "validation", "reports", "transport", "analysis", "app", "service", "cli",
)  # fmt: skip
APART = {"__init__", "__main__", "demo"}  # the version, the way in, and the demo model with its training

# What a pure room may import from Python's own library: nothing that opens, asks or starts anything.
PURE = {
    "__future__", "collections", "dataclasses", "difflib", "enum", "functools", "itertools", "math",
    "operator", "re", "types", "typing",
}  # fmt: skip

NETWORK = {"socket", "ssl", "http", "urllib.request", "urllib.error", "huggingface_hub", "httpx", "requests"}
MAY_CONNECT = {
    "importer.hub.client", "importer.hub.route", "importer.hub.weights",  # the Hub
    "importer.hub.endpoint",  # looks names up
    "importer.engines.ports", "importer.engines.readiness",  # loopback
    "importer.engines.rust_renderer", "importer.validation.client",
    "importer.service.server",  # connects to nothing
    "importer.wheels.web",  # the package index
}  # fmt: skip
STARTERS = re.compile(
    r"(subprocess|_posixsubprocess|multiprocessing|pty|asyncio\.subprocess)(\..*)?"
    r"|os\.(exec\w+|spawn\w+|posix_spawn\w*|fork\w*|system|popen|startfile)"
    r"|.*\b(ProcessPoolExecutor|create_subprocess_\w+|subprocess_(exec|shell))"
)
MAY_START = {
    "importer.launcher",
    "importer.engines.supervisor",  # a file in an interpreter of its own, which can import nothing of ours
    # Likewise: these run in the engine's environment, and start its own binary.
    "importer.engines.parser_worker.scripted_core",
    "importer.engines.parser_worker.vllm_rust_worker",
}
READS_YAML = {
    "importer.yaml_reader",
    "importer.document.yaml_edit.cst",
}  # the latter what the former has accepted
KNOWS_YAML = READS_YAML | {
    "importer.document.yaml_edit.patch", "importer.document.yaml_edit.render",
    "importer.document.yaml_edit.source_map",
    "importer.document.build_text", "importer.exports.texts",  # nodes to edit, to point at, to write
}  # fmt: skip
FORBIDDEN = {"pickle", "marshal", "shelve", "dill", "cloudpickle", "multiprocessing", "torch", "vllm", "mlx"}


@cache
def imports(module: str) -> tuple[str, ...]:
    """Absolute names of everything a module imports, wherever in it."""
    return tuple(_imports(MODULES[module], module))


def _imports(path: Path, module: str) -> Iterator[str]:
    package = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            name = ".".join([*base, *(node.module or "").split(".")]).strip(".")
            yield from (f"{name}.{alias.name}" for alias in node.names)


def room(module: str) -> str:
    steps = module.split(".")
    return steps[1] if len(steps) > 1 else ""


def test_every_module_is_in_a_room() -> None:
    assert {room(m) for m in MODULES} == {*ROOMS, *APART}


def test_each_room_imports_only_from_rooms_before_it() -> None:
    backwards = [
        f"{module} imports {name}"
        for module in MODULES
        for name in imports(module)
        if name.startswith("importer.") and room(module) in ROOMS and room(name) in ROOMS
        and ROOMS.index(room(name)) > ROOMS.index(room(module))
    ]  # fmt: skip
    assert not backwards
    strays = [
        f"{m} imports {n}"
        for m in MODULES
        for n in imports(m)
        if n.startswith("importer.") and room(m) != room(n) and "demo" in (room(m), room(n))
        and not n.startswith("importer.validation.prompts")  # what the model is asked is what it is taught
        and n not in ("importer.demo", "importer.demo.MODEL", "importer.demo.ENGINE")
    ]  # fmt: skip
    assert not strays


def test_storage_knows_no_documents() -> None:
    """It keeps rows and JSON of others, and depends on failures, reasons and settings alone."""
    found = {
        room(name)
        for m in MODULES
        if room(m) == "storage"
        for name in imports(m)
        if name.startswith("importer.")
    }
    assert found == {"storage", "errors", "reasons", "config", "frozen"}


def joined(module: str) -> Iterator[str]:
    """Modules of ours that a module imports anywhere: at its top, in functions, for a type checker alone."""
    for name in imports(module):
        owner = next(
            (n for n in (name, name.rpartition(".")[0]) if {n, f"{n}.__init__"} & MODULES.keys()), None
        )
        if owner is not None and owner != "importer":
            yield owner if owner in MODULES else f"{owner}.__init__"


def siblings() -> dict[str, dict[str, set[str]]]:
    """By package: each of its modules and sub-packages, and those of its others that it imports."""
    found: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for module in MODULES.keys() - {"importer.__init__"}:
        for name in joined(module):
            own, other = module.split("."), name.split(".")
            depth = next((n for n, (a, b) in enumerate(zip(own, other, strict=False)) if a != b), None)
            if depth is not None:
                found[".".join(own[:depth])][own[depth]].add(other[depth])
    return found


def circle(graph: Mapping[str, set[str]]) -> dict[str, list[str]]:
    """The nodes of circles and those that reach one, each with what it imports of them."""
    waiting = dict(graph)
    while free := [node for node, needs in waiting.items() if not needs & waiting.keys()]:
        for node in free:
            del waiting[node]
    return {node: sorted(needs & waiting.keys()) for node, needs in sorted(waiting.items())}


@pytest.mark.xdist_group("syntax")
def test_what_lies_in_one_package_imports_one_way() -> None:
    """A package's sub-packages and modules form no circle, so no two import each other and no module itself.

    Imports inside of functions count, and those of annotations. Nothing below uses the public door.
    """
    graphs = siblings()
    assert len(graphs) > 20
    assert {package: found for package, graph in graphs.items() if (found := circle(graph))} == {}


@pytest.mark.parametrize(
    ("graph", "found"),
    [
        ({"probes": {"context"}, "run": {"probes", "context"}}, {}),
        ({"probes": {"context"}, "context": {"probes"}}, {"context": ["probes"], "probes": ["context"]}),
        ({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": set()}, {"a": ["b"], "b": ["c"], "c": ["a"]}),
    ],
)
def test_a_circle_is_seen(graph: dict[str, set[str]], found: dict[str, list[str]]) -> None:
    assert circle(graph) == found


def test_the_page_on_contributing_shows_the_order_inside_rooms() -> None:
    """No part of a room imports one that the page shows above it."""
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = re.findall(r"^- `(\w+)`: (.* → .*)$", page, re.MULTILINE)
    assert len(rows) == 5
    for one, shown in rows:
        graph = siblings()[f"importer.{one}"]
        levels = {
            name: n for n, level in enumerate(shown.split("→")) for name in re.findall(r"`(\w+)/?`", level)
        }
        assert levels.keys() <= graph.keys() | set().union(*graph.values())
        assert [(a, b) for a in levels for b in graph[a] if levels.get(b, 0) > levels[a]] == []


def test_the_domain_of_the_service_knows_no_http() -> None:
    """Nor do its jobs; pydantic checks the request of an import, as clients send it and jobs keep it."""
    http = re.compile(
        r"(fastapi|starlette|uvicorn|http|importer\.service\.(http|security|localai|desk|problems))(\..*)?"
    )
    inside = [m for m in MODULES if m.startswith(("importer.service.domain.", "importer.service.jobs."))]
    assert [f"{m} imports {name}" for m in inside for name in imports(m) if http.fullmatch(name)] == []
    checking = {m for m in inside for name in imports(m) if name.split(".")[0] == "pydantic"}
    assert checking == {"importer.service.domain.import_request"}


def test_the_page_on_contributing_shows_these_rooms_in_this_order() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert tuple(re.findall(r"^\| `(\w+)` \|", page, re.MULTILINE)) == ROOMS


def test_deciding_is_pure() -> None:
    """Whatever ``decide`` reaches through imports opens no file, asks nobody and starts nothing."""
    waiting, seen = [m for m in MODULES if room(m) == "decisions"], set[str]()
    while waiting:
        module = waiting.pop()
        if module in seen:
            continue
        seen.add(module)
        for name in imports(module):
            if name.startswith("importer"):
                owner = name if name in MODULES else name.rpartition(".")[0]
                waiting.append(owner if owner in MODULES else f"{owner}.__init__")
            else:
                assert name.split(".")[0] in PURE, f"{module} imports {name}"
    assert len(seen) > 4


@pytest.mark.parametrize(("names", "allowed"), [(NETWORK, MAY_CONNECT), (FORBIDDEN, set())])
def test_who_may_connect_and_start(names: set[str], allowed: set[str]) -> None:
    """Worker and plugin live in the engine's environment and import the engine; all others are listed."""
    found = {
        module
        for module in MODULES
        if ".parser_worker." not in module and room(module) != "demo"
        for name in imports(module)
        if any(name == n or name.startswith(f"{n}.") for n in names)
    }
    assert found == allowed or (not allowed and not found)


def test_one_module_starts_processes() -> None:
    """Neither by an import nor by an attribute of a module; ``gen_defaults`` is held to it as well."""
    jobs = {f"gen_defaults.{p.stem}": p for p in sorted((ROOT / "gen_defaults").rglob("*.py"))}
    found = {
        module
        for module, path in {**MODULES, **jobs}.items()
        for name in (
            *_imports(path, module),
            *(written(n) for n in nodes(path) if isinstance(n, ast.Attribute)),
        )
        if STARTERS.fullmatch(name)
    }
    assert found == MAY_START


def calls(path: Path) -> Iterator[tuple[str, ast.Call]]:
    for node in nodes(path):
        if isinstance(node, ast.Call):
            yield written(node.func), node


def test_yaml_is_read_in_one_place() -> None:
    assert {m for m in MODULES for name in imports(m) if name.split(".")[0] == "yaml"} == KNOWS_YAML
    reading = re.compile(r"yaml\.(?:\w*load\w*|compose\w*|parse|scan|\w*Loader|\w*Constructor)\Z")
    readers = {
        module
        for module in KNOWS_YAML
        for node in nodes(MODULES[module])
        if isinstance(node, ast.Attribute) and reading.match(written(node))
    }
    assert readers == READS_YAML


NAMES_ENGINES = {
    "importer.backends",  # the one declaration
    "importer.memory.engine_keys",
    "importer.signals.quantisation",  # a method of the same name
    "importer.service.http.models",  # an example of a request
}  # fmt: skip


def test_a_backend_is_asked_for_its_properties_and_not_for_its_name() -> None:
    names = set(backends.NAMES)
    found = {
        module
        for module, path in MODULES.items()
        if room(module) not in ("engines", "exports", "demo")
        for node in nodes(path)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in names
    }
    assert found == NAMES_ENGINES


def test_a_command_of_the_user_is_run_in_one_place() -> None:
    """There everything that comes is bounded and on a clock."""
    remote = re.compile(r"(?<!class )Purpose\.REMOTE")
    asking = {
        m for m, p in MODULES.items() if m != "importer.launcher" and remote.search(p.read_text("utf-8"))
    }
    assert asking == {"importer.transport.exchange"}


DANGEROUS = {
    "eval", "exec", "compile", "__import__", "os.system", "os.popen",
    "yaml.load", "yaml.load_all", "yaml.full_load", "yaml.unsafe_load",
}  # fmt: skip


def is_dangerous(module: str, name: str, call: ast.Call) -> bool:
    """Whether a call evaluates text, starts a shell, or builds what a stranger's YAML names."""
    options = {k.arg: k.value for k in call.keywords}
    remote = options.get("trust_remote_code")
    starts = name.startswith(("subprocess.", "launcher.")) and bool(call.args)
    return (
        name in DANGEROUS
        or name.startswith(("os.exec", "os.spawn", "pty."))
        or "shell" in options
        or ("Loader" in options and module not in READS_YAML)
        or (starts and isinstance(call.args[0], ast.Constant | ast.JoinedStr | ast.BinOp))
        or (remote is not None and written(remote) != "False")
    )


def test_no_dangerous_call() -> None:
    assert not [
        f"{module}:{call.lineno}: {name}"
        for module, path in MODULES.items()
        for name, call in calls(path)
        if is_dangerous(module, name, call)
    ]


@pytest.mark.parametrize(
    "line",
    [
        "eval(text)", "os.system(text)", "os.execv(path, words)", "yaml.load(text)", "f(text, shell=False)",
        "f(text, Loader=Own)", "subprocess.run('ls')", "launcher.run(f'ls {x}')", "f(trust_remote_code=True)",
    ],
)  # fmt: skip
def test_a_dangerous_call_is_seen(line: str) -> None:
    (call,) = [node for node in ast.walk(ast.parse(line)) if isinstance(node, ast.Call)]
    assert is_dangerous("importer.any", written(call.func), call)


def test_an_engine_is_given_repository_code_only_on_the_users_word() -> None:
    """The flag stands behind ``document.get("trust_remote_code") is True``, and no evidence sets that key."""
    for module, path in MODULES.items():
        if room(module) in {"signals", "decisions", "proof", "chat_template", "hub"}:
            whole = nodes(path)
            texts = {n.value for n in whole if isinstance(n, ast.Constant) and isinstance(n.value, str)}
            named = {n.arg for n in whole if isinstance(n, ast.keyword)}
            assert not {t for t in texts if t.endswith("trust_remote_code")} | (named & {"trust_remote_code"})
    for engine in ("mlx", "mlx_vlm", "vllm", "vllm_mlx"):
        text = MODULES[f"importer.engines.{engine}"].read_text(encoding="utf-8")
        guarded = 'if document.get("trust_remote_code") is True:\n'
        assert text.count("--trust-remote-code") == 1
        assert text.partition(guarded)[2].lstrip().startswith('arguments.append("--trust-remote-code")')


COUNTED = f"""
import sys
run = set()
def note(frame, event, _argument):
    code = frame.f_code
    if event == "call" and code.co_filename.startswith({str(ROOT / "importer")!r}):
        run.add(code)
sys.setprofile(note)
from importer.__main__ import main
main()
sys.setprofile(None)
functions = [code for code in run if code.co_flags & 1 and code.co_name[0] != "<"]  # no class, no module
ours = [name for name in sys.modules if name.partition(".")[0] == "importer"]
heavy = {{"huggingface_hub", "httpx", "jinja2", "rich", "jsonschema", "yaml", "importlib.metadata"}}
print(len(functions), len(ours), *sorted(heavy & set(sys.modules)))
"""


@pytest.mark.slow
def test_a_dry_import_from_a_directory_loads_and_runs_little(tmp_path: Path) -> None:
    """The second import of a directory has the analysis and the proof of the first."""
    words = [str(ROOT / "importer" / "demo" / "model"), "--dry-run", "--backend", "mlx"]
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, "-c", COUNTED, *words], capture_output=True, text=True, check=True, cwd=ROOT,
            env={**os.environ, "IMPORTER_HOME": str(tmp_path)},
        )  # fmt: skip
    functions, modules, *heavy = done.stdout.splitlines()[-1].split()
    assert (int(functions) <= 720, int(modules) <= 144, heavy) == (True, True, []), done.stdout


def tracked() -> list[Path]:
    """What git would carry, or all files where this is no checkout."""
    done = subprocess.run(["git", "ls-files", "-z"], capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode == 0:
        return [ROOT / name for name in done.stdout.split("\0") if name and (ROOT / name).is_file()]
    return [
        p
        for p in ROOT.rglob("*")
        if p.is_file() and not any(s.startswith(".") for s in p.relative_to(ROOT).parts)
    ]


def test_no_file_names_the_place_it_was_written_in() -> None:
    places = {str(ROOT), str(Path.home())} - {"/", "/root"}
    outside = re.compile("|".join(re.escape(p) + r"\b" for p in sorted(places)) or r"(?!)")
    named = [
        str(p.relative_to(ROOT))
        for p in tracked()
        if p.suffix in {".py", ".md", ".toml", ".json", ".jinja", ".txt", ".lock", ""}
        and outside.search(p.read_text("utf-8", "replace"))
    ]
    assert not named


@pytest.mark.xdist_group("one")
def test_what_belongs_to_a_group_is_run_by_one_process(request: pytest.FixtureRequest) -> None:
    """Two of vLLM's servers side by side on two processors hardly get on: the groups have to work."""
    if request.config.getoption("loadgroup", default=False):
        assert "one" in request.node.nodeid.rpartition("@")[2].split("_")
