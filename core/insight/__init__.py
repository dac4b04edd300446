"""What can be said of a session from its record alone: diffs, lineage, reasons, search, reports."""

from __future__ import annotations
