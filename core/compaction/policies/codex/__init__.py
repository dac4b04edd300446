"""The compaction of OpenAI's Codex CLI, as recorded from 0.171.0: three policies and their rules.

`local`, `remote` and `token_budget` are the policies. The files beside them are the pure rules that
these share with the reader of Codex's own session files: what an item weighs (`estimate`), how
text is cut (`truncation`), what a new history is made of (`history`), and when one is due (`due`).
"""

from __future__ import annotations
