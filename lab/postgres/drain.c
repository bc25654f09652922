/* Reads a result with libpq and throws it away: drain CONNINFO text|binary|copy STATEMENT. Rows
 * come one by one, and their values stay in the library's buffer. Prints a measurement. */
#include <libpq-fe.h>

#include "drain.h"

static unsigned long drain_rows(PGconn *connection, const char *sql, int format,
                                struct phases *at) {
    unsigned long rows = 0;
    if (!PQsendQueryParams(connection, sql, 0, NULL, NULL, NULL, NULL, format) ||
        !PQsetSingleRowMode(connection))
        fail(PQerrorMessage(connection));
    PGresult *result;
    while ((result = PQgetResult(connection)) != NULL) {
        if (rows == 0) at->executed = now();
        ExecStatusType status = PQresultStatus(result);
        if (status == PGRES_SINGLE_TUPLE)
            rows++;
        else if (status != PGRES_TUPLES_OK)
            fail(PQresultErrorMessage(result));
        PQclear(result);
    }
    return rows;
}

static unsigned long drain_copy(PGconn *connection, const char *sql, struct phases *at) {
    char *statement = malloc(strlen(sql) + 64);
    sprintf(statement, "COPY (%s) TO STDOUT (FORMAT binary)", sql);
    PGresult *result = PQexec(connection, statement);
    if (PQresultStatus(result) != PGRES_COPY_OUT) fail(PQresultErrorMessage(result));
    at->executed = now();
    char *buffer;
    while (PQgetCopyData(connection, &buffer, 0) > 0) PQfreemem(buffer);
    result = PQgetResult(connection);
    if (PQresultStatus(result) != PGRES_COMMAND_OK) fail(PQresultErrorMessage(result));
    return strtoul(PQcmdTuples(result), NULL, 10);
}

int main(int count, char **words) {
    if (count != 4) fail("CONNINFO text|binary|copy STATEMENT");
    struct phases at;
    at.began = now();
    PGconn *connection = PQconnectdb(words[1]);
    if (PQstatus(connection) != CONNECTION_OK) fail(PQerrorMessage(connection));
    at.connected = now();
    unsigned long rows = strcmp(words[2], "copy") == 0
                             ? drain_copy(connection, words[3], &at)
                             : drain_rows(connection, words[3], words[2][0] == 'b', &at);
    at.ended = now();
    report(&at, rows, "{}");
    PQfinish(connection);
    return 0;
}
