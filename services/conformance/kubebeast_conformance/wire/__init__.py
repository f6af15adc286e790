"""Messages as bytes: calls in both directions, HTTP/2 frames, and the location of fields in a message."""
