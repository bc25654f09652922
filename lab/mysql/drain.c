/* Reads a result with MariaDB's own library and throws it away: drain HOST PORT USER PASSWORD
 * DATABASE text|binary STATEMENT. Prints the seconds and the rows. Binary values are left in the
 * library's buffer, as no column is bound. */
#include <mysql.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static void fail(const char *what) {
    fprintf(stderr, "drain: %s\n", what);
    exit(1);
}

static unsigned long drain_text(MYSQL *connection, const char *sql) {
    unsigned long rows = 0;
    if (mysql_query(connection, sql)) fail(mysql_error(connection));
    MYSQL_RES *result = mysql_use_result(connection);
    if (result == NULL) fail(mysql_error(connection));
    while (mysql_fetch_row(result) != NULL) rows++;
    if (mysql_errno(connection)) fail(mysql_error(connection));
    mysql_free_result(result);
    return rows;
}

static unsigned long drain_binary(MYSQL *connection, const char *sql) {
    unsigned long rows = 0;
    MYSQL_STMT *statement = mysql_stmt_init(connection);
    if (mysql_stmt_prepare(statement, sql, strlen(sql)) || mysql_stmt_execute(statement))
        fail(mysql_stmt_error(statement));
    int fetched;
    while ((fetched = mysql_stmt_fetch(statement)) != MYSQL_NO_DATA) {
        if (fetched == 1) fail(mysql_stmt_error(statement));
        rows++;
    }
    mysql_stmt_close(statement);
    return rows;
}

int main(int count, char **words) {
    if (count != 8) fail("HOST PORT USER PASSWORD DATABASE text|binary STATEMENT");
    MYSQL *connection = mysql_init(NULL);
    if (!mysql_real_connect(connection, words[1], words[3], words[4], words[5], atoi(words[2]),
                            NULL, 0))
        fail(mysql_error(connection));
    double began = now();
    unsigned long rows = strcmp(words[6], "text") == 0 ? drain_text(connection, words[7])
                                                       : drain_binary(connection, words[7]);
    printf("{\"seconds\": %.6f, \"rows\": %lu}\n", now() - began, rows);
    mysql_close(connection);
    return 0;
}
