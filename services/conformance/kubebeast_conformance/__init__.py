"""Whether a peer keeps the wire contract: the other side of env-servers and of learners, rule by rule."""
