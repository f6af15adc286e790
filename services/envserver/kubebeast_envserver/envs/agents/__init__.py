"""Environments of several agents, of PettingZoo: each agent is a row of its own."""
