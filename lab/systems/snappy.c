/* Compresses its input by Snappy: snappy compress|decompress. Each block of 64 KiB, the most that
 * Snappy looks at, lies behind its compressed length in four bytes. */
#include <snappy-c.h>
#include <stdint.h>

#include "drain.h"

enum { BLOCK = 64 * 1024 };

static void write_all(const void *bytes, size_t length) {
    if (fwrite(bytes, 1, length, stdout) != length) fail("cannot write");
}

static void compress(char *block, char *packed) {
    size_t length;
    while ((length = fread(block, 1, BLOCK, stdin)) > 0) {
        size_t packed_length = snappy_max_compressed_length(BLOCK);
        if (snappy_compress(block, length, packed, &packed_length) != SNAPPY_OK)
            fail("cannot compress");
        uint32_t header = packed_length;
        write_all(&header, sizeof header);
        write_all(packed, packed_length);
    }
}

static void decompress(char *block, char *packed) {
    uint32_t header;
    while (fread(&header, sizeof header, 1, stdin) == 1) {
        size_t length = BLOCK;
        if (header > snappy_max_compressed_length(BLOCK) ||
            fread(packed, 1, header, stdin) != header ||
            snappy_uncompress(packed, header, block, &length) != SNAPPY_OK)
            fail("expected a block of Snappy");
        write_all(block, length);
    }
}

int main(int count, char **words) {
    if (count != 2) fail("compress|decompress");
    char *block = malloc(BLOCK), *packed = malloc(snappy_max_compressed_length(BLOCK));
    if (block == NULL || packed == NULL) fail("no memory");
    (strcmp(words[1], "compress") == 0 ? compress : decompress)(block, packed);
    if (fflush(stdout) != 0) fail("cannot write");
    return 0;
}
