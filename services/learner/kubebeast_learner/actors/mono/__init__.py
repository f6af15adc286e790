"""Training on one machine without a network and without native code: actor processes, shared memory, the learner."""
