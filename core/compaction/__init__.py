"""Compaction: the vocabulary, the engine that acts, and the policies that decide."""
