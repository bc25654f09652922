package dray.page;

import java.math.BigDecimal;
import java.math.BigInteger;
import java.math.RoundingMode;
import java.nio.ByteBuffer;

/** Numbers that Java has no primitive type for. */
public final class Numbers {
    private Numbers() {}

    /** The signed integer of some bytes at an offset. */
    public static BigInteger getInteger(ByteBuffer bytes, int at, int width) {
        var big = new byte[width];
        for (int i = 0; i < width; i++) {
            big[width - 1 - i] = bytes.get(at + i);
        }
        return new BigInteger(big);
    }

    static void putInteger(ByteBuffer bytes, int at, int width, BigInteger value) {
        if (value.bitLength() >= 8 * width) {
            throw new ArithmeticException(value + " does not fit " + width + " bytes");
        }
        for (int i = 0; i < width; i++) {
            bytes.put(at + i, value.shiftRight(8 * i).byteValue());
        }
    }

    /** The integer of a decimal with a scale, which must hold it exactly. */
    public static BigInteger unscaled(BigDecimal value, int scale) {
        return value.setScale(scale, RoundingMode.UNNECESSARY).unscaledValue();
    }

    /** The value of a uint64. */
    public static BigInteger unsigned(long bits) {
        BigInteger low = BigInteger.valueOf(bits & Long.MAX_VALUE);
        return bits < 0 ? low.setBit(63) : low;
    }

    /** The value of a float16, which a float has, too. */
    public static float halfToFloat(short half) {
        int sign = (half & 0x8000) << 16;
        int exponent = half >>> 10 & 0x1f;
        int fraction = half & 0x3ff;
        if (exponent == 0x1f) {
            return Float.intBitsToFloat(sign | 0x7f80_0000 | fraction << 13);
        }
        if (exponent == 0) {
            float small = fraction * 0x1p-24f;
            return sign == 0 ? small : -small;
        }
        return Float.intBitsToFloat(sign | exponent + 127 - 15 << 23 | fraction << 13);
    }
}
