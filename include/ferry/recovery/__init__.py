"""Settling what a person must decide: start positions, losses."""
