"""The writing side of a stream: a sink takes rows and bounds and commits them as trains."""
