package sparkrowtime.support;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/** A pickle that calls a function of this library with bytes and a text when Python loads it. */
public final class PickledCall {
  /**
   * Opcodes of pickle: the protocol, 3; a name; bytes and text, each with its length; the call with the
   * pair of both.
   */
  private static final String PROTOCOL = "\u0080\u0003";

  private static final byte NAME = 'c';
  private static final byte BYTES = 'B';
  private static final byte TEXT = 'X';
  private static final byte[] END = bytes("\u0086R.");

  private PickledCall() {}

  public static byte[] of(String module, String function, byte[] first, byte[] text) {
    byte[] head = head(module, function);
    return ByteBuffer.allocate(head.length + 5 + first.length + 5 + text.length + END.length)
        .order(ByteOrder.LITTLE_ENDIAN)
        .put(head)
        .put(BYTES)
        .putInt(first.length)
        .put(first)
        .put(TEXT)
        .putInt(text.length)
        .put(text)
        .put(END)
        .array();
  }

  /** The text with which a pickle calls that function; null if it is another pickle. */
  public static String text(byte[] pickle, String module, String function) {
    byte[] head = head(module, function);
    if (!Arrays.equals(head, Arrays.copyOf(pickle, head.length))) {
      return null;
    }
    ByteBuffer rest = ByteBuffer.wrap(pickle).order(ByteOrder.LITTLE_ENDIAN).position(head.length + 1);
    rest.position(rest.position() + 4 + rest.getInt(rest.position()) + 1);
    byte[] text = new byte[rest.getInt()];
    rest.get(text);
    return new String(text, StandardCharsets.UTF_8);
  }

  private static byte[] head(String module, String function) {
    return bytes(PROTOCOL + (char) NAME + module + "\n" + function + "\n");
  }

  private static byte[] bytes(String opcodes) {
    return opcodes.getBytes(StandardCharsets.ISO_8859_1);
  }
}
