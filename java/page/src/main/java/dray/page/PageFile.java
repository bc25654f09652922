package dray.page;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicReferenceArray;

/**
 * A page file, read where it lies ({@code spec/page-file.md}). Opening checks all but the pages and
 * the key index; these are checked when they are first used. Threads may share a file.
 *
 * <p>The file is mapped until its pages are garbage. It must not change meanwhile: a writer makes a
 * new file and renames it.
 */
public final class PageFile {
    private final FileHeader header;
    private final Footer footer;
    private final Layout layout;
    private final PageIndex index;
    private final Key key;
    private final Windows windows;
    private final Source.Region keyEntries;
    private final AtomicReferenceArray<VerifiedPage> pages;
    private volatile KeyIndex keyIndex;

    private PageFile(Source file) {
        header = FileHeader.decode(file);
        footer = Footer.decode(file, header.pagesAt());
        Source.Region entries =
                file.region(footer.indexAt(), Footer.ENTRY_BYTES * footer.pages());
        Source.Region paths = file.region(footer.keyPathsAt(), footer.keyPathsBytes());
        checkDigest(entries, paths);
        layout = Layout.of(header.schema());
        if (footer.pages() >= Integer.MAX_VALUE) {
            throw new PageException(Refusal.LIMIT, footer.pages() + " pages, the most that this "
                    + "reader takes are " + (Integer.MAX_VALUE - 1));
        }
        index = new PageIndex(entries, (int) footer.pages(), footer.objects());
        index.check(footer.indexAt() - header.pagesAt(), header.pageBytes());
        key = footer.hasKeys() ? Key.decode(bytes(paths), layout) : null;
        keyEntries = file.region(footer.keysAt(), Footer.ENTRY_BYTES * footer.keys());
        windows = Windows.of(file, header.pagesAt(), index, pageCount());
        pages = new AtomicReferenceArray<>(pageCount());
    }

    private void checkDigest(Source.Region entries, Source.Region paths) {
        MessageDigest digest = Schema.sha256();
        digest.update(header.bytes().duplicate());
        entries.each(digest::update);
        paths.each(digest::update);
        digest.update(footer.digested().duplicate());
        if (!Arrays.equals(digest.digest(), footer.digest())) {
            throw new PageException(Refusal.DIGEST, "it was damaged");
        }
    }

    private static byte[] bytes(Source.Region region) {
        // A path has at most 32 names, each of which is one of the schema's, or it is refused.
        if (region.bytes() > Schema.BYTES_MAX) {
            throw new PageException(Refusal.KEYS, region.bytes() + " bytes of key paths");
        }
        ByteBuffer bytes = ByteBuffer.allocate((int) region.bytes());
        region.each(bytes::put);
        return bytes.array();
    }

    /**
     * Opens a file.
     *
     * @throws PageException when it can't be read or breaks a rule outside its pages
     */
    public static PageFile open(Path path) {
        return Source.read(path, PageFile::read);
    }

    /** Reads a file from memory: the bytes between position and limit, which are not copied. */
    public static PageFile of(ByteBuffer file) {
        return read(Source.of(file));
    }

    static PageFile read(Source file) {
        try {
            return new PageFile(file);
        } catch (PageException refused) {
            if (refused.refusal() != Refusal.CUT) {
                throw refused;
            }
            throw new PageException(Refusal.CUT, refused.getMessage()
                    + "; Salvage may read the pages that are whole");
        }
    }

    /** The number of objects. */
    public long size() {
        return footer.objects();
    }

    public int pageCount() {
        return (int) footer.pages();
    }

    public Layout layout() {
        return layout;
    }

    public Schema schema() {
        return header.schema();
    }

    /** The standard size of its pages. */
    public int pageBytes() {
        return header.pageBytes();
    }

    /** The paths of the key's fields; empty without a key index. */
    public List<List<String>> key() {
        return key == null ? List.of() : key.paths;
    }

    /** The ordinal of a page's first object. */
    public long firstOf(int page) {
        checkPage(page);
        return index.first(page);
    }

