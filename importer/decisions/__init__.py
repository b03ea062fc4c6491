"""From evidence to decisions; pure."""
