/* Reads a result with MariaDB's own library and throws it away: drain HOST PORT USER PASSWORD
 * DATABASE text|binary plain|compressed STATEMENT. Prints a measurement. Binary values are left in
 * the library's buffer, as no column is bound. */
#include <mysql.h>

#include "drain.h"

static unsigned long drain_text(MYSQL *connection, const char *sql, struct phases *at) {
    unsigned long rows = 0;
    if (mysql_query(connection, sql)) fail(mysql_error(connection));
    MYSQL_RES *result = mysql_use_result(connection);
    if (result == NULL) fail(mysql_error(connection));
    at->executed = now();
    while (mysql_fetch_row(result) != NULL) rows++;
    if (mysql_errno(connection)) fail(mysql_error(connection));
    at->ended = now();
    mysql_free_result(result);
    return rows;
}

static unsigned long drain_binary(MYSQL *connection, const char *sql, struct phases *at) {
    unsigned long rows = 0;
    MYSQL_STMT *statement = mysql_stmt_init(connection);
    if (mysql_stmt_prepare(statement, sql, strlen(sql)) || mysql_stmt_execute(statement))
        fail(mysql_stmt_error(statement));
    at->executed = now();
    int fetched;
    while ((fetched = mysql_stmt_fetch(statement)) != MYSQL_NO_DATA) {
        if (fetched == 1) fail(mysql_stmt_error(statement));
        rows++;
    }
    at->ended = now();
    mysql_stmt_close(statement);
    return rows;
}

int main(int count, char **words) {
    if (count != 9) fail("HOST PORT USER PASSWORD DATABASE text|binary plain|compressed STATEMENT");
    struct phases at;
    MYSQL *connection = mysql_init(NULL);
    int compressed = strcmp(words[7], "compressed") == 0;
    if (compressed && mysql_options(connection, MYSQL_OPT_COMPRESS, NULL))
        fail("the library cannot compress");
    at.began = now();
    if (!mysql_real_connect(connection, words[1], words[3], words[4], words[5], atoi(words[2]),
                            NULL, compressed ? CLIENT_COMPRESS : 0))
        fail(mysql_error(connection));
    at.connected = now();
    int is_text = strcmp(words[6], "text") == 0;
    unsigned long rows = (is_text ? drain_text : drain_binary)(connection, words[8], &at);
    report(&at, rows, "{}");
    mysql_close(connection);
    return 0;
}
