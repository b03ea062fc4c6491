"""Jobs: durable workflows that go on where they were, whatever process dies."""
