"""Who may ask the service for what, and what a request may cost."""
