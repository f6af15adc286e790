"""Rows of the environments of a stream, their spaces, and the status of the stream."""
