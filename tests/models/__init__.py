"""Small models of several wire formats, trained to pass the probes; ``python -m tests.models`` makes them."""
