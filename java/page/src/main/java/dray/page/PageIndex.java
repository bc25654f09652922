package dray.page;

/** The index of a file's pages ({@code spec/page-file.md} section 4). */
final class PageIndex {
    private final Source.Region entries;
    private final int pages;
    private final long objects;

    PageIndex(Source.Region entries, int pages, long objects) {
        this.entries = entries;
        this.pages = pages;
        this.objects = objects;
    }

    /** The ordinal of a page's first object; the number of objects behind the last page. */
    long first(int page) {
        return page == pages ? objects : entries.getLong((long) page * Footer.ENTRY_BYTES);
    }

    /** Where a page ends, in bytes from the first page on. */
    long end(int page) {
        return page < 0 ? 0 : (word(page) & 0xffff_ffffL) * FileHeader.UNIT_BYTES;
    }

    int checksum(int page) {
        return (int) (word(page) >>> 32);
    }

    private long word(int page) {
        return entries.getLong((long) page * Footer.ENTRY_BYTES + 8);
    }

    /** Checks the rules of section 4. */
    void check(long pagesBytes, int pageBytes) {
        long first = 0;
        long end = 0;
        for (int page = 0; page < pages; page++) {
            long next = first(page + 1);
            if (first(page) != first || next <= first) {
                throw refused("page " + page + " has the objects " + first(page) + " to " + next);
            }
            long size = end(page) - end;
            if (size <= 0 || size % pageBytes != 0
                    || size != pageBytes && size >= Record.BYTES_END) {
                throw refused("page " + page + " has " + size + " bytes");
            }
            first = next;
            end = end(page);
        }
        if (end != pagesBytes || first != objects) {
            throw refused("it ends with object " + first + " and byte " + end + ", the file has "
                    + objects + " objects and " + pagesBytes + " bytes of pages");
        }
    }

    private static PageException refused(String what) {
        return new PageException(Refusal.INDEX, "the page index: " + what);
    }

    /**
     * The page with an object, which must be there. Pages hold about equally many objects, so the
     * first guess is close. Doubling steps find a range around it, which is then halved.
     */
    int pageOf(long ordinal) {
        int guess = (int) Math.min((double) ordinal / objects * pages, pages - 1);
        int from = guess;
        int to = guess + 1;
        int step = 1;
        while (from > 0 && first(from) > ordinal) {
            to = from;
            from = Math.max(from - step, 0);
            step = Math.min(step * 2, 1 << 28);
        }
        while (to < pages && first(to) <= ordinal) {
            from = to;
            to = (int) Math.min((long) to + step, pages);
            step = Math.min(step * 2, 1 << 28);
        }
        while (to - from > 1) {
            int middle = from + (to - from) / 2;
            if (first(middle) <= ordinal) {
                from = middle;
            } else {
                to = middle;
            }
        }
        return from;
    }
}
