"""Streams in a PostgreSQL database, which the processes of any machines share.

What Spark's tasks read and write with, ``inline`` and ``objects``, can be imported without psycopg.
"""
