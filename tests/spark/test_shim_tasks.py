"""A batch in which only the bound has moved reads nothing: no partition is planned, so no task is run for it."""

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming import StreamingQuery

from tests.sparksession import NATIVE_READ, running
from tests.streams import Pipe, opened, send

STATE_PARTITIONS = 2


def tasks(spark: SparkSession, query: StreamingQuery) -> int:
    """How many tasks the run has had so far."""
    spark.sparkContext._jsc.sc().listenerBus().waitUntilEmpty(240_000)  # by its events the tracker knows them
    tracker = spark.sparkContext.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(str(query.runId))]
    return sum(tracker.getStageInfo(stage).numTasks for job in jobs for stage in job.stageIds)


@pytest.mark.parametrize("native", ["true", "false"])
def test_a_bound_alone_runs_the_tasks_of_the_state_only(pipe: Pipe, tmp_path, native) -> None:
    orders = opened(pipe.create("orders", "k STRING"))
    pipe.spark.conf.set(NATIVE_READ, native)
    hourly = pipe.read("orders").groupBy(F.window("rowtime", "1 hour")).count()
    try:
        writer = hourly.writeStream.format("noop").option("checkpointLocation", str(tmp_path / "checkpoint"))
        send(orders, ("10:00", "a"), promise="10:10")
        with running(writer.start()) as query:
            query.processAllAvailable()
            before = tasks(pipe.spark, query)
            assert before == 1 + STATE_PARTITIONS
            send(orders, promise="10:20")
            query.processAllAvailable()
            assert tasks(pipe.spark, query) - before == STATE_PARTITIONS
    finally:
        pipe.spark.conf.unset(NATIVE_READ)
