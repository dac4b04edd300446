"""What the app tells at the edge of the screen."""

from __future__ import annotations

import time

from textual.app import App
from textual.notifications import Notification, SeverityLevel


class ToldOnce(App[None]):
    """A message that is on the screen already is not shown a second time below the first: a key
    that is held down would fill the screen with it. None is read as markup."""

    _told_until: dict[tuple[str, str], float] | None = None

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = False,
    ) -> None:
        """Show a message for `timeout` seconds, unless it still is there."""
        now = time.monotonic()
        seconds = self.NOTIFICATION_TIMEOUT if timeout is None else timeout
        told = {key: until for key, until in (self._told_until or {}).items() if until > now}
        shown = (title, message) in told
        told.setdefault((title, message), now + seconds)
        self._told_until = told
        if not shown:
            super().notify(message, title=title, severity=severity, timeout=timeout, markup=False)

    def _unnotify(self, notification: Notification, refresh: bool = True) -> None:
        """A message that was clicked away is not on the screen: it may be shown again at once."""
        if self._told_until is not None:
            self._told_until.pop((notification.title, notification.message), None)
        super()._unnotify(notification, refresh)
