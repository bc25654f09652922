package study;

import java.util.Locale;
import study.model.Customer;
import study.model.LineItem;
import study.model.Part;
import study.model.Plain;
import study.model.SparseVector;

/** The objects that are stored, by the names of the command line. */
public enum Kind {
    PART(Part.class),
    LINEITEM(LineItem.class),
    CUSTOMER(Customer.class),
    VECTOR(SparseVector.class);

    /** Java's own class. */
    public final Class<? extends Plain> type;

    Kind(Class<? extends Plain> type) {
        this.type = type;
    }

    public static Kind of(String option) {
        for (Kind kind : values()) {
            if (kind.option().equals(option)) {
                return kind;
            }
        }
        throw new UsageException("there is no object " + option);
    }

    public String option() {
        return name().toLowerCase(Locale.ROOT);
    }
}
