"""When Python looks for cycles of dead objects: never while somebody waits for the screen.

A full look goes over every object there is. With a session of some thousand entries open that
takes several frames, and it would come just when a screen is made, since that is what makes many
objects. So nothing is looked for while a session is opened, and what is there then is set aside:
later looks go over what came since. One is taken when a screen has been made and painted, or left;
Python looks by itself only where very many objects come between.
"""

from __future__ import annotations

import gc

YOUNG = 25_000
"""New objects until Python looks by itself: more than come with one screen, and few enough to be
looked through within a frame. Its own 700 come many times in one screen."""
LOOK_AFTER = 0.1
"""Seconds from the change of a screen until what came of it is looked through."""


class Collector:
    """The collector of this process, for the program that has it to itself."""

    def hold(self) -> None:
        """Look for nothing until `settle`."""
        gc.disable()

    def settle(self) -> None:
        """Set aside what is there, and look again from now on."""
        gc.freeze()
        gc.set_threshold(YOUNG, 10, 10)
        gc.enable()

    def look(self, *, closed: bool) -> None:
        """Look over what came since the last look, now that nothing waits for it. With `closed` a
        screen has gone: over what came since one went before, which is where its objects are."""
        if gc.isenabled():
            gc.collect(1 if closed else 0)

    def let_go(self) -> None:
        """Something large was closed: it is looked for once, and what is left can be set aside
        again."""
        gc.unfreeze()
        gc.collect()
