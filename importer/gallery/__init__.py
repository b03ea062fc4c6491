"""The gallery: every version of every document, what was said of it, and what is published."""
