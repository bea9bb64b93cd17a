package sparkrowtime.query;

import java.time.Instant;
import java.time.ZoneId;
import java.time.ZoneOffset;
import java.time.temporal.ChronoUnit;
import java.time.zone.ZoneOffsetTransition;
import java.time.zone.ZoneRules;
import java.util.IntSummaryStatistics;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/** How much the offset of a time zone changes: the error of treating a calendar day as 24 hours. */
final class ZoneOffsets {
  private static final long SECOND_MICROS = 1_000_000L;

  private ZoneOffsets() {}

  /**
   * The largest difference, in microseconds, between two offsets of the zone that apply at or after a time.
   * It never grows when that time grows, so a value computed from a floor never falls because of it.
   */
  static long largestChange(ZoneId zone, long fromMicros) {
    Instant from = Instant.EPOCH.plus(fromMicros, ChronoUnit.MICROS);
    IntSummaryStatistics seconds = offsets(zone.getRules(), from).summaryStatistics();
    return (seconds.getMax() - seconds.getMin()) * SECOND_MICROS;
  }

  private static IntStream offsets(ZoneRules rules, Instant from) {
    Stream<ZoneOffset> changes =
        rules.getTransitions().stream().filter(t -> t.getInstant().isAfter(from)).flatMap(ZoneOffsets::both);
    Stream<ZoneOffset> yearly =
        rules.getTransitionRules().stream().flatMap(r -> Stream.of(r.getOffsetBefore(), r.getOffsetAfter()));
    return Stream.of(Stream.of(rules.getOffset(from)), changes, yearly)
        .flatMap(all -> all)
        .mapToInt(ZoneOffset::getTotalSeconds);
  }

  private static Stream<ZoneOffset> both(ZoneOffsetTransition change) {
    return Stream.of(change.getOffsetBefore(), change.getOffsetAfter());
  }
}
