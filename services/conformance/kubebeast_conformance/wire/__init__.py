"""Messages as bytes: calls in both directions, and where in a message a field is."""
