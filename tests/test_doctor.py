"""The doctor's judgements, and one run of all checks here."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from importer.engines import ENGINES, doctor, environment, get


@pytest.mark.parametrize(
    ("check", "verdict", "word"),
    [
        (doctor.python((3, 11, 0)), "ok", "3.11.0"),
        (doctor.python((3, 10, 9)), "fail", "too old"),
        (doctor.installer(has_pip=False, has_ensurepip=True), "ok", "pip"),
        (doctor.installer(has_pip=False, has_ensurepip=False), "fail", "neither"),
        (doctor.disk(90 * doctor.GB), "ok", "90.0 GB"),
        (doctor.disk(2 * doctor.GB), "warn", "not for vLLM"),
        (doctor.disk(0), "fail", "too little"),
        (doctor.memory(None), "ok", "not known"),
        (doctor.memory(8 * doctor.GB), "ok", "8.0 GB"),
        (doctor.memory(1 * doctor.GB), "warn", "1.0 GB"),
        (doctor.processor("arm64", frozenset()), "ok", "arm64"),
        (doctor.processor("x86_64", frozenset({"avx2", "avx512_bf16"})), "ok", "avx512_bf16"),
        (doctor.processor("x86_64", frozenset({"sse4_2"})), "warn", "without AVX2"),
        (doctor.libraries(lambda _: True), "ok", "libnuma"),
        (doctor.libraries(lambda name: "gomp" in name), "warn", "libnuma.so.1 cannot"),
        (doctor.graphics(Path("/nowhere")), "ok", "no NVIDIA driver"),
    ],
)
def test_judgements(check: doctor.Check, verdict: str, word: str) -> None:
    assert check.verdict == verdict
    assert word in check.says
    assert verdict == "ok" or check.remedy


def test_every_check_runs_here(importer_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_TOKEN", "hf_verysecret")
    checks = {c.name: c for c in doctor.check_all()}
    assert {"python", "pip", "home", "disk", "memory", "processor", "port", "token", "hub", "mlx"} <= set(
        checks
    )
    assert "hf_verysecret" not in repr(checks)
    assert "a Hub token is set" in checks["token"].says
    assert checks["mlx"].remedy == "Run 'importer engine install mlx'."
    assert not importer_home.exists()


def test_a_home_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    check = doctor.home(tmp_path / "file" / "home")
    assert check.verdict == "fail"
    assert "IMPORTER_HOME" in check.remedy


def test_an_unfinished_environment_is_told(importer_home: Path) -> None:
    environment.root_of(get("mlx")).mkdir(parents=True)
    check = next(c for c in doctor.engines() if c.name == "mlx")
    assert (check.verdict, "unfinished" in check.says) == ("warn", True)


def test_a_variable_that_names_nothing(importer_home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IMPORTER_MLX_PYTHON", "/nowhere")
    check = next(c for c in doctor.engines() if c.name == "mlx")
    assert (check.verdict, "IMPORTER_MLX_PYTHON" in check.says) == ("fail", True)
    assert set(ENGINES) >= {c.name for c in doctor.engines()}


@pytest.mark.parametrize(
    ("packages", "clash"),
    [
        ({"torch": "2.13.0+cpu", "torchvision": "0.28.0"}, True),
        ({"torch": "2.13.0+cpu", "torchvision": "0.28.0+cpu"}, False),
        ({"torch": "2.13.0", "torchvision": "0.28.0"}, False),
        ({"torch": "2.13.0+cpu"}, False),
    ],
)
def test_torch_of_another_build(packages: dict[str, str], clash: bool) -> None:
    assert (doctor.torch_clash(packages) is not None) is clash


@pytest.fixture
def hub() -> Iterator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def test_the_endpoint_answers_or_not(hub: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setenv("HF_ENDPOINT", hub)
    assert doctor.endpoint().says == f"{hub} answers"
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    assert doctor.endpoint().verdict == "warn"
    monkeypatch.setenv("HF_ENDPOINT", "file:///etc")
    assert "no http or https URL" in doctor.endpoint().says
