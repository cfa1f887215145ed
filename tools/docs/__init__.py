"""Writes the pages of docs that come from tables of the code."""
