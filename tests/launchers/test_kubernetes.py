"""Kubernetes: the Job that is written, and the real kubectl against answers in the API's own shapes."""

from __future__ import annotations

import base64
import gzip
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from importer import launchers
from importer.errors import LauncherError, UsageError
from importer.launchers.base import (
    Absent,
    Cancelled,
    Failed,
    FailureKind,
    Lost,
    Queued,
    RemoteRun,
    RemoteState,
    RemoteTask,
    Resources,
    Running,
    Secret,
    Succeeded,
    parse_target,
)
from importer.launchers.kubernetes import PIECE, Job, Pod, config_map, job, pieces, state_of
from tests.cluster_api import ClusterApi, serving
from tests.consumers import kubectl
from tests.exports.test_exports_consumers import by_kubernetes
from tests.tiers import one_of_each

DIGEST = f"sha256:{'a' * 64}"
TARGET = parse_target(
    "k8s:tests/ml?image=r.example/importer-vllm@sha256:0f&queue=team-a&secret=hub&account=runner"
)
TASK = RemoteTask(
    "run-1", b'{"schema": 1}', DIGEST, "vllm", Resources(4, 2, 8 * 2**30),
    secrets={"OPENAI_API_KEY": Secret("keys", "openai")}, seconds=900,
)  # fmt: skip


def test_a_job_has_no_rights_and_no_secret_in_it() -> None:
    made = job(TASK, TARGET)
    assert made["metadata"]["labels"]["kueue.x-k8s.io/queue-name"] == "team-a"
    assert made["metadata"]["annotations"] == {"importer/document": DIGEST}
    spec = made["spec"]
    assert (spec["suspend"], spec["backoffLimit"], spec["activeDeadlineSeconds"]) == (True, 0, 900)
    assert spec["ttlSecondsAfterFinished"] == 24 * 3600
    pod = spec["template"]["spec"]
    assert (pod["restartPolicy"], pod["serviceAccountName"]) == ("Never", "runner")
    assert pod["automountServiceAccountToken"] is False
    (container,) = pod["containers"]
    rights = container["securityContext"]
    assert (rights["runAsNonRoot"], rights["readOnlyRootFilesystem"]) == (True, True)
    assert rights["capabilities"] == {"drop": ["ALL"]}
    assert container["resources"]["limits"] == {"cpu": "4", "memory": str(8 * 2**30), "nvidia.com/gpu": "2"}
    named = {one["name"]: one.get("valueFrom", {}).get("secretKeyRef") for one in container["env"]}
    assert named["OPENAI_API_KEY"] == {"name": "keys", "key": "openai", "optional": False}
    assert named["HF_TOKEN"] == {"name": "hub", "key": "HF_TOKEN", "optional": False}
    assert named["IMPORTER_IMAGE"] is None
    plain = job(TASK, parse_target("k8s:tests/ml?image=x"))
    assert "suspend" not in plain["spec"]


