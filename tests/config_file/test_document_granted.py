"""What a document grants an engine: code, folders and hosts, wherever the words stand."""

from __future__ import annotations

from typing import Any

import pytest

from importer.config_file.grants import GrantReason, grants, set_values
from importer.messages import render


def kinds(data: dict[str, Any]) -> set[str]:
    return {grant.kind.value for grant in grants(data)}


HUB = {"parameters": {"model": "a/b"}, "importer": {"reference": "a/b", "model_id": "a/b", "revision": "1"}}


@pytest.mark.parametrize(
    ("more", "found"),
    [
        ({}, set()),
        ({"trust_remote_code": False}, set()),
        ({"trust_remote_code": None}, set()),
        ({"trust_remote_code": True}, {"code"}),
        ({"trust_remote_code": "yes"}, {"code"}),
        ({"engine_args": {"trust_remote_code": True}}, {"code"}),
        ({"engine_args": {"trust-remote-code": True}}, {"code"}),
        ({"engine_args": {"mm": {"trust_remote_code": True}}}, {"code"}),
        ({"engine_args": {"hostfile": "/etc/hosts"}}, {"hosts"}),
        ({"engine_args": {"hostfile": None}}, set()),
        ({"options": ['--speculative-config:{"model": "e/vil", "revision": "1"}']}, {"drafter"}),
        ({"options": ["--speculative-config.model:e/vil"]}, {"drafter"}),
        ({"options": ["--trust-remote-code"]}, {"code"}),
        ({"options": ["--max-num-seqs:4", "tool_parser:hermes"]}, set()),
        ({"engine_args": {"data_parallel_address": "0.0.0.0"}}, {"address"}),
        ({"engine_args": {"master_addr": "10.0.0.1"}}, {"address"}),
        ({"env": {"VLLM_HOST_IP": "0.0.0.0"}}, {"address"}),
        ({"options": ["--data-parallel-address:0.0.0.0"]}, {"address"}),
        ({"engine_args": {"kv_transfer_config": {"connectors": [{"proxy_ip": "10.0.0.1"}]}}}, {"address"}),
        ({"engine_args": {"x": {"peer_addresses": ["10.0.0.1"]}}}, {"address"}),
        ({"engine_args": {"x": [[{"trust_remote_code": True}]]}}, {"code"}),
        ({"env": {"NCCL_SOCKET_IFNAME": "eth0"}, "engine_args": {"nnodes": 2}}, set()),
        ({"parameters": {"model": "/srv/model"}}, {"folder"}),
        ({"parameters": {"model": " ./model"}}, {"folder"}),
        ({"parameters": {"model": "~/model"}}, {"folder"}),
        ({"parameters": {"model": "word"}}, {"folder"}),
        ({"importer": {"reference": "../model"}}, {"folder"}),
        ({"importer": {"model_id": "/srv/model"}}, {"folder"}),
        ({"parameters": None, "importer": [], "engine_args": "x"}, set()),
    ],
)
def test_what_is_granted(more: dict[str, Any], found: set[str]) -> None:
    assert kinds({**HUB, **more}) == found


def test_another_model_or_commit_is_another_grant() -> None:
    trusted = {**HUB, "trust_remote_code": True}
    assert grants(trusted) == grants({**trusted, "description": "x"})
    for other in ({"parameters": {"model": "e/vil"}}, {"importer": {**HUB["importer"], "revision": "2"}}):
        assert grants({**trusted, **other}) - grants(trusted)


def test_values_that_an_import_sets() -> None:
    assert not set_values({"temperature": 1, "trust_remote_code": False})
    for said in (
        {"trust_remote_code": True},
        {"engine_args.trust_remote_code": 1},
        {"engine_args": {"hostfile": "x"}},
    ):
        assert len(set_values(said)) == 1


@pytest.mark.parametrize("kind", GrantReason)
def test_each_has_a_sentence(kind: GrantReason) -> None:
    drafter = {"model": "acme/Draft", "revision": "0" * 40}
    arguments = {"hostfile": "/h", "master_addr": "a/b", "speculative_config": drafter}
    data = {"trust_remote_code": True, "parameters": {"model": "/m"}, "engine_args": arguments}
    assert "/" in next(render(grant.reason) for grant in grants(data) if grant.kind is kind)


def test_a_name_alone_is_one_of_the_engines_arguments() -> None:
    assert {g.kind for g in set_values({"data_parallel_address": "0.0.0.0"})} == {GrantReason.ADDRESS}
    inner = {"kv_transfer_config": {"kv_connector_extra_config": {"proxy_ip": "10.0.0.1"}}}
    assert {g.kind for g in set_values(inner)} == {GrantReason.ADDRESS}
    assert {g.kind for g in set_values({"env.VLLM_NIXL_SIDE_CHANNEL_HOST": "a"})} == {GrantReason.ADDRESS}
    assert not set_values({"parameters": {"host": "a"}, "importer": {"ip": "a"}})
    nested = {"kv_transfer_config": {"kv_connector_extra_config": {"proxy_ip": "10.0.0.1"}}}
    assert {g.kind for g in set_values(nested)} == {GrantReason.ADDRESS}
    assert not set_values({"description": "x", "chat_template_kwargs.ip": "10.0.0.1"})
