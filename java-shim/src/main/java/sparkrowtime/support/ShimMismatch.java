package sparkrowtime.support;

import java.util.function.Supplier;
import sparkrowtime.compat.BuiltFor;

/**
 * A Spark internal is not what this library was written for. The message starts with
 * {@code ShimMismatchError:}, the name of the Python class for such errors, and gives the Spark version
 * and what was expected.
 *
 * <p>Law: a query to which bounds cannot be applied fails. It never runs silently without them.
 */
public final class ShimMismatch extends IllegalStateException {
  private static final long serialVersionUID = 1L;

  public ShimMismatch(String expected, Throwable cause) {
    super(
        "ShimMismatchError: Spark "
            + running()
            + " differs internally from the versions that this jar was tested with ("
            + BuiltFor.TRIED
            + "): expected "
            + expected
            + ". Use one of those versions, or read with option bounds=ignore.",
        cause);
  }

  private ShimMismatch(String message) {
    super(message);
  }

  /** Refuses a Spark of another minor version, which can lack what the jar was compiled with. */
  public static void refuseOtherSpark() {
    if (!running().startsWith(BuiltFor.MINOR + ".")) {
      throw new ShimMismatch(
          "ShimMismatchError: this jar of spark-rowtime is for Spark "
              + BuiltFor.MINOR
              + ", and this is Spark "
              + running()
              + ". Take the jar that `rowtime jar` prints where PySpark "
              + running()
              + " is installed.");
    }
  }

  private static String running() {
    return org.apache.spark.package$.MODULE$.SPARK_VERSION();
  }

  /** Wraps each entry from Spark. A class, method or field that is missing is a mismatch, too. */
  public static void guarded(Runnable body) {
    guarded(
        () -> {
          body.run();
          return null;
        });
  }

  /** The same, with a result. */
  public static <T> T guarded(Supplier<T> body) {
    try {
      return body.get();
    } catch (LinkageError e) {
      throw new ShimMismatch("a class, method or field that it does not have: " + e, e);
    }
  }
}
