/* Reads a result by ODBC and throws it away: odbc CONNECTION_STRING STATEMENT. Columns are bound to
 * arrays of ROWS values in the C type nearest to theirs. A text that is cut is an error. Prints a
 * measurement. */
#include <sql.h>
#include <sqlext.h>

#include "drain.h"

enum { ROWS = 1000, TEXT_MAX = 4096 };

static void check(SQLRETURN code, SQLSMALLINT kind, SQLHANDLE handle) {
    if (SQL_SUCCEEDED(code)) return;
    SQLCHAR state[6] = "", message[1024] = "no message";
    SQLINTEGER native;
    SQLGetDiagRec(kind, handle, 1, state, &native, message, sizeof message, NULL);
    fail((char *)message);
}

struct column {
    SQLSMALLINT type;
    SQLLEN width;
    SQLLEN *lengths;
    void *values;
};

static struct column bind(SQLHSTMT statement, SQLUSMALLINT number) {
    SQLSMALLINT kind, digits, nullable, name_length;
    SQLULEN size;
    SQLCHAR name[256];
    check(SQLDescribeCol(statement, number, name, sizeof name, &name_length, &kind, &size, &digits,
                         &nullable),
          SQL_HANDLE_STMT, statement);
    struct column column = {SQL_C_CHAR, 0, calloc(ROWS, sizeof(SQLLEN)), NULL};
    switch (kind) {
    case SQL_TINYINT: case SQL_SMALLINT: case SQL_INTEGER: case SQL_BIGINT:
        column.type = SQL_C_SBIGINT, column.width = sizeof(SQLBIGINT);
        break;
    case SQL_REAL: case SQL_FLOAT: case SQL_DOUBLE:
        column.type = SQL_C_DOUBLE, column.width = sizeof(SQLDOUBLE);
        break;
    case SQL_TYPE_DATE:
        column.type = SQL_C_TYPE_DATE, column.width = sizeof(SQL_DATE_STRUCT);
        break;
    case SQL_TYPE_TIMESTAMP:
        column.type = SQL_C_TYPE_TIMESTAMP, column.width = sizeof(SQL_TIMESTAMP_STRUCT);
        break;
    default:
        /* Up to four bytes for each character, a sign, a point and the end. */
        column.width = (size == 0 || size > TEXT_MAX / 4 ? TEXT_MAX : (SQLLEN)size * 4) + 3;
    }
    column.values = calloc(ROWS, column.width);
    check(SQLBindCol(statement, number, column.type, column.values, column.width, column.lengths),
          SQL_HANDLE_STMT, statement);
    return column;
}

/* The sum of the first column, if it has integers. It tells that values have arrived. */
static void add(const struct column *column, SQLULEN rows, SQLBIGINT *sum) {
    if (column->type != SQL_C_SBIGINT) return;
    for (SQLULEN row = 0; row < rows; row++)
        if (column->lengths[row] != SQL_NULL_DATA) *sum += ((SQLBIGINT *)column->values)[row];
}

static unsigned long drain(SQLHSTMT statement, SQLBIGINT *sum) {
    SQLSMALLINT count;
    SQLULEN fetched = 0;
    unsigned long rows = 0;
    check(SQLNumResultCols(statement, &count), SQL_HANDLE_STMT, statement);
    struct column *columns = calloc(count, sizeof *columns);
    for (SQLSMALLINT i = 0; i < count; i++) columns[i] = bind(statement, i + 1);
    SQLSetStmtAttr(statement, SQL_ATTR_ROWS_FETCHED_PTR, &fetched, 0);
    SQLRETURN code;
    while ((code = SQLFetch(statement)) != SQL_NO_DATA) {
        check(code, SQL_HANDLE_STMT, statement);
        rows += fetched;
        add(&columns[0], fetched, sum);
        if (code == SQL_SUCCESS) continue;
        for (SQLSMALLINT i = 0; i < count; i++)
            for (SQLULEN row = 0; row < fetched; row++)
                if (columns[i].type == SQL_C_CHAR && columns[i].lengths[row] >= columns[i].width)
                    fail("the driver has cut a text");
    }
    return rows;
}

int main(int count, char **words) {
    if (count != 3) fail("CONNECTION_STRING STATEMENT");
    struct phases at;
    SQLHENV environment;
    SQLHDBC connection;
    SQLHSTMT statement;
    SQLAllocHandle(SQL_HANDLE_ENV, SQL_NULL_HANDLE, &environment);
    SQLSetEnvAttr(environment, SQL_ATTR_ODBC_VERSION, (void *)SQL_OV_ODBC3, 0);
    SQLAllocHandle(SQL_HANDLE_DBC, environment, &connection);
    at.began = now();
    check(SQLDriverConnect(connection, NULL, (SQLCHAR *)words[1], SQL_NTS, NULL, 0, NULL,
                           SQL_DRIVER_NOPROMPT),
          SQL_HANDLE_DBC, connection);
    at.connected = now();
    SQLAllocHandle(SQL_HANDLE_STMT, connection, &statement);
    check(SQLSetStmtAttr(statement, SQL_ATTR_ROW_ARRAY_SIZE, (void *)(SQLULEN)ROWS, 0),
          SQL_HANDLE_STMT, statement);
    check(SQLExecDirect(statement, (SQLCHAR *)words[2], SQL_NTS), SQL_HANDLE_STMT, statement);
    at.executed = now();
    SQLBIGINT sum = 0;
    unsigned long rows = drain(statement, &sum);
    at.ended = now();
    char details[64];
    snprintf(details, sizeof details, "{\"first_column_sum\": %lld}", (long long)sum);
    report(&at, rows, details);
    SQLFreeHandle(SQL_HANDLE_STMT, statement);
    SQLDisconnect(connection);
    return 0;
}
