"""Streams in a PostgreSQL database, which the processes of any machines share.

Only the module ``inline`` can be imported without psycopg, as Spark's tasks do.
"""
