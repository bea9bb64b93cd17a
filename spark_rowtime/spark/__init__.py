"""The Spark data source, sink and session settings. Besides the operators, only this package imports PySpark."""
