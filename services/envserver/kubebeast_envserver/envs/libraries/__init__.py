"""Adapters of environments of other libraries. Each module needs its library only once one of its ids is made."""
