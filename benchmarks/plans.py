"""``python -m benchmarks plans FOLDER``: ten plans, from a laptop to two nodes, beside the recipe of the model."""
