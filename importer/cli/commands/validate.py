"""``importer validate NAME|FILE``: run a document and probe it."""

from __future__ import annotations

import argparse

from importer import config
from importer.cli import options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the document, its engine, and a part of a validation."""
    parser.add_argument("name", metavar="NAME|FILE", nargs="?")
    options.folder(parser)
    parser.add_argument(
        "--engine",
        choices=options.Names("engines", config.NAMES),
        help="an engine other than the document's",
    )
    parser.add_argument("--port", type=options.port, help="the engine's port (default: a free one)")
    parser.add_argument("--fetch", action="store_true", help="fetch the weights if they are not on this disk")
    parser.add_argument(
        "--time-limit", type=options.count, metavar="SECONDS", help="seconds for all probes (default: 600)"
    )
    options.json(parser, "the report as one line of JSON")
    parser.add_argument(
        "--report",
        metavar="FILE",
        action="append",
        default=[],
        help="also write a report: .html, .xml (JUnit), .json or .txt; repeatable",
    )
    parser.add_argument(
        "--score",
        metavar="N",
        nargs="?",
        const=1,
        default=0,
        type=options.answers,
        help="also measure how well the model calls tools: N answers to each of 40 questions (default 1)",
    )
    parser.add_argument(
        "--require",
        metavar="ABILITY=SHARE",
        action="append",
        default=[],
        help="the share of answers that must show an ability of the model, such as tools=0.9; repeatable",
    )
    _elsewhere(parser.add_argument_group("on a cluster or another machine"))
    _part(
        parser.add_argument_group(
            "partial runs", "A partial run is not recorded as the document's validation."
        )
    )


def _elsewhere(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--on",
        metavar="TARGET",
        help="ray://HOST:PORT, k8s:CONTEXT/NAMESPACE, ssh:HOST, slurm:PARTITION",
    )
    group.add_argument(
        "--on-timeout",
        type=options.count,
        metavar="SECONDS",
        help="how long the run may wait there to start (default: 3600)",
    )
    group.add_argument(
        "--on-cancel", action="store_true", help="cancel the run that this command would follow"
    )


def _part(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--probe",
        metavar="NAME",
        nargs="+",
        action="extend",
        default=[],
        help="these probes only; --list-probes shows all",
    )
    group.add_argument("--list-probes", action="store_true", help="the probes, what they need, their lessons")
    group.add_argument("--prompt", metavar="TEXT|FILE", help="a question of your own, shown with its answer")
    group.add_argument(
        "--tool",
        metavar="FILE",
        action="append",
        default=[],
        help="a tool as OpenAI's JSON, required in the answer to --prompt; repeatable",
    )
    group.add_argument(
        "--against", metavar="URL", help="a server that runs already, such as http://host:8000"
    )
    group.add_argument(
        "--api-key-env", metavar="VARIABLE", help="the environment variable with the server's API key"
    )
    group.add_argument(
        "--header",
        metavar="'NAME: VALUE'",
        action="append",
        default=[],
        help="a header of each request to the server; never printed or stored; repeatable",
    )
    group.add_argument(
        "--header-env",
        metavar="NAME=VARIABLE",
        action="append",
        default=[],
        help="the same, its value from an environment variable; repeatable",
    )
    group.add_argument(
        "--model", metavar="ID", help="the model's name on that server (default: found in its list)"
    )


def run(arguments: argparse.Namespace) -> None:
    """Validate the document; raises ValidationError where a probe did not pass, else AbilityError."""
    from importer.cli import validating

    validating.validate(arguments)
