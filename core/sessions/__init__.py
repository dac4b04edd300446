"""Our own sessions: the journal, and taking one up again."""
