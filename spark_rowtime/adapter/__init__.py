"""Adapters: classes that own a feed, and the processes that host and restart them."""
