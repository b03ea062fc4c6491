"""The proof: what the template writes, given to the engine's own parsers."""

from importer.proof.result import ParserVerdict, Proof

__all__ = ["ParserVerdict", "Proof"]
