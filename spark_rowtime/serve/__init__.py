"""``rowtime serve``: a page that shows streams live, their state as JSON, and metrics for Prometheus.

Needs the pip extra ``serve``. It only reads; it opens no other streams than those it was started with.
"""
