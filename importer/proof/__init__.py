"""The proof: the engine's own parsers read the text of the chat template."""

from importer.proof.parser_verdict import ParserVerdict
from importer.proof.result import Proof

__all__ = ["ParserVerdict", "Proof"]
