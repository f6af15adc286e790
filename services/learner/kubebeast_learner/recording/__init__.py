"""Recordings of a training: the batches of its updates in files, to train on again and to export."""
