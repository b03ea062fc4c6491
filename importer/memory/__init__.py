"""How much memory a model takes: its shape, its weights, its caches, and what is left for them."""
