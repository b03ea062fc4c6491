"""``importer response-template REFERENCE``: the model's parser as data, for transformers and vLLM."""

from __future__ import annotations

import argparse

from importer.cli import options


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the model and the file."""
    parser.add_argument("reference", metavar="REFERENCE")
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="write the model's tokenizer_config.json with the template in it",
    )
    parser.add_argument("--revision", help="a branch, tag or commit")
    parser.add_argument(
        "--frontend",
        choices=("python", "rust"),
        help="the server of vLLM whose parsers prove it (default: python)",
    )
    options.of_import(parser, "engine_version", "offline")


def run(arguments: argparse.Namespace) -> None:
    """Print the change of the file, or write the whole file; raises ImporterError."""
    from importer.cli import response_template

    response_template.run(arguments)
