"""The command with a sweep, and its words.  For tests, and for ``aiperf plugins validate``."""

from __future__ import annotations

from aiperf.testing import CommandContract

from aiperf_command_analyze import Analyze
from aiperf_command_analyze.swim_lane import SwimLane
from aiperf_command_analyze.turn_messages import TurnMessages


class AnalyzeContract(CommandContract):
    command = Analyze


class SwimLaneContract(CommandContract):
    command = SwimLane


class TurnMessagesContract(CommandContract):
    command = TurnMessages
