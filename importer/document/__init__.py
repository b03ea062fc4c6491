"""The YAML a person reviews, and the receipt beside it."""
