package study.implementation;

import dray.page.PageBuilder;
import dray.page.VerifiedPage;
import java.util.List;
import study.Entries;
import study.Item;
import study.Merge;
import study.VectorView;
import study.dray.sparsevector.EntriesItem;
import study.dray.sparsevector.SparseVectorBuilder;
import study.dray.sparsevector.SparseVectorPage;
import study.model.Entry;
import study.model.Plain;
import study.model.SparseVector;

/** Sparse vectors in Dray's pages. A sum is built in its page. */
final class DrayVector extends DrayPages {
    DrayVector() {
        super(SparseVectorPage.LAYOUT);
    }

    @Override
    Builder builder(int pageBytes) {
        SparseVectorBuilder pages = new SparseVectorBuilder(pageBytes);
        return new Builder() {
            @Override
            public PageBuilder<?> pages() {
                return pages;
            }

            @Override
            public void add(Plain plain) {
                List<Entry> entries = ((SparseVector) plain).entries;
                EntriesItem.ListWriter to = pages.begin().entries(entries.size());
                for (Entry entry : entries) {
                    to.next().position(entry.position).value(entry.value);
                }
                pages.end();
            }
        };
    }

    @Override
    public Item sum(List<Entries> vectors) {
        SparseVectorBuilder pages = new SparseVectorBuilder(MESSAGE_PAGE_BYTES);
        EntriesItem.ListWriter to = pages.begin().entries(Merge.size(vectors));
        Merge.of(vectors, (position, value) -> to.next().position(position).value(value));
        pages.end();
        return view(pages.finish().get(0), 0);
    }

    @Override
    Item view(VerifiedPage page, int slot) {
        return new Found(page, slot);
    }

    private static final class Found extends VectorView implements View {
        private final VerifiedPage page;
        private final int slot;
        private final EntriesItem.List entries;
        private final EntriesItem entry = new EntriesItem();

        Found(VerifiedPage page, int slot) {
            this.page = page;
            this.slot = slot;
            entries = new SparseVectorPage(page).get(slot).entries();
        }

        @Override
        public VerifiedPage page() {
            return page;
        }

        @Override
        public int slot() {
            return slot;
        }

        @Override
        public int size() {
            return entries.size();
        }

        @Override
        public int position(int index) {
            return entries.get(index, entry).position();
        }

        @Override
        public double value(int index) {
            return entries.get(index, entry).value();
        }

        @Override
        public boolean same(Item other) {
            return View.super.same(other);
        }

        @Override
        public boolean viewsBytes() {
            return true;
        }

        @Override
        public long heapBytes() {
            return 96;
        }
    }
}
