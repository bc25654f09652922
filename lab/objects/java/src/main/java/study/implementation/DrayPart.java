package study.implementation;

import dray.page.PageBuilder;
import dray.page.Utf8;
import dray.page.VerifiedPage;
import java.io.IOException;
import study.Checksum;
import study.Item;
import study.PageSink;
import study.dray.part.Part;
import study.dray.part.PartBuilder;
import study.dray.part.PartEditor;
import study.dray.part.PartPage;
import study.model.Plain;

/** Parts in Dray's pages. */
final class DrayPart extends DrayPages {
    DrayPart() {
        super(PartPage.LAYOUT);
    }

    @Override
    Builder builder(int pageBytes) {
        PartBuilder pages = new PartBuilder(pageBytes);
        return new Builder() {
            @Override
            public PageBuilder<?> pages() {
                return pages;
            }

            @Override
            public void add(Plain plain) {
                write(pages.begin(), (study.model.Part) plain);
                pages.end();
            }
        };
    }

    @Override
    Item view(VerifiedPage page, int slot) {
        return new Found(page, slot, new PartPage(page).get(slot));
    }

    /** Edits a copy of the page, which is what Dray offers. */
    @Override
    public void mutatePage(byte[] bytes, int[] slots, PageSink sink) throws IOException {
        VerifiedPage page = trusted(bytes);
        PartEditor editor = new PartEditor(page);
        PartPage objects = new PartPage(page);
        Part part = new Part();
        for (int slot : slots) {
            double before = objects.get(slot, part).retailPrice();
            editor.object(slot).retailPrice(before + 1.0);
        }
        handOver(editor.page(), slots, sink);
    }

    private record Found(VerifiedPage page, int slot, Part part) implements View {
        @Override
        public int key() {
            return part.partKey();
        }

        @Override
        public long checksum() {
            return add(0, part);
        }

        @Override
        public Plain plain() {
            return copy(part);
        }
    }

    private static long add(long h, Part part) {
        h = Checksum.add(h, part.partKey());
        h = add(h, part.name());
        h = add(h, part.mfgr());
        h = add(h, part.brand());
        h = add(h, part.type());
        h = Checksum.add(h, part.size());
        h = add(h, part.container());
        h = Checksum.add(h, part.retailPrice());
        h = add(h, part.comment());
        return h;
    }

    private static long add(long h, Utf8 text) {
        return Checksum.add(h, text.buffer(), 0, text.length());
    }

    private static study.model.Part copy(Part part) {
        var plain = new study.model.Part();
        plain.partKey = part.partKey();
        plain.name = part.name().toString();
        plain.mfgr = part.mfgr().toString();
        plain.brand = part.brand().toString();
        plain.type = part.type().toString();
        plain.size = part.size();
        plain.container = part.container().toString();
        plain.retailPrice = part.retailPrice();
        plain.comment = part.comment().toString();
        return plain;
    }

    private static void write(Part.Writer to, study.model.Part part) {
        to.partKey(part.partKey);
        to.name(part.name);
        to.mfgr(part.mfgr);
        to.brand(part.brand);
        to.type(part.type);
        to.size(part.size);
        to.container(part.container);
        to.retailPrice(part.retailPrice);
        to.comment(part.comment);
    }
}
