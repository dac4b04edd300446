"""Sessions of other programs: one file per format, all giving the same events."""
