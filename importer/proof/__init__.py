"""The proof: the engine's own parsers read the text of the chat template."""

from importer.proof.result import ParserVerdict, Proof

__all__ = ["ParserVerdict", "Proof"]
