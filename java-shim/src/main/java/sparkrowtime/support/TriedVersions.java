package sparkrowtime.support;

/** The Spark versions that the tests of this jar ran on; build.py copies the list into the manifest. */
final class TriedVersions {
  static final String LIST = "4.2.1, 4.3.0";

  private TriedVersions() {}
}
