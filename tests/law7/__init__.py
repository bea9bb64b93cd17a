"""Bounds never change a result, only when it appears: the machine that tries it."""
