"""Store documents, jobs, keys and the audit log in a database, as plain rows and JSON."""
