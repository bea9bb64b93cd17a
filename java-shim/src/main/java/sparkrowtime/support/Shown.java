package sparkrowtime.support;

/** The text of a value in an error: cut, as it may be long. */
public final class Shown {
  private static final int CHARACTERS = 1000;

  private Shown() {}

  /** The text, or its beginning and how long it is. */
  public static String of(String text) {
    return text.length() <= CHARACTERS
        ? text
        : text.substring(0, CHARACTERS) + "... (" + text.length() + " characters)";
  }
}
