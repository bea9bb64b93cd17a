package sparkrowtime;

import org.apache.spark.sql.SparkSessionExtensions;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;
import sparkrowtime.analysis.AsOfJoins;
import sparkrowtime.analysis.QueryStart;
import sparkrowtime.analysis.RefuseDelaylessDedup;
import sparkrowtime.analysis.RefuseMarks;
import sparkrowtime.analysis.RowtimeRelations;
import sparkrowtime.analysis.TableReads;
import sparkrowtime.query.JoinEviction;
import sparkrowtime.query.LateFilter;
import sparkrowtime.query.RefuseUnboundedCommits;
import sparkrowtime.query.StateTimeouts;
import sparkrowtime.sink.SinkWriters;
import sparkrowtime.sink.TableCommits;
import sparkrowtime.source.Sources;
import sparkrowtime.support.Scala;
import sparkrowtime.support.ShimMismatch;

/**
 * The entry point. Spark creates one instance for each session whose {@code spark.sql.extensions}
 * names this class, and calls {@link #apply} once, in the thread that builds the session.
 *
 * <p>Users write the name of this class into their settings, so it stays in this package.
 */
public final class RowtimeExtensions extends AbstractFunction1<SparkSessionExtensions, BoxedUnit> {
  @Override
  public BoxedUnit apply(SparkSessionExtensions extensions) {
    ShimMismatch.refuseOtherSpark();
    extensions.injectResolutionRule(Scala.function(session -> new RowtimeRelations(session, new Sources())));
    extensions.injectPostHocResolutionRule(Scala.function(AsOfJoins::new));
    extensions.injectPostHocResolutionRule(Scala.function(session -> new RefuseMarks()));
    extensions.injectHintResolutionRule(Scala.function(session -> new QueryStart()));
    extensions.injectCheckRule(Scala.function(session -> new RefuseDelaylessDedup()));
    extensions.injectCheckRule(Scala.function(session -> new RefuseUnboundedCommits()));
    extensions.injectFunction(TableReads.function());
    extensions.injectColumnar(Scala.function(session -> new JoinEviction()));
    extensions.injectColumnar(Scala.function(session -> new LateFilter()));
    extensions.injectColumnar(Scala.function(session -> new StateTimeouts()));
    extensions.injectColumnar(Scala.function(session -> new SinkWriters()));
    extensions.injectColumnar(Scala.function(session -> new TableCommits()));
    return BoxedUnit.UNIT;
  }
}
