"""Which records and fields of a Claude Code session are known (recorded with 1.0.128 to 2.1.332).

Whatever is not here is counted and listed for the reader; nothing is dropped for being unknown.
"""

from __future__ import annotations

from typing import Final

SILENT: Final = frozenset(
    {"queue-operation", "mode", "file-history-snapshot", "progress", "last-prompt", "pr-link"}
    | {"agent-name", "permission-mode", "tag", "atis-latch", "cost-state", "tools-used"}
    | {"api-request", "api-request-blob", "api-request-shape"}
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
    | {"isCompactSummary", "isVisibleInTranscriptOnly", "promptSource", "toolDenialKind"}
    | {"sentAtMs", "rowSource", "turnOrigin", "turnPosition", "sandboxed", "permissionDecision"}
    | {"summarizedTurnPromptUuids", "origin", "queueSkipAttachments", "ownNote", "turnCompanion"}
    | {"refusalRetry", "refusedMessageId"},
    "assistant": _CHAIN
    | {"message", "requestId", "isApiErrorMessage", "error", "errorDetails", "apiErrorStatus"}
    | {"attributionAgent", "apiBlockIndex", "requestRef", "requestedModel", "madeBy"}
    | {"promptCacheRequested", "perTurnEffort", "thinkingDurationMs", "thinkingDisplay"}
    | {"toolInputStreamMs", "apiError", "apiErrorType", "failedResponseHadNoToolCall"}
    | {"resendCannotCure", "requestSessionId", "effort"},
    "system": _CHAIN
    | {"subtype", "content", "level", "logicalParentUuid", "compactMetadata"}
    | {"microcompactMetadata", "error", "maxRetries", "retryAttempt", "retryInMs", "source"}
    | {"commandOutcome", "commandRun", "stopReason", "toolUseID", "preventedContinuation"}
    | {"failedHookErrorIndexes", "hasOutput", "hookAdditionalContext", "hookCount", "hookErrors"}
    | {"hookInfos"},
    "attachment": _CHAIN
    | {"attachment", "rendered", "renderedRole", "renderedBesideToolResult"}
    | {"renderedInHumanTurn"},
    "summary": frozenset({"type", "summary", "leafUuid"}),
}
"""The fields of the records that the model's context is made of."""
