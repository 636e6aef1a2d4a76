"""Recorded sessions of agents: their requests, blocks and subagents, and the options of their replay."""
