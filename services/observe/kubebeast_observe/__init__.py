"""Commands that watch runs and fleets: top, fleet, plot and report. They need neither PyTorch nor a GPU."""
