"""The image and the Compose file, built and started by podman; nothing of them is altered for it.

``IMPORTER_TEST_PULL=1`` pulls the base images. Elsewhere two stand-ins carry their names: Debian's Python of
the same minor version, and Debian's PostgreSQL behind the variables of the official image.
"""

from __future__ import annotations

import json
import os
import secrets
import shutil
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml

from tests.serving import free_port
from tests.waiting import PATIENCE, wait_until
from tools.system_packages import PACKAGES, missing, place

pytestmark = [pytest.mark.nightly, pytest.mark.xdist_group("containers")]
ROOT = Path(__file__).parents[2]
COMPOSE = ROOT / "deploy" / "compose.yaml"
PULLED = os.environ.get("IMPORTER_TEST_PULL") == "1"
PROGRAMS = ("podman", "podman-compose", "runc", "catatonit", "iptables", "netavark", "aardvark-dns")
PYTHON, POSTGRES = "docker.io/library/python:3.11-slim", "docker.io/library/postgres:17"
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
CONFIGURATION = """[containers]
default_ulimits = ["nofile=1024:4096", "nproc=1024:4096"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
"""
STORAGE = '[storage]\ndriver = "overlay"\ngraphroot = "{0}/store"\nrunroot = "{0}/run"\n'
POSTGRES_FILE = """FROM docker.io/library/python:3.11-slim
RUN apt-get update && apt-get install -y --no-install-recommends postgresql \\
    && usermod -u 999 postgres && groupmod -g 999 postgres \\
    && install -d -o 999 -g 999 /var/lib/postgresql/data \\
    && install -d -o 999 -g 999 -m 3777 /run/postgresql && ln -s /usr/lib/postgresql/*/bin/* /usr/local/bin/
ENV PGDATA=/var/lib/postgresql/data/pg
VOLUME /var/lib/postgresql/data
COPY entry /usr/local/bin/
ENTRYPOINT ["sh", "/usr/local/bin/entry"]
"""
POSTGRES_ENTRY = """set -e
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  printf %s "$POSTGRES_PASSWORD" > /tmp/secret
  initdb -D "$PGDATA" -U "$POSTGRES_USER" -A scram-sha-256 --pwfile /tmp/secret -E UTF8
  printf "local all all trust\\nhost all all all scram-sha-256\\n" > "$PGDATA/pg_hba.conf"
  pg_ctl -D "$PGDATA" -o "-c listen_addresses=''" -w start
  createdb -U "$POSTGRES_USER" "$POSTGRES_DB" || true
  pg_ctl -D "$PGDATA" -w stop
fi
exec postgres -D "$PGDATA" -c listen_addresses='*'
"""


class Containers:
    """podman with a store of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "containers.conf").write_text(CONFIGURATION)
        (folder / "storage.conf").write_text(STORAGE.format(folder))
        self.env = {
            **os.environ, "CONTAINERS_CONF": str(folder / "containers.conf"),
            "CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"), "DISABLE_HC_SYSTEMD": "true",
            "DB_PASSWORD": secrets.token_hex(12), "PORT": str(free_port()),
            "HF_ENDPOINT": "http://127.0.0.1:9",  # nothing listens there: imports fail, and at once
        }  # fmt: skip

    def run(self, *words: str, check: bool = True, **more: Any) -> str:
        done = subprocess.run(
            words, env=self.env, cwd=self.folder, text=True, capture_output=True, timeout=PATIENCE,
            check=False, **more,
        )  # fmt: skip
        assert not check or done.returncode == 0, f"{words}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
        return done.stdout

    def podman(self, *words: str, **more: Any) -> str:
        return self.run("podman", *words, **more)

    def compose(self, *words: str, **more: Any) -> str:
        # Debian 12's release does not read the file's own name.
        return self.run("podman-compose", "-p", "importer", "-f", str(COMPOSE), *words, **more)

    def inspect(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.podman("inspect", f"importer_{name}_1"))[0]
        return found

    def build(self, file: Path, tag: str, context: Path) -> None:
        """The steps of a file run as this machine's root in a chroot, with the packages of its pip."""
        shared = pip_files(self.folder) if context == ROOT else ()
        volumes = [word for path in shared for word in ("-v", f"{path}:ro")]
        self.podman(
            "build", "--isolation", "chroot", "--network", "host", *volumes, "-f", str(file), "-t", tag,
            str(context),
        )  # fmt: skip

    def base(self) -> None:
        if PULLED:
            self.podman("pull", PYTHON, POSTGRES)
            return
        root = self.folder / "debian"
        packages = "--include=ca-certificates,python3,python3-venv"
        self.run("debootstrap", "--variant=minbase", packages, "bookworm", str(root))
        (root / "usr/bin/python").symlink_to("python3")
        self.run("tar", "-C", str(root), "-cf", str(self.folder / "base.tar"), ".")
        self.podman("import", str(self.folder / "base.tar"), PYTHON)
        shutil.rmtree(root)
        own = self.folder / "postgres"
        own.mkdir()
        (own / "Dockerfile").write_text(POSTGRES_FILE)
        (own / "entry").write_text(POSTGRES_ENTRY)
        self.build(own / "Dockerfile", POSTGRES, own)


