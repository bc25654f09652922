package study.implementation;

import dray.page.PageBuilder;
import dray.page.Utf8;
import dray.page.VerifiedPage;
import java.io.IOException;
import study.Checksum;
import study.Item;
import study.PageSink;
import study.SortKey;
import study.dray.lineitem.LineItem;
import study.dray.lineitem.LineItemBuilder;
import study.dray.lineitem.LineItemEditor;
import study.dray.lineitem.LineItemPage;
import study.dray.lineitem.Part;
import study.dray.lineitem.Supplier;
import study.model.Plain;

/** Line items in Dray's pages. */
final class DrayLineItem extends DrayPages {
    DrayLineItem() {
        super(LineItemPage.LAYOUT);
    }

    @Override
    Builder builder(int pageBytes) {
        LineItemBuilder pages = new LineItemBuilder(pageBytes);
        return new Builder() {
            @Override
            public PageBuilder<?> pages() {
                return pages;
            }

            @Override
            public void add(Plain plain) {
                write(pages.begin(), (study.model.LineItem) plain);
                pages.end();
            }
        };
    }

    @Override
    Item view(VerifiedPage page, int slot) {
        return new Found(page, slot, new LineItemPage(page).get(slot));
    }

    /** Edits a copy of the page, which is what Dray offers. */
    @Override
    public void mutatePage(byte[] bytes, int[] slots, PageSink sink) throws IOException {
        VerifiedPage page = trusted(bytes);
        LineItemEditor editor = new LineItemEditor(page);
        LineItemPage objects = new LineItemPage(page);
        LineItem item = new LineItem();
        for (int slot : slots) {
            double before = objects.get(slot, item).extendedPrice();
            editor.object(slot).extendedPrice(before + 1.0);
        }
        handOver(editor.page(), slots, sink);
    }

    private record Found(VerifiedPage page, int slot, LineItem item) implements View {
        @Override
        public int key() {
            return item.orderKey();
        }

        @Override
        public long sortKey() {
            return SortKey.of(item.orderKey(), item.lineNumber());
        }

        @Override
        public long checksum() {
            return add(0, item);
        }

        @Override
        public Plain plain() {
            return copy(item);
        }
    }

    private static long add(long h, LineItem item) {
        h = Checksum.add(h, item.orderKey());
        h = Checksum.add(h, item.lineNumber());
        h = Checksum.add(h, item.quantity());
        h = Checksum.add(h, item.extendedPrice());
        h = Checksum.add(h, item.discount());
        h = Checksum.add(h, item.tax());
        h = add(h, item.returnFlag());
        h = add(h, item.lineStatus());
        h = Checksum.add(h, item.shipDate());
        h = Checksum.add(h, item.commitDate());
        h = Checksum.add(h, item.receiptDate());
        h = add(h, item.shipInstruct());
        h = add(h, item.shipMode());
        h = add(h, item.comment());
        h = add(h, item.supplier());
        h = add(h, item.part());
        return h;
    }

    private static long add(long h, Supplier supplier) {
        h = Checksum.add(h, supplier.supplierKey());
        h = add(h, supplier.name());
        h = add(h, supplier.address());
        h = Checksum.add(h, supplier.nationKey());
        h = add(h, supplier.phone());
        h = Checksum.add(h, supplier.acctbal());
        h = add(h, supplier.comment());
        return h;
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

    private static study.model.LineItem copy(LineItem item) {
        var plain = new study.model.LineItem();
        plain.orderKey = item.orderKey();
        plain.lineNumber = item.lineNumber();
        plain.quantity = item.quantity();
        plain.extendedPrice = item.extendedPrice();
        plain.discount = item.discount();
        plain.tax = item.tax();
        plain.returnFlag = item.returnFlag().toString();
        plain.lineStatus = item.lineStatus().toString();
        plain.shipDate = item.shipDate();
        plain.commitDate = item.commitDate();
        plain.receiptDate = item.receiptDate();
        plain.shipInstruct = item.shipInstruct().toString();
        plain.shipMode = item.shipMode().toString();
        plain.comment = item.comment().toString();
        plain.supplier = copy(item.supplier());
        plain.part = copy(item.part());
        return plain;
    }

    private static study.model.Supplier copy(Supplier supplier) {
        var plain = new study.model.Supplier();
        plain.supplierKey = supplier.supplierKey();
        plain.name = supplier.name().toString();
        plain.address = supplier.address().toString();
        plain.nationKey = supplier.nationKey();
        plain.phone = supplier.phone().toString();
        plain.acctbal = supplier.acctbal();
        plain.comment = supplier.comment().toString();
        return plain;
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

    private static void write(LineItem.Writer to, study.model.LineItem item) {
        to.orderKey(item.orderKey);
        to.lineNumber(item.lineNumber);
        to.quantity(item.quantity);
        to.extendedPrice(item.extendedPrice);
        to.discount(item.discount);
        to.tax(item.tax);
        to.returnFlag(item.returnFlag);
        to.lineStatus(item.lineStatus);
        to.shipDate(item.shipDate);
        to.commitDate(item.commitDate);
        to.receiptDate(item.receiptDate);
        to.shipInstruct(item.shipInstruct);
        to.shipMode(item.shipMode);
        to.comment(item.comment);
        write(to.supplier(), item.supplier);
        write(to.part(), item.part);
    }

    private static void write(Supplier.Writer to, study.model.Supplier supplier) {
        to.supplierKey(supplier.supplierKey);
        to.name(supplier.name);
        to.address(supplier.address);
        to.nationKey(supplier.nationKey);
        to.phone(supplier.phone);
        to.acctbal(supplier.acctbal);
        to.comment(supplier.comment);
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
