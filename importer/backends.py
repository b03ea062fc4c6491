"""The engines a document may name; apart from all else, so that --help needs nothing more."""

NAMES = ("vllm", "mlx", "mlx-vlm", "vllm-mlx")
