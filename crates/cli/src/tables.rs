//! `dray tables`: lists a server's tables.

use std::io::{IsTerminal, Write};
use std::os::fd::AsFd;

use clap::{Args, ValueEnum};
use dray_client::{Connection, QueryOptions, SourceKind, Verdict};

use crate::failure::{EXIT_CODES, Failure};
use crate::format::table::Table;
use crate::format::{FileOptions, Format};
use crate::interrupt::Interrupt;
use crate::progress::{Meter, Visibility};
use crate::statement::{Login, failed};

/// The name of the output in errors.
const TARGET: &str = "standard output";

/// The query for a Dray server.
const DRAY_QUERY: &str =
    "SELECT table_name AS \"table\", rows, bytes, files, columns FROM dray.tables ORDER BY 1";
/// The query for PostgreSQL: the tables that the user may read, with the row counts of the last
/// ANALYZE. Every name is qualified, since other users may have objects in the search path.
const POSTGRES_QUERY: &str = "\
SELECT pg_catalog.format('%I.%I', s.nspname, t.relname) AS \"table\",
       CASE WHEN t.reltuples OPERATOR(pg_catalog.>=) 0 THEN t.reltuples::pg_catalog.int8 END
           AS estimated_rows,
       pg_catalog.pg_table_size(t.oid) AS bytes,
       (SELECT pg_catalog.string_agg(pg_catalog.format('%I %s', c.attname,
                                         pg_catalog.format_type(c.atttypid, c.atttypmod)),
                                     ', ' ORDER BY c.attnum)
        FROM pg_catalog.pg_attribute c
        WHERE c.attrelid OPERATOR(pg_catalog.=) t.oid
          AND c.attnum OPERATOR(pg_catalog.>) 0::pg_catalog.int2
          AND NOT c.attisdropped) AS columns
FROM pg_catalog.pg_class t
JOIN pg_catalog.pg_namespace s ON s.oid OPERATOR(pg_catalog.=) t.relnamespace
WHERE t.relkind::pg_catalog.text OPERATOR(pg_catalog.~) '^[rpvmf]$'
  AND s.nspname::pg_catalog.text OPERATOR(pg_catalog.!~) '^(pg_.*|information_schema)$'
  AND pg_catalog.has_table_privilege(t.oid, 'SELECT')
ORDER BY s.nspname::pg_catalog.text, t.relname::pg_catalog.text";

/// The query for MySQL and MariaDB: the tables of the databases that the user sees.
/// The comment lengthens lists of columns for MySQL 8 where nothing can be set.
const MYSQL_QUERY: &str = "\
SELECT /*+ SET_VAR(group_concat_max_len = 1048576) */
       concat(t.table_schema, '.', t.table_name) AS `table`,
       t.table_rows AS estimated_rows,
       t.data_length AS bytes,
       c.columns
FROM information_schema.tables t
LEFT JOIN (SELECT table_schema, table_name,
                  group_concat(column_name, ' ', column_type
                               ORDER BY ordinal_position SEPARATOR ', ') AS columns
           FROM information_schema.columns
           GROUP BY table_schema, table_name) c
       ON c.table_schema = t.table_schema AND c.table_name = t.table_name
WHERE t.table_schema NOT IN ('information_schema', 'mysql', 'performance_schema', 'sys')
ORDER BY t.table_schema, t.table_name";

const EXAMPLES: &str = "\
Rows and bytes are empty if the server does not know them. Rows of PostgreSQL, MySQL and MariaDB
are estimates.

Examples:
  dray tables dray://localhost
  dray tables dray://localhost/shop        a database behind a Dray server
  dray tables postgresql://me@localhost/shop --format json | jq -r .table";

/// List a server's tables: their rows, bytes and columns
#[derive(Debug, Args)]
#[command(after_help = format!("{EXAMPLES}\n\n{EXIT_CODES}"))]
pub(crate) struct Arguments {
    /// The server: dray://HOST[:PORT][/SOURCE], drays://… (TLS), dray+unix:///PATH,
    /// postgresql://USER@HOST/DATABASE, mysql://… or mariadb://USER@HOST/DATABASE
    uri: String,
    /// The output format [default: table on a terminal, csv elsewhere]
    #[arg(long, value_enum)]
    format: Option<OutputFormat>,
    #[command(flatten)]
    login: Login,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum OutputFormat {
    /// For reading
    Table,
    /// NULL is an empty field
    Csv,
    /// One object per line
    Json,
}

/// Queries the tables and prints them.
pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let is_terminal = std::io::stdout().is_terminal();
    let format = match arguments.format {
        Some(OutputFormat::Csv) => Some(Format::Csv),
        Some(OutputFormat::Json) => Some(Format::Json),
        Some(OutputFormat::Table) => None,
        None if is_terminal => None,
        None => Some(Format::Csv),
    };
    let interrupt = Interrupt::listen()?;
    let meter = Meter::new(Visibility::Hidden);
    let connection = Connection::connect(&arguments.uri, &arguments.login.options()?)
        .map_err(Failure::Client)?;
    let mut connection = connection;
    if connection.kind() == SourceKind::Mysql {
        // Longer lists of columns are cut off.
        let set = "SET SESSION group_concat_max_len = 1048576";
        connection
            .ask(set, &mut || Verdict::Continue)
            .map_err(|error| failed(error, &interrupt))?;
    }
    let sql = match connection.dialect() {
        SourceKind::Postgres => POSTGRES_QUERY,
        SourceKind::Mysql => MYSQL_QUERY,
        SourceKind::Dray => DRAY_QUERY,
        SourceKind::Other => {
            return Err(Failure::Usage(
                "the tables of this source can't be listed here: ask it by a statement of its own, \
                 such as SHOW TABLES, SELECT * FROM sqlite_schema or {\"listCollections\": 1}"
                    .to_owned(),
            ));
        }
    };
    let watch = meter.watch(interrupt.clone());
    let results = Connection::query_with(connection, sql, &QueryOptions::default(), Some(watch));
    let mut results = results.map_err(|error| failed(error, &interrupt))?;
    let batches = results.read_all().map_err(|error| failed(error, &interrupt))?;
    let unwritten = |cause: crate::format::WriteError| Failure::output(TARGET, cause.as_ref());
    match format {
        Some(format) => {
            let out = std::io::stdout()
                .as_fd()
                .try_clone_to_owned()
                .map_err(|cause| Failure::output(TARGET, &cause))?;
            let out = std::fs::File::from(out);
            let mut sink =
                format.sink(out, &results.schema(), FileOptions::default()).map_err(unwritten)?;
            for batch in &batches {
                sink.write(batch).map_err(unwritten)?;
            }
            sink.finish().map_err(unwritten)
        }
        None => {
            let mut table = Table::of(&results.schema());
            for batch in &batches {
                table
                    .push_batch(batch, batch.num_rows())
                    .map_err(|cause| Failure::output(TARGET, &cause))?;
            }
            let width = is_terminal.then(|| usize::from(console::Term::stdout().size().1));
            let text = table.render(width);
            let mut out = std::io::stdout().lock();
            out.write_all(text.as_bytes())
                .and_then(|()| out.flush())
                .map_err(|cause| Failure::output(TARGET, &cause))
        }
    }
}
