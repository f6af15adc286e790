"""The best checkpoints of a run, by the scores of its training or of an evaluator."""
