"""A broker: shares one fleet of env-servers among the learners of many runs."""
