"""Memory of a model: its shape, weights and caches, and the fit on a device."""
