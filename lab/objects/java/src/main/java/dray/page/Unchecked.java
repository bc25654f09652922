package dray.page;

import java.nio.ByteBuffer;

/**
 * What Dray does not offer, for the study: pages that are read without a check, so that the check
 * can be measured alone; and the array of a page that was built.
 */
public final class Unchecked {
    private Unchecked() {}

    /** A page whose bytes are trusted. */
    public static VerifiedPage page(Layout layout, ByteBuffer bytes) {
        return new VerifiedPage(layout, bytes);
    }

    /** The array that begins with a page. */
    public static byte[] array(VerifiedPage page) {
        return page.buffer().array();
    }
}
