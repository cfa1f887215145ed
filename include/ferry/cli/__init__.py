"""The `ferry` command: arguments, questions, tables, one exit code for each outcome.

Knows every floor below. Decides nothing about data.
Begin with `main.py`, then `copies.py`.
"""