    private void checkPage(int page) {
        if (page < 0 || page >= pageCount()) {
            throw PageException.usage("there is no page " + page + ", the file has "
                    + pageCount());
        }
    }

    /**
     * A page. The first call checks it.
     *
     * @throws PageException when it is damaged, or not the one that the index describes
     */
    public VerifiedPage page(int page) {
        checkPage(page);
        VerifiedPage known = pages.get(page);
        if (known != null) {
            return known;
        }
        VerifiedPage verified = verify(page);
        return pages.compareAndSet(page, null, verified) ? verified : pages.get(page);
    }

    private VerifiedPage verify(int page) {
        long objects = index.first(page + 1) - index.first(page);
        String about = "page " + page + ", objects " + index.first(page) + " to "
                + (index.first(page + 1) - 1);
        VerifiedPage verified;
        try {
            verified = VerifiedPage.verify(layout, windows.page(page));
        } catch (PageException refused) {
            throw refused.about(about);
        }
        PageHeader found = verified.header();
        // The window has the size that the index says, and the page the size of the window.
        if (found.sequence() != page || found.objects() != objects || !found.hasChecksum()
                || found.checksum() != index.checksum(page)) {
            throw new PageException(Refusal.PAGE, about + ": it is not the page that the index "
                    + "describes: " + found);
        }
        if (!found.large() && found.pageBytes() != header.pageBytes()) {
            throw new PageException(Refusal.PAGE, about + ": it has " + found.pageBytes()
                    + " bytes and is not large, the file's pages have " + header.pageBytes());
        }
        return verified;
    }

    /** The number of the page with an object. */
    public int pageOf(long ordinal) {
        if (ordinal < 0 || ordinal >= size()) {
            throw PageException.usage("there is no object " + ordinal + ", the file has " + size());
        }
        return index.pageOf(ordinal);
    }

    /**
     * The ordinals of the objects with this key, in ascending order. A value is a Boolean, an
     * integer (also of a decimal without its scale, a date or a time), a Float or Double, a String,
     * or a {@code byte[]} of the stored bytes.
     *
     * @throws PageException when the file has no key index or a damaged one, a value is not of the
     *     key's type, or a page is damaged
     */
    public long[] find(Object... values) {
        if (key == null) {
            throw PageException.usage("the file has no key index; write it with a key");
        }
        List<byte[]> stored = key.stored(values);
        if (stored == null) {
            return new long[0];
        }
        return Arrays.stream(keyIndex().find(key.hash(stored))).filter(ordinal -> {
            int page = index.pageOf(ordinal);
            VerifiedPage verified = page(page);
            int object = verified.objectAt((int) (ordinal - index.first(page)));
            return key.isOf(stored, verified.bytes(), object);
        }).toArray();
    }

    /** The key index. The first call checks it. */
    KeyIndex keyIndex() {
        KeyIndex known = keyIndex;
        if (known == null) {
            known = new KeyIndex(keyEntries, footer.keysChecksum(), size());
            keyIndex = known;
        }
        return known;
    }

    /**
     * Checks all pages, the key index, and that it finds each object.
     *
     * @throws PageException about the first that is damaged
     */
    public void check() {
        KeyIndex keys = key == null ? null : keyIndex();
        long keyed = 0;
        for (int page = 0; page < pageCount(); page++) {
            VerifiedPage verified = page(page);
            for (int slot = 0; keys != null && slot < verified.size(); slot++) {
                int object = verified.objectAt(slot);
                if (!key.isPresent(verified.bytes(), object)) {
                    continue;
                }
                keyed++;
                long ordinal = index.first(page) + slot;
                if (!keys.has(key.hash(verified.bytes(), object), ordinal)) {
                    throw new PageException(Refusal.KEYS, "the key index lacks object " + ordinal);
                }
            }
        }
        if (keys != null && keyed != keys.count()) {
            throw new PageException(Refusal.KEYS, "the key index has " + keys.count()
                    + " entries for " + keyed + " objects");
        }
    }
}
