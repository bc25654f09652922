/* What programs that read a result and throw it away have in common: clocks, and a measurement as
 * JSON (`measurement.py`). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static inline double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static inline void fail(const char *what) {
    fprintf(stderr, "drain: %s\n", what);
    exit(1);
}

/* The moments at which a phase ended, in seconds. */
struct phases {
    double began, connected, executed, ended;
};

/* Peak memory, as getrusage would count that of the parent as well. */
static inline long peak_bytes(void) {
    long kilobytes = 0;
    char line[256];
    FILE *status = fopen("/proc/self/status", "r");
    if (status == NULL) fail("cannot read /proc/self/status");
    while (fgets(line, sizeof line, status) != NULL && !sscanf(line, "VmHWM: %ld", &kilobytes)) {
    }
    fclose(status);
    return kilobytes * 1024;
}

/* `details` is JSON. */
static inline void report(const struct phases *at, unsigned long rows, const char *details) {
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    double cpu = used.ru_utime.tv_sec + used.ru_utime.tv_usec / 1e6 + used.ru_stime.tv_sec +
                 used.ru_stime.tv_usec / 1e6;
    printf("{\"connect_s\": %.6f, \"execute_s\": %.6f, \"transfer_s\": %.6f, \"total_s\": %.6f, "
           "\"rows\": %lu, \"arrow_bytes\": null, \"client_peak_bytes\": %ld, "
           "\"client_cpu_s\": %.6f, \"details\": %s}\n",
           at->connected - at->began, at->executed - at->connected, at->ended - at->executed,
           at->ended - at->began, rows, peak_bytes(), cpu, details);
}
