"""Conformance suite of the wire contract: plays the other side to an env-server or a learner and checks each rule."""

import os

# gRPC reads it at import. At INFO it logs each connection that a peer ends with an error code.
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