def test_the_command_unpacks_and_runs_what_was_sent(tmp_path: Path) -> None:
    """The shell of the container, with its folders here and a program in Python's place."""
    wheel = tmp_path / "importer-1-py3-none-any.whl"
    wheel.write_bytes(bytes(range(256)) * (PIECE // 200))
    task = RemoteTask("run-1", b'{"a": "$HOME"}', DIGEST, "vllm", wheel=wheel)
    maps = [config_map("run-1", name, key, data, "uid") for name, (key, data) in pieces(task).items()]
    assert len(maps) == 3
    assert max(len(json.dumps(one)) for one in maps) < 2**20
    (tmp_path / "input").mkdir()
    (tmp_path / "work").mkdir()
    for one in maps:
        ((key, data),) = one["binaryData"].items()
        (tmp_path / "input" / key).write_bytes(base64.b64decode(data))
    seen = tmp_path / "seen"
    program = tmp_path / "python"
    program.write_text(
        f'#!/bin/sh\n[ "$1" = -c ] && exec python3 "$@"\necho "$PYTHONPATH $*" >> {seen}\nexit 0\n'
    )
    program.chmod(0o755)
    made = job(task, parse_target(f"k8s:tests/ml?image=x&python={program}"))
    _, _, script = made["spec"]["template"]["spec"]["containers"][0]["command"]
    script = script.replace("$$", "$").replace("/importer/", f"{tmp_path}/")
    assert subprocess.run(["sh", "-c", script], check=False).returncode == 0
    work = tmp_path / "work"
    assert (work / "task.json").read_bytes() == task.bundle
    assert (work / wheel.name).read_bytes() == wheel.read_bytes()
    install, run = seen.read_text().splitlines()
    assert install.split() == [
        "-m", "pip", "install", "--quiet", "--target", f"{work}/site", f"{work}/{wheel.name}",
    ]  # fmt: skip
    assert run.split() == [f"{work}/site", "-P", "-m", "importer", "run-task", f"{work}/task.json"]


@pytest.mark.slow
@pytest.mark.nightly
def test_kubernetes_reads_the_objects_of_a_run(tmp_path: Path) -> None:
    wheel = tmp_path / "importer-1-py3-none-any.whl"
    wheel.write_bytes(b"x")
    task = RemoteTask("run-1", b"{}", DIGEST, "vllm", Resources(1, 1, 2**30), wheel)
    maps = [config_map("run-1", name, key, data, "uid") for name, (key, data) in pieces(task).items()]
    objects = [job(task, TARGET), job(task, parse_target("k8s:tests/ml?image=x")), *maps]
    assert by_kubernetes(objects, tmp_path) == [None] * len(objects)


# States, in the shapes that the API gives


def pod(phase: str, **status: Any) -> dict[str, Any]:
    return {"metadata": {"name": "p"}, "spec": {"nodeName": "gpu-07"}, "status": {"phase": phase, **status}}


def ended(reason: str, code: int) -> list[dict[str, Any]]:
    return [{"name": "importer", "state": {"terminated": {"reason": reason, "exitCode": code}}}]


def condition(kind: str, reason: str, message: str = "", status: str = "True") -> dict[str, Any]:
    return {"conditions": [{"type": kind, "status": status, "reason": reason, "message": message}]}


LIMIT = condition("Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
NO_CARD = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
PULL = 'Back-off pulling image "r.example/x"'
DRAINED = "The node was low on resource: memory."
TAINTED = "Taint manager: deleting due to NoExecute taint"


def unready(reason: str, message: str) -> dict[str, Any]:
    waiting = {"waiting": {"reason": reason, "message": message}}
    return pod("Pending", containerStatuses=[{"name": "importer", "state": waiting}])


@pytest.mark.parametrize(
    ("status", "pods", "state"),
    [
        ({}, [], Queued("quota")),
        (condition("Suspended", "JobSuspended"), [], Queued("quota")),
        ({"active": 1}, [pod("Pending")], Queued("its container is made ready")),
        (
            {"active": 1},
            [pod("Pending", **condition("PodScheduled", "Unschedulable", NO_CARD, "False"))],
            Queued(f"Unschedulable: {NO_CARD}"),
        ),
        ({"active": 1}, [unready("ContainerCreating", "")], Queued("its container is made ready")),
        (
            {"active": 1},
            [unready("ImagePullBackOff", PULL)],
            Failed(FailureKind.ENVIRONMENT, f"ImagePullBackOff: {PULL}"),
        ),
        (
            {"active": 1},
            [unready("CreateContainerConfigError", 'secret "hub" not found')],
            Failed(FailureKind.ENVIRONMENT, 'CreateContainerConfigError: secret "hub" not found'),
        ),
        ({"active": 1}, [pod("Running")], Running("gpu-07")),
        ({"active": 1}, [pod("Unknown")], Lost("the node gpu-07 does not answer")),
        ({"succeeded": 1, **condition("Complete", "CompletionsReached")}, [], Succeeded()),
        (condition("Failed", "DeadlineExceeded"), [], Failed(FailureKind.TIME, "DeadlineExceeded")),
        (
            LIMIT,
            [pod("Failed", containerStatuses=ended("OOMKilled", 137))],
            Failed(FailureKind.MEMORY, "OOMKilled"),
        ),
        (
            LIMIT,
            [pod("Failed", containerStatuses=ended("Error", 8))],
            Failed(FailureKind.COMMAND, "exit status 8"),
        ),
        (
            LIMIT,
            [pod("Failed", containerStatuses=ended("Error", 127))],
            Failed(FailureKind.ENVIRONMENT, "exit status 127"),
        ),
        (LIMIT, [pod("Failed", reason="Evicted", message=DRAINED)], Lost(f"Evicted: {DRAINED}")),
        (
            LIMIT,
            [pod("Failed", **condition("DisruptionTarget", "DeletionByTaintManager", TAINTED))],
            Lost(f"DeletionByTaintManager: {TAINTED}"),
        ),
        (LIMIT, [], Lost("BackoffLimitExceeded: Job has reached the specified backoff limit")),
    ],
)  # fmt: skip
def test_each_state_of_a_job(status: Any, pods: Any, state: RemoteState) -> None:
    found = Job.model_validate({"kind": "Job", "metadata": {"name": "j", "uid": "1"}, "status": status})
    assert state_of(found, [Pod.model_validate(one) for one in pods], lambda: "quota") == state


# The real kubectl


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ClusterApi]:
    monkeypatch.setenv("PATH", f"{kubectl().parent}:{os.environ['PATH']}")
    with serving(tmp_path) as served:
        monkeypatch.setenv("KUBECONFIG", str(served.config))
        monkeypatch.setenv("HOME", str(tmp_path))
        yield served


@pytest.mark.slow
def test_a_run_from_its_submission_to_its_end(api: ClusterApi) -> None:
    launcher = launchers.get(TARGET)
    run = RemoteRun.of(TASK.id, TARGET)
    assert launcher.state(run) == Absent()
    assert launcher.submit(TASK) == run
    del api.objects["configmaps", "run-1-task"]  # as where it was killed in the middle
    assert launcher.submit(TASK) == run
    assert {name for name, _ in api.objects} == {"jobs", "configmaps"}
    task = api.objects["configmaps", "run-1-task"]
    assert gzip.decompress(base64.b64decode(task["binaryData"]["task.json.gz"])) == TASK.bundle
    assert task["metadata"]["ownerReferences"][0]["uid"] == "uid-run-1"

    owner = [{"uid": "uid-run-1"}]
    says = "couldn't assign flavors to pod set main: insufficient quota for nvidia.com/gpu"
    waits = {"type": "QuotaReserved", "status": "False", "message": says, "lastTransitionTime": "2026"}
    workload = {"name": "job-run-1", "ownerReferences": owner}
    api.put("workloads", "job-run-1", metadata=workload, status={"conditions": [waits]})
    assert launcher.state(run) == Queued(says)

    api.status("run-1", active=1)
    image = "r.example/importer-vllm@sha256:0f00"
    api.pod("run-1", {"phase": "Running", "containerStatuses": [{"name": "importer", "imageID": image}]})
    api.logs["run-1-x7k2p"] = "importer-step starting\n"
    assert launcher.state(run) == Running("gpu-07")
    assert launcher.logs(run) == launcher.fetch(run) == "importer-step starting\n"
    assert launcher.facts(run) == {"node": "gpu-07", "image": image, "pod": "run-1-x7k2p"}

    launcher.cancel(run)
    launcher.cancel(run)
    assert api.objects["jobs", "run-1"]["spec"]["activeDeadlineSeconds"] == 1
    assert launcher.state(run) == Running("gpu-07")
    api.pod("run-1", {"phase": "Failed"})
    assert launcher.state(run) == Cancelled()
    assert launcher.submit(TASK) == run  # it stays cancelled

    launcher.remove(run)
    launcher.remove(run)
    assert not api.objects
    assert launcher.fetch(run) == ""
    launcher.cancel(run)


@pytest.mark.slow
def test_a_job_without_a_pod_says_what_its_event_says(api: ClusterApi) -> None:
    target = parse_target("k8s:tests/ml?image=x")
    launcher = launchers.get(target)
    run = launcher.submit(TASK)
    says = 'pods "run-1-" is forbidden: exceeded quota: cards, requested: requests.nvidia.com/gpu=2'
    api.put("events", "e1", lastTimestamp="2026-11-23T08:00:00Z", message="older")
    api.put("events", "e2", lastTimestamp="2026-11-23T08:00:09Z", message=says)
    assert launcher.state(run) == Queued(says)


@pytest.mark.parametrize(
    ("verb", "kind", "answer", "error"),
    one_of_each([
        ("create", "jobs", (403, "Forbidden", 'User "me" cannot create'), "cluster-refused"),
        ("create", "jobs", (404, "NotFound", 'namespaces "ml" not found'), "cluster-refused"),
        ("create", "configmaps", (413, "RequestEntityTooLarge", "limit is 3145728"), "cluster-refused"),
        ("get", "jobs", (401, "Unauthorized", "Unauthorized"), "cluster-refused"),
        ("get", "jobs", (500, "InternalError", "etcdserver: leader changed"), "cluster-unreachable"),
        ("get", "jobs", (503, "ServiceUnavailable", "no endpoints"), "cluster-unreachable"),
    ], tier="slow"),
)  # fmt: skip
def test_a_refusal_has_a_kind(api: ClusterApi, verb: str, kind: str, answer: Any, error: str) -> None:
    api.refuse[verb, kind] = answer
    with pytest.raises(LauncherError) as caught:
        launchers.get(TARGET).submit(TASK)
    assert caught.value.kind == error


@pytest.mark.slow
def test_a_context_that_is_not_there_and_a_cluster_that_is_silent(
    api: ClusterApi, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(LauncherError) as caught:
        launchers.get(parse_target("k8s:elsewhere/ml?image=x")).submit(TASK)
    assert (caught.value.kind, caught.value.details["status"]) == ("cluster-refused", "NoContext")
    silent = tmp_path / "silent"
    silent.write_text(
        api.config.read_text().replace("server: http://127.0.0.1:", "server: http://127.0.0.1:1 #")
    )
    monkeypatch.setenv("KUBECONFIG", str(silent))
    with pytest.raises(LauncherError) as caught:
        launchers.get(TARGET).state(RemoteRun.of("run-1", TARGET))
    assert caught.value.kind == "cluster-unreachable"
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LauncherError) as caught:
        launchers.get(TARGET).submit(TASK)
    assert caught.value.kind == "launcher-missing"


def test_a_target_without_an_image_is_refused_before_anything_is_sent() -> None:
    with pytest.raises(UsageError) as caught:
        launchers.get(parse_target("k8s:tests/ml?queue=team-a"))
    assert caught.value.kind == "bad-target"
    assert "?image=" in str(caught.value)
