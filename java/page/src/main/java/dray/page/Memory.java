package dray.page;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * Little-endian values in a buffer, at offsets from its start, whatever its byte order is. The
 * JVM checks that they are within the buffer.
 */
public final class Memory {
    private static final VarHandle SHORT = view(short[].class);
    private static final VarHandle CHAR = view(char[].class);
    private static final VarHandle INT = view(int[].class);
    private static final VarHandle LONG = view(long[].class);
    private static final VarHandle FLOAT = view(float[].class);
    private static final VarHandle DOUBLE = view(double[].class);

    private Memory() {}

    private static VarHandle view(Class<?> array) {
        return MethodHandles.byteBufferViewVarHandle(array, ByteOrder.LITTLE_ENDIAN);
    }

    public static byte getByte(ByteBuffer bytes, int at) {
        return bytes.get(at);
    }

    public static short getShort(ByteBuffer bytes, int at) {
        return (short) SHORT.get(bytes, at);
    }

    /** The u16 at an offset. */
    public static int getChar(ByteBuffer bytes, int at) {
        return (char) CHAR.get(bytes, at);
    }

    public static int getInt(ByteBuffer bytes, int at) {
        return (int) INT.get(bytes, at);
    }

    /** The u32 at an offset. */
    public static long getUnsignedInt(ByteBuffer bytes, int at) {
        return (int) INT.get(bytes, at) & 0xffff_ffffL;
    }

    public static long getLong(ByteBuffer bytes, int at) {
        return (long) LONG.get(bytes, at);
    }

    public static float getFloat(ByteBuffer bytes, int at) {
        return (float) FLOAT.get(bytes, at);
    }

    public static double getDouble(ByteBuffer bytes, int at) {
        return (double) DOUBLE.get(bytes, at);
    }

    static void putByte(ByteBuffer bytes, int at, int value) {
        bytes.put(at, (byte) value);
    }

    static void putShort(ByteBuffer bytes, int at, int value) {
        SHORT.set(bytes, at, (short) value);
    }

    static void putInt(ByteBuffer bytes, int at, int value) {
        INT.set(bytes, at, value);
    }

    static void putLong(ByteBuffer bytes, int at, long value) {
        LONG.set(bytes, at, value);
    }

    /** The bit of a bitmap that begins at an offset. */
    public static boolean getBit(ByteBuffer bytes, int at, int bit) {
        return (bytes.get(at + (bit >>> 3)) >> (bit & 7) & 1) != 0;
    }

    static void putBit(ByteBuffer bytes, int at, int bit, boolean value) {
        int place = at + (bit >>> 3);
        int mask = 1 << (bit & 7);
        bytes.put(place, (byte) (value ? bytes.get(place) | mask : bytes.get(place) & ~mask));
    }

    /** Whether all bytes from one offset to another are 0. */
    static boolean isZero(ByteBuffer bytes, int from, int end) {
        int at = from;
        long any = 0;
        for (; at <= end - 8; at += 8) {
            any |= getLong(bytes, at);
        }
        for (; at < end; at++) {
            any |= bytes.get(at);
        }
        return any == 0;
    }

    static void zero(ByteBuffer bytes, int from, int end) {
        int at = from;
        for (; at <= end - 8; at += 8) {
            putLong(bytes, at, 0);
        }
        for (; at < end; at++) {
            bytes.put(at, (byte) 0);
        }
    }

    /** x rounded up to a multiple of a power of two. */
    static int pad(int x, int multiple) {
        return (x + multiple - 1) & -multiple;
    }

    static long pad(long x, long multiple) {
        return (x + multiple - 1) & -multiple;
    }

    /** A part of a buffer, as a buffer of its own. */
    static ByteBuffer slice(ByteBuffer bytes, int from, int size) {
        return bytes.slice(from, size).order(ByteOrder.LITTLE_ENDIAN);
    }
}
