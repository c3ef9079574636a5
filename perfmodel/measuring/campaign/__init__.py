"""Many kernels measured on many devices, so that nothing that goes wrong costs more than itself."""

from perfmodel.measuring.campaign.campaign import Campaign, check_budget, protocol_called
from perfmodel.measuring.campaign.plan import Plan
from perfmodel.measuring.campaign.result import (
    FAILED,
    LOST,
    NOT_HERE,
    NOT_REACHED,
    STOPPED,
    UNMEASURED,
    CampaignResult,
    DeviceResult,
    Result,
)
from perfmodel.measuring.isolation.process import ProcessLimits

__all__ = [
    "FAILED",
    "LOST",
    "NOT_HERE",
    "NOT_REACHED",
    "STOPPED",
    "UNMEASURED",
    "Campaign",
    "CampaignResult",
    "DeviceResult",
    "Plan",
    "ProcessLimits",
    "Result",
    "check_budget",
    "protocol_called",
]
