"""Says how far a campaign is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from perfmodel.basics.progress import Progress

if TYPE_CHECKING:
    from perfmodel.measuring.campaign.work import DeviceWork


def show(bar: Progress, work: Sequence[DeviceWork]) -> None:
    """Shows how many kernels are done, how many of them failed, and whether disturbed ones are measured again."""
    failed = sum(each.failed for each in work)
    doing = "measuring disturbed ones again" if any(each.passes for each in work) else "measuring"
    bar.show(f"{doing} ({failed} failed)" if failed else doing, sum(each.done for each in work))
