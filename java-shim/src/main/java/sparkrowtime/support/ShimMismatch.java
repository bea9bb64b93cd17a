package sparkrowtime.support;

import java.util.function.Supplier;

/**
 * A Spark internal is not what this library was written for. The message starts with
 * {@code ShimMismatchError:}, names the Spark version and says what was expected; the Python side
 * raises its ShimMismatchError from it.
 *
 * <p>Law: where bounds cannot be applied the query fails; it never runs silently without them.
 */
public final class ShimMismatch extends IllegalStateException {
  private static final long serialVersionUID = 1L;

  public ShimMismatch(String expected, Throwable cause) {
    super(
        "ShimMismatchError: Spark "
            + org.apache.spark.package$.MODULE$.SPARK_VERSION()
            + " differs inside from the versions this jar was tried on ("
            + TriedVersions.LIST
            + "): expected "
            + expected
            + ". Use one of those versions, or read with option bounds=ignore.",
        cause);
  }

  /** Around each way in from Spark: a class, method or field that is gone is a mismatch too. */
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
      throw new ShimMismatch("what it does not find: " + e, e);
    }
  }
}
