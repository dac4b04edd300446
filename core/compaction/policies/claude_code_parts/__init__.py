"""The rules of the Claude Code policy, one idea a file. They decide; `claude_code` says it."""
