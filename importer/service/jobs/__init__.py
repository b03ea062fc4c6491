"""Run jobs of the queue: claim them, run their steps, and go on with those of processes that died."""
