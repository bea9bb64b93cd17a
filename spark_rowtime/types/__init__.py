"""A stream's columns and values: schemas, DDL, times, arguments, exact casts, checks."""
