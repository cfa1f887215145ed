"""Connections to brokers, their event loop, which broker leads what, and what each error code means for Ferry."""
