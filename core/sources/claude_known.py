"""Which records and fields of a Claude Code session are known (recorded with 1.0.128 to 2.1.197).

Whatever is not here is counted and listed for the reader; nothing is dropped for being unknown.
"""

from __future__ import annotations

from typing import Final

SILENT: Final = frozenset(
    {"queue-operation", "mode", "file-history-snapshot", "progress", "last-prompt", "pr-link"}
    | {"agent-name", "permission-mode", "tag"}
)
"""Records that the model never sees and that say nothing beyond the others."""

SILENT_SYSTEM: Final = frozenset({"turn_duration", "stop_hook_summary", "informational"})
"""Subtypes of system records of that kind."""

_CHAIN: Final = frozenset(
    {"uuid", "parentUuid", "timestamp", "sessionId", "cwd", "version", "gitBranch", "isSidechain"}
    | {"userType", "agentId", "slug", "entrypoint", "isMeta", "type"}
)

FIELDS: Final = {
    "user": _CHAIN
    | {"message", "toolUseResult", "sourceToolAssistantUUID", "promptId", "permissionMode"}
    | {"isCompactSummary", "isVisibleInTranscriptOnly", "promptSource"},
    "assistant": _CHAIN
    | {"message", "requestId", "isApiErrorMessage", "error", "errorDetails", "apiErrorStatus"}
    | {"attributionAgent"},
    "system": _CHAIN
    | {"subtype", "content", "level", "logicalParentUuid", "compactMetadata"}
    | {"microcompactMetadata", "error"},
    "attachment": _CHAIN | {"attachment"},
    "summary": frozenset({"type", "summary", "leafUuid"}),
}
"""The fields of the records that the model's context is made of."""
