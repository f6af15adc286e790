"""The machine that a run stands on."""