def pip_files(folder: Path) -> Iterator[str]:
    """What pip and npm of this machine read, where pip is set to packages of its own."""
    settings = subprocess.run(["pip", "config", "list"], text=True, capture_output=True, check=False).stdout
    lines = dict(line.split("=", 1) for line in settings.splitlines() if line.startswith("global."))
    if lines:
        (folder / "pip.conf").write_text(
            "[global]\n" + "".join(f"{k[7:]} = {v.strip(chr(39))}\n" for k, v in lines.items())
        )
        yield f"{folder}/pip.conf:/etc/pip.conf"
        yield f"{CERTIFICATES}:{CERTIFICATES}"
        (folder / "npmrc").write_text(f"cafile={CERTIFICATES}\n")
        yield f"{folder}/npmrc:/root/.npmrc"
    for word in lines.values():
        for part in word.strip("'").split():
            path = part.removeprefix("file://").removesuffix("/simple")
            if path.startswith("/") and path != CERTIFICATES and Path(path).exists():
                yield f"{path}:{path}"


@pytest.fixture(scope="module")
def containers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Containers]:
    needed = PROGRAMS if PULLED else (*PROGRAMS, "debootstrap")
    absent = [missing(name) for name in needed if place(name) is None]
    if absent:
        pytest.skip("; ".join(absent))
    if os.geteuid() != 0:
        pytest.skip("this is not root, which networks of containers need here")
    assert set(needed) <= set(PACKAGES)
    made = Containers(tmp_path_factory.mktemp("containers"))
    try:
        made.base()
        made.build(ROOT / "deploy" / "Dockerfile", "importer", ROOT)
        yield made
    finally:
        made.compose("down", "-v", check=False)
        made.podman("system", "reset", "--force", check=False)
        shutil.rmtree(made.folder, ignore_errors=True)


def test_the_image_holds_the_command_line_and_no_root(containers: Containers) -> None:
    bounds = ("--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL", "--network", "none", "--rm")
    assert containers.podman("run", *bounds, "importer", "--version").startswith("importer ")
    asked = containers.podman("run", *bounds, "--entrypoint", "id", "importer")
    assert asked.startswith("uid=10001(importer) gid=10001(importer)")
    refused = containers.podman(
        "run", *bounds, "importer", "serve", "--host", "0.0.0.0", check=False, stdin=subprocess.DEVNULL
    )
    assert refused == ""  # it needs a key, and ended


def test_the_compose_file_serves_and_its_worker_takes_jobs(containers: Containers) -> None:
    told = yaml.safe_load(COMPOSE.read_text())["services"]
    containers.compose("up", "-d", "db")
    ready = ("exec", "importer_db_1", *told["db"]["healthcheck"]["test"][1:])
    wait_until(
        lambda: "accepting" in containers.podman(*ready, check=False),
        lambda: containers.podman("logs", "importer_db_1", check=False),
    )
    key_of = ("admin", "api-keys", "create", "ann", "--scope", "import", "--scope", "approve")
    printed = containers.compose("run", "--rm", "-T", "server", *key_of)
    (key,) = (line for line in printed.splitlines() if line.startswith("imp_"))
    containers.compose("up", "-d")
    for name, one in told.items():
        found = containers.inspect(name)
        host = found["HostConfig"]
        assert host["ReadonlyRootfs"] is True, name
        assert found["Config"]["User"] == one["user"], name
        assert "no-new-privileges" in "".join(host["SecurityOpt"]).replace(":true", ""), name
        assert not found["EffectiveCaps"], name
    headers = {"Authorization": f"Bearer {key}"}
    url = f"http://127.0.0.1:{containers.env['PORT']}"
    with httpx.Client(base_url=url, headers=headers, timeout=PATIENCE, trust_env=False) as client:
        wait(lambda: client.get("/readyz").status_code == 200, containers)
        assert client.get("/v1/configs", headers={"Authorization": ""}).status_code == 401
        assert client.get("/v1/configs").json()["items"] == []
        wait(lambda: "importer_processes 2.0" in client.get("/metrics").text, containers)
        job = client.post("/v1/imports", json={"reference": "acme/base", "backend": "vllm"}).json()["id"]
        wait(lambda: client.get(f"/v1/jobs/{job}").json()["state"] == "failed", containers)
        assert client.get(f"/v1/jobs/{job}").json()["error"]["kind"] == "network"  # the worker asked


def wait(done: Callable[[], bool], containers: Containers) -> None:
    def answered() -> bool:
        try:
            return done()
        except httpx.TransportError:
            return False

    wait_until(answered, lambda: containers.podman("logs", "importer_server_1", check=False)[-3000:])
