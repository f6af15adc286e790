"""The contract: its rows and versions, checkers for the messages of each side, and generators of valid streams."""
