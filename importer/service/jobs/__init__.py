"""Jobs of the queue: claim them, run their steps, and resume those of processes that died."""
