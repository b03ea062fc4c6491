"""Evidence from a snapshot: one reader a module, each fact with its rule, source and quote."""
