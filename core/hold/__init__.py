"""Holding another program before its compaction: its hook waits for a console of ours."""
