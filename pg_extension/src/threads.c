/*
 * The number of threads that may encode chunks beside the backend's own: the setting
 * dray.encoding_threads. Rust starts them for large results, and ends them with the statement.
 */
#include "dray.h"

#include "utils/guc.h"

#include <sched.h>

#define THREADS_DEFAULT 1
#define THREADS_MAX 16

static int	setting = THREADS_DEFAULT;

void
dray_define_encoding_threads(void)
{
	DefineCustomIntVariable("dray.encoding_threads",
							"Threads that encode a result in format dray beside the backend's own; "
							"0 for none.",
							NULL, &setting, THREADS_DEFAULT, 0, THREADS_MAX, PGC_USERSET, 0,
							NULL, NULL, NULL);
}

/*
 * The setting, but at most the processors beside the one of the backend's own thread.
 */
uint32
dray_encoding_threads(void)
{
	cpu_set_t	processors;

	if (sched_getaffinity(0, sizeof(processors), &processors) != 0)
		return setting;
	return Min(setting, CPU_COUNT(&processors) - 1);
}
