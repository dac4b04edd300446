"""The debugger of a compaction: stop before it, look, change it, go on; and take one back."""
