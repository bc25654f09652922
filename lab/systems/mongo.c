/* Reads a collection of MongoDB by its C library and throws it away: mongo HOST PORT DATABASE
 * COLLECTION BATCH_BYTES KEY. Visits each field of each document, and adds up those named KEY. */
#include <mongoc/mongoc.h>

#include "drain.h"

static void check(mongoc_cursor_t *cursor) {
    bson_error_t error;
    if (mongoc_cursor_error(cursor, &error)) fail(error.message);
}

static mongoc_cursor_t *find(mongoc_collection_t *collection, const char *option, int64_t value) {
    bson_t *filter = bson_new();
    bson_t *options = BCON_NEW(option, BCON_INT64(value));
    mongoc_cursor_t *cursor = mongoc_collection_find_with_opts(collection, filter, options, NULL);
    bson_destroy(options);
    bson_destroy(filter);
    return cursor;
}

/* The size of the first document, from which batches get their number of documents. */
static int64_t document_bytes(mongoc_collection_t *collection) {
    const bson_t *document;
    mongoc_cursor_t *cursor = find(collection, "limit", 1);
    if (!mongoc_cursor_next(cursor, &document)) {
        check(cursor);
        fail("there is no document");
    }
    int64_t bytes = document->len;
    mongoc_cursor_destroy(cursor);
    return bytes;
}

static int64_t sum_of(const bson_t *document, const char *key) {
    int64_t sum = 0;
    bson_iter_t field;
    if (!bson_iter_init(&field, document)) fail("a document is broken");
    while (bson_iter_next(&field))
        if (strcmp(bson_iter_key(&field), key) == 0) sum += bson_iter_as_int64(&field);
    return sum;
}

int main(int count, char **words) {
    if (count != 7) fail("HOST PORT DATABASE COLLECTION BATCH_BYTES KEY");
    mongoc_init();
    struct phases at;
    at.began = now();
    mongoc_uri_t *uri = mongoc_uri_new_for_host_port(words[1], atoi(words[2]));
    mongoc_client_t *client = mongoc_client_new_from_uri(uri);
    mongoc_collection_t *collection = mongoc_client_get_collection(client, words[3], words[4]);
    int64_t batch = atoll(words[5]) / document_bytes(collection);
    /* The statement is sent when the first document is asked for. */
    at.connected = at.executed = now();
    mongoc_cursor_t *cursor = find(collection, "batchSize", batch);
    const bson_t *document;
    unsigned long rows = 0;
    int64_t sum = 0;
    while (mongoc_cursor_next(cursor, &document)) {
        rows++;
        sum += sum_of(document, words[6]);
    }
    check(cursor);
    at.ended = now();
    char details[64];
    snprintf(details, sizeof details, "{\"first_column_sum\": %lld}", (long long)sum);
    report(&at, rows, details);
    mongoc_cursor_destroy(cursor);
    mongoc_collection_destroy(collection);
    mongoc_client_destroy(client);
    mongoc_uri_destroy(uri);
    mongoc_cleanup();
    return 0;
}
