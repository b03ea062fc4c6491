"""Quality figures of a served model, on request: does it call tools when it should, and rightly."""
