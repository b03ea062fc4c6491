"""LocalAI's own contract: its requests, its answers and its envelopes, over the same gallery and jobs."""
