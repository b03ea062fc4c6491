"""The files for Kubernetes and systemd: by the API's schemas, by systemd's own programs, by rules of ours."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from importer.cli.arguments import parse
from importer.service.settings import Settings

DEPLOY = Path(__file__).parents[2] / "deploy"
BASE, UNIT = DEPLOY / "kubernetes", DEPLOY / "systemd" / "importer.service"
VERSIONS = ("1.30", "1.37")  # of Kubernetes: an old one and a new one
MOST_EXPOSED = 2.0  # of 10
KUSTOMIZATION = yaml.safe_load((BASE / "kustomization.yaml").read_text())


def objects() -> Iterator[dict[str, Any]]:
    for name in KUSTOMIZATION["resources"]:
        yield from yaml.safe_load_all((BASE / name).read_text())


OBJECTS = {f"{one['kind']}/{one['metadata']['name']}": one for one in objects()}
PODS = {n: o["spec"]["template"]["spec"] for n, o in OBJECTS.items() if "template" in o.get("spec", {})}


def test_the_image_is_built_from_every_file_that_the_wheel_needs() -> None:
    project = tomllib.loads((DEPLOY.parent / "pyproject.toml").read_text())
    build, hatch = project["build-system"], project["tool"]["hatch"]
    needed = {
        f"{build['backend-path'][0]}/{build['build-backend']}.py",
        *(hook["path"] for hook in hatch["metadata"]["hooks"].values()),
        *hatch["build"]["targets"]["wheel"]["force-include"],
        *hatch["build"]["targets"]["wheel"]["packages"],
        *project["project"]["license-files"],
        "README.md",
    }
    copied = {
        word
        for line in (DEPLOY / "Dockerfile").read_text().splitlines()
        if line.startswith("COPY ") and "--from" not in line
        for word in line.split()[1:-1]
    }
    sent = {
        line[1:] for line in (DEPLOY.parent / ".dockerignore").read_text().splitlines() if line[:1] == "!"
    }
    assert needed <= copied <= sent


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", OBJECTS)
def test_each_object_fits_the_schema_of_the_api(name: str, version: str) -> None:
    kubernetes_validate.validate(OBJECTS[name], version, strict=True)


def test_a_field_that_the_api_does_not_know_fails() -> None:
    broken = OBJECTS["Service/importer"] | {"spec": {"prots": []}}
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(broken, VERSIONS[-1], strict=True)


def test_every_file_is_in_the_base() -> None:
    assert {path.name for path in BASE.glob("*.yaml")} == {*KUSTOMIZATION["resources"], "kustomization.yaml"}
    if (kubectl := shutil.which("kubectl")) is not None:
        done = subprocess.run([kubectl, "kustomize", str(BASE)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        built = {f"{o['kind']}/{o['metadata']['name']}" for o in yaml.safe_load_all(done.stdout)}
        assert built == set(OBJECTS)


@pytest.mark.parametrize("name", PODS)
def test_a_pod_has_no_more_rights_than_it_needs(name: str) -> None:
    pod = PODS[name]
    assert pod["automountServiceAccountToken"] is pod["enableServiceLinks"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    user = re.search(r"^USER (\d+):", (DEPLOY / "Dockerfile").read_text(), re.MULTILINE)
    assert user is not None
    assert pod["securityContext"]["runAsUser"] == int(user[1])
    for one in pod["containers"]:
        assert re.fullmatch(r"[\w./-]+(:(?!latest$)[\w.-]+|@sha256:[0-9a-f]{64})", one["image"]), one["image"]
        assert one["securityContext"] == {
            "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }  # fmt: skip
        assert one["resources"]["limits"]["memory"]
        parsed = parse(one["args"])
        assert {"serve": "server"}.get(parsed.command, one["args"][1]) == one["name"]
        for variable in one["env"]:
            assert variable["valueFrom"]["secretKeyRef"]["name"] == "importer", variable["name"]
        written = {mount["mountPath"] for mount in one["volumeMounts"]}
        assert written == {"/var/lib/importer", "/tmp"}


def test_no_file_holds_a_secret() -> None:
    assert not [name for name in OBJECTS if name.startswith("Secret/")]
    for path in DEPLOY.rglob("*"):
        if path.is_file():
            written = re.sub(r"^\s*#.*$", "", path.read_text(), flags=re.MULTILINE)
            assert not re.search(r"://[^\s/@]+:[^\s/@]+@|hf_\w{8}|imp_\w{12}", written), path
            assert not re.search(r"(?i)\b(password|hf_token)\s*[:=]\s*[\"']?[\w-]{4,}", written), path


def test_ports_and_probes_are_those_of_the_service() -> None:
    [server] = PODS["Deployment/importer-server"]["containers"]
    [port] = server["ports"]
    assert port == {"name": "http", "containerPort": Settings().port}
    assert {server[f"{p}Probe"]["httpGet"]["path"] for p in ("startup", "liveness")} == {"/healthz"}
    assert server["readinessProbe"]["httpGet"] == {"path": "/readyz", "port": "http"}
    assert OBJECTS["Service/importer"]["spec"]["ports"][0]["targetPort"] == "http"
    assert OBJECTS["NetworkPolicy/importer-server"]["spec"]["ingress"][0]["ports"][0]["port"] == "http"
    assert f"EXPOSE {Settings().port}\n" in (DEPLOY / "Dockerfile").read_text()
    chosen = OBJECTS["Service/importer"]["spec"]["selector"].items()
    labels = OBJECTS["Deployment/importer-server"]["spec"]["template"]["metadata"]["labels"]
    assert chosen <= labels.items()
    assert OBJECTS["PodDisruptionBudget/importer-server"]["spec"]["selector"]["matchLabels"] == labels


@pytest.fixture
def analyze() -> str:
    found = shutil.which("systemd-analyze")
    if found is None:
        pytest.skip("systemd-analyze is not here, for checking the unit: apt-get install systemd")
    return found


def test_systemd_accepts_the_unit(analyze: str, tmp_path: Path) -> None:
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace("/opt/importer/bin/importer", "/bin/true"))
    done = subprocess.run([analyze, "verify", str(unit)], capture_output=True, text=True, check=False)
    assert UNIT.name not in done.stderr, done.stderr  # it may complain of this machine's own units
    unit.write_text(UNIT.read_text().replace("NoNewPrivileges=", "NoNewPrivilege="))
    done = subprocess.run([analyze, "verify", str(unit)], capture_output=True, text=True, check=False)
    assert "NoNewPrivilege" in done.stderr


def test_the_unit_is_exposed_little(analyze: str) -> None:
    words = [analyze, "security", "--offline=true", "--no-pager", str(UNIT)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    score = re.search(r"exposure level for importer.service: ([\d.]+)", done.stdout)
    assert score is not None, done.stderr
    assert float(score[1]) <= MOST_EXPOSED


def test_the_unit_runs_the_command_in_its_own_folder() -> None:
    told = dict(re.findall(r"^(\w+)=(.*)$", UNIT.read_text(), re.MULTILINE))
    argv = told["ExecStart"].split()
    assert (argv[0], parse(argv[1:]).command) == ("/opt/importer/bin/importer", "serve")
    assert told["Environment"].split()[0] == f"IMPORTER_HOME=/var/lib/{told['StateDirectory']}"
    assert told["User"] not in ("root", "")
