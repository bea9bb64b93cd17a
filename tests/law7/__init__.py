"""Tests of the law that bounds never change a result, but only when it appears."""
