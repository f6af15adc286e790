"""Settings of the episodes of a training: tasks, levels and opponents."""
