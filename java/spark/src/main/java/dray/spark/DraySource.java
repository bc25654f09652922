package dray.spark;

import java.util.Map;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.connector.catalog.TableProvider;
import org.apache.spark.sql.connector.expressions.Transform;
import org.apache.spark.sql.sources.DataSourceRegister;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.sql.util.CaseInsensitiveStringMap;

/** {@code spark.read.format("dray")}: a table or query of a database, named by options. */
public final class DraySource implements TableProvider, DataSourceRegister {
    /** What {@link #inferSchema} has found out, for {@link #getTable} right after it. */
    private DrayTable inferred;

    @Override
    public String shortName() {
        return "dray";
    }

    @Override
    public StructType inferSchema(CaseInsensitiveStringMap options) {
        inferred = table(options.asCaseSensitiveMap());
        return inferred.schema();
    }

    @Override
    public Table getTable(StructType schema, Transform[] partitioning, Map<String, String> given) {
        DrayTable table = inferred;
        inferred = null;
        DrayOptions options = new DrayOptions(given, false);
        return table != null && table.isOf(options, schema) ? table : table(given);
    }

    private static DrayTable table(Map<String, String> given) {
        DrayOptions options = new DrayOptions(given, false);
        return options.query() == null
                ? DrayTable.ofTable(options, options.dbtable(), options.dbtable())
                : DrayTable.ofQuery(options, options.query());
    }
}
