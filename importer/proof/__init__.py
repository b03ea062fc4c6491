"""The proof: what the template writes, given to the engine's own parsers."""

from importer.proof.result import Proof, Verdict

__all__ = ["Proof", "Verdict"]
