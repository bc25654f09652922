/*
 * The entry points that the server looks up when it loads the library.
 */
#include "dray.h"

#include "fmgr.h"
#include "miscadmin.h"
#include "utils/builtins.h"
#include "utils/guc.h"

PG_MODULE_MAGIC;

PGDLLEXPORT void _PG_init(void);

#ifdef DRAY_TEST_ALLOCATOR
static int	fail_after = 0;
bool		dray_test_fail_send = false;

static void
assign_fail_after(int newval, void *extra)
{
	dray_test_fail_after(newval);
}
#endif

void
_PG_init(void)
{
	dray_init(&QueryCancelPending, &ProcDiePending);
	dray_install_hook();
	dray_define_congestion_control();
	dray_define_encoding_threads();
#ifdef DRAY_TEST_ALLOCATOR
	DefineCustomIntVariable("dray.test_fail_after",
							"Number of the first allocation of Rust that fails; 0 for none.", NULL,
							&fail_after, 0, 0, INT_MAX, PGC_USERSET, 0,
							NULL, assign_fail_after, NULL);
	DefineCustomBoolVariable("dray.test_fail_send", "Whether sending a large frame fails.", NULL,
							 &dray_test_fail_send, false, PGC_USERSET, 0, NULL, NULL, NULL);
#endif
}

PG_FUNCTION_INFO_V1(dray_load);

/*
 * pg_catalog.dray_load(). Calling it loads the library, which is all that it is for.
 */
Datum
dray_load(PG_FUNCTION_ARGS)
{
	PG_RETURN_TEXT_P(cstring_to_text("dray " DRAY_VERSION));
}
