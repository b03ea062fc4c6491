"""The gallery service: REST, durable jobs, the web page."""
