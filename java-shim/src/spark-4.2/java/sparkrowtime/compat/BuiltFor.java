package sparkrowtime.compat;

/** The Spark that this jar is for; build.py copies both into the manifest. */
public final class BuiltFor {
  public static final String MINOR = "4.2";

  /** The versions that the tests ran on. */
  public static final String TRIED = "4.2.0";

  private BuiltFor() {}
}
