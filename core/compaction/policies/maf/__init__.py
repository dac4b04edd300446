"""The compaction strategies of the Microsoft Agent Framework, in its two designs.

Both work on chat messages of several contents (`messages`) and are generators that yield what they
want (`steps`). The .NET design (`dotnet_*`) keeps an index of groups and composes strategies of
triggers and targets; the Python design (`python_*`) marks messages in a list as excluded and takes
its thresholds as arguments. `bridge` carries a pass over to a context of items and back.
"""

from __future__ import annotations
