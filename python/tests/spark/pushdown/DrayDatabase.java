package dray.spark.pushdown;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.apache.spark.sql.Row;
import org.apache.spark.sql.RowFactory;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.types.DataTypes;
import org.apache.spark.sql.types.StructType;

/** `dray serve` over a Parquet file that Spark has written. */
final class DrayDatabase implements Database {
    private final SparkSession spark;
    private final String program;
    private final Path folder;
    private final Process server;
    private final String uri;
    private final List<SourceColumn> columns;
    private int results;

    DrayDatabase(SparkSession spark, String program, Path folder, List<NastyTable.Column> table,
            List<Object[]> rows) throws Exception {
        this.spark = spark;
        this.program = program;
        this.folder = folder;
        List<Row> values = rows.stream().map(RowFactory::create).toList();
        Path written = folder.resolve("written");
        spark.createDataFrame(values, NastyTable.schema(table)).coalesce(1)
                .write().parquet(written.toString());
        Path file = folder.resolve("t.parquet");
        try (var files = Files.newDirectoryStream(written, "*.parquet")) {
            Files.move(files.iterator().next(), file);
        }
        server = new ProcessBuilder(program, "serve", "--listen", "tcp://127.0.0.1:0",
                file.toString()).redirectError(folder.resolve("log").toFile()).start();
        uri = announced();
        List<String> names = table.stream().map(NastyTable.Column::name).toList();
        StructType description = new StructType().add("n", "long").add("t", "string")
                .add("c", "string");
        columns = SourceColumn.list(NastyTable.schema(table),
                rows(dialect().describe("t", names).orElseThrow(), description).stream()
                        .map(row -> new String[] {"" + row.get(0), row.getString(1), null})
                        .toArray(String[][]::new));
    }

    private String announced() throws IOException {
        var output = new BufferedReader(
                new InputStreamReader(server.getInputStream(), StandardCharsets.UTF_8));
        String sign = "listening on ";
        for (String line = output.readLine(); line != null; line = output.readLine()) {
            if (line.startsWith(sign + "dray://")) {
                return line.substring(sign.length());
            }
        }
        throw new IOException(Files.readString(folder.resolve("log")));
    }

    @Override
    public String name() {
        return "dray";
    }

    @Override
    public Dialect dialect() {
        return new DataFusion();
    }

    @Override
    public List<SourceColumn> columns() {
        return columns;
    }

    @Override
    public synchronized List<Row> rows(String sql, StructType schema) throws Exception {
        boolean number = schema.length() == 1
                && schema.apply(0).dataType().equals(DataTypes.IntegerType);
        Path result = folder.resolve("result" + results++);
        Path errors = folder.resolve("errors");
        Process query = new ProcessBuilder(program, "query", "--quiet", "--format",
                number ? "csv" : "parquet", uri, "-").redirectOutput(result.toFile())
                .redirectError(errors.toFile()).start();
        try (var input = query.getOutputStream()) {
            input.write(sql.getBytes(StandardCharsets.UTF_8));
        }
        if (query.waitFor() != 0) {
            throw new IOException(Files.readString(errors) + " in " + sql);
        }
        var rows = new ArrayList<Row>();
        if (number) {
            Files.readAllLines(result).stream().skip(1)
                    .forEach(line -> rows.add(RowFactory.create(Integer.valueOf(line))));
            return rows;
        }
        var table = spark.read().parquet(result.toString());
        var casts = new ArrayList<org.apache.spark.sql.Column>();
        for (int i = 0; i < schema.length(); i++) {
            casts.add(table.col("`" + table.columns()[i].replace("`", "``") + "`")
                    .cast(schema.apply(i).dataType()));
        }
        return table.select(casts.toArray(new org.apache.spark.sql.Column[0])).collectAsList();
    }

    @Override
    public void close() {
        server.destroyForcibly();
    }
}
