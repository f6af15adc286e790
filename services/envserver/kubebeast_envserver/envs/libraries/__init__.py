"""Environments of other libraries, adapted. Each module needs its library only once one of its ids is made."""
