"""The log messages of the extension, as text."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from pyspark.sql import SparkSession


@contextmanager
def logged(spark: SparkSession) -> Iterator[Callable[[], str]]:
    """Collects what the extension logs in the block, warnings included. The result returns the text so far."""
    jvm: Any = spark._jvm
    log4j = jvm.org.apache.logging.log4j
    logger, text = log4j.LogManager.getLogger("sparkrowtime"), jvm.java.io.StringWriter()
    layout = log4j.core.layout.PatternLayout.createDefaultLayout()
    appender = log4j.core.appender.WriterAppender.createAppender(layout, None, text, "collected", False, True)
    appender.start()
    logger.addAppender(appender)
    log4j.core.config.Configurator.setLevel("sparkrowtime", log4j.Level.WARN)
    try:
        yield text.toString
    finally:
        logger.removeAppender(appender)
        log4j.core.config.Configurator.setLevel("sparkrowtime", log4j.Level.ERROR)
