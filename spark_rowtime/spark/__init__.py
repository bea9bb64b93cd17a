"""The Spark side: the only place that imports PySpark."""
