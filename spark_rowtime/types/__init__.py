"""The columns and values of a stream: schemas, DDL, times, arguments, exact casts, checks."""
