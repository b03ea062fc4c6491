"""From a Hugging Face model id to a serving config that was proved on a real engine."""

__version__ = "0.1.0"
