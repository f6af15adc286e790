"""The wire contract between env-servers and the learner; one subpackage a major version."""
