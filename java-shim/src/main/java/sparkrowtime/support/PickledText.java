package sparkrowtime.support;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;

/** A text that Python has pickled, alone, by protocol 4 or 5. A pickle of anything else is refused. */
public final class PickledText {
  /** Opcodes of pickle: the protocol, with its number; a frame, with its length; texts, with lengths of two sizes. */
  private static final byte PROTOCOL = (byte) 0x80;

  private static final byte FRAME = (byte) 0x95;
  private static final byte SHORT = (byte) 0x8c;
  private static final byte LONG = 'X';

  private PickledText() {}

  public static String of(byte[] pickle) {
    ByteBuffer in = ByteBuffer.wrap(pickle).order(ByteOrder.LITTLE_ENDIAN);
    if (in.get() == PROTOCOL && in.get() >= 4) {
      byte code = in.get();
      if (code == FRAME) {
        in.getLong();
        code = in.get();
      }
      if (code == SHORT || code == LONG) {
        int length = code == SHORT ? Byte.toUnsignedInt(in.get()) : in.getInt();
        return new String(pickle, in.position(), length, StandardCharsets.UTF_8);
      }
    }
    throw new ShimMismatch("a text as the answer of a Python source", null);
  }
}
