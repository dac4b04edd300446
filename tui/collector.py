"""When Python looks for cycles of dead objects: never while somebody waits for the screen.

A full look goes over every object there is. With a session of some thousand entries open that
takes several frames, and it would come just when a screen is made, since that is what makes many
objects. So nothing is looked for while a session is opened, and what is there then is set aside:
later looks go over what came since.
"""

from __future__ import annotations

import gc

YOUNG = 5_000
"""New objects until the first, quick look; Python's own 700 come many times in one screen."""


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

    def let_go(self) -> None:
        """Something large was closed: it is looked for once, and what is left can be set aside
        again."""
        gc.unfreeze()
        gc.collect()
