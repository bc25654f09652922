/*
 * How many threads a statement may have beside the backend's own, to make chunks. Rust starts them,
 * for results that are large enough, and ends them with the statement.
 */
#include "dray.h"

#include "utils/guc.h"

#include <sched.h>

#define THREADS_DEFAULT 1
#define THREADS_MAX 16

static int	wanted = THREADS_DEFAULT;

void
dray_define_encoding_threads(void)
{
	DefineCustomIntVariable("dray.encoding_threads",
							"Threads that encode a result in format dray beside the backend's own; 0 for none.",
							NULL, &wanted, THREADS_DEFAULT, 0, THREADS_MAX, PGC_USERSET, 0, NULL, NULL, NULL);
}

/*
 * No more than there are processors beside the one for the backend itself.
 */
uint32
dray_encoding_threads(void)
{
	cpu_set_t	processors;

	if (sched_getaffinity(0, sizeof(processors), &processors) != 0)
		return wanted;
	return Min(wanted, CPU_COUNT(&processors) - 1);
}
