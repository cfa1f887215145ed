"""Telling people: one document, and whoever the config names to hand it to."""
