"""Gateways to models: one protocol inside, several wire protocols outside."""
