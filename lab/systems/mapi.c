/* Reads a result of MonetDB by its C library and throws it away: mapi HOST PORT USER PASSWORD
 * DATABASE STATEMENT. The package that has the library lacks its header. */
#include "drain.h"

typedef struct MapiStruct *Mapi;
typedef struct MapiStatement *MapiHdl;
extern Mapi mapi_connect(const char *host, int port, const char *user, const char *password,
                         const char *language, const char *database);
extern int mapi_error(Mapi connection);
extern const char *mapi_error_str(Mapi connection);
extern int mapi_cache_limit(Mapi connection, int rows);
extern MapiHdl mapi_query(Mapi connection, const char *statement);
extern int mapi_fetch_row(MapiHdl result);
extern int mapi_get_field_count(MapiHdl result);
extern char *mapi_fetch_field(MapiHdl result, int field);

/* The rows of a block. Without it, a block has 100. */
enum { BLOCK = 10000 };

static void check(Mapi connection) {
    if (mapi_error(connection)) fail(mapi_error_str(connection));
}

int main(int count, char **words) {
    if (count != 7) fail("HOST PORT USER PASSWORD DATABASE STATEMENT");
    struct phases at;
    at.began = now();
    Mapi connection = mapi_connect(words[1], atoi(words[2]), words[3], words[4], "sql", words[5]);
    check(connection);
    at.connected = now();
    mapi_cache_limit(connection, BLOCK);
    MapiHdl result = mapi_query(connection, words[6]);
    check(connection);
    at.executed = now();
    unsigned long rows = 0;
    long long sum = 0;
    int fields = mapi_get_field_count(result);
    while (mapi_fetch_row(result)) {
        rows++;
        /* Fields are cut out of a line when the first one is asked for. */
        const char *first = fields > 0 ? mapi_fetch_field(result, 0) : NULL;
        if (first != NULL) sum += atoll(first);
    }
    check(connection);
    at.ended = now();
    char details[64];
    snprintf(details, sizeof details, "{\"first_column_sum\": %lld}", sum);
    report(&at, rows, details);
    return 0;
}
