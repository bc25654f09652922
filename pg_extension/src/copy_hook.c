/*
 * COPY ... TO STDOUT (FORMAT dray): the utility hook, and the run of a statement.
 */
#include "dray.h"

#include "access/xact.h"
#include "commands/progress.h"
#include "executor/executor.h"
#include "miscadmin.h"
#include "portability/instr_time.h"
#include "storage/ipc.h"
#include "tcop/cmdtag.h"
#include "tcop/tcopprot.h"
#include "tcop/utility.h"
#include "utils/backend_progress.h"
#include "utils/memutils.h"
#include "utils/snapmgr.h"

/*
 * The start of a stream is flushed at once for plans above this cost, some 10 ms: the user then
 * sees the estimate before the first rows.
 */
#define LONG_COST 1000.0

static ProcessUtility_hook_type previous_hook = NULL;

/* The open stream, or NULL. */
static DrayStream *running = NULL;

static void
close_stream(void *stream)
{
	running = NULL;
	dray_stream_close((DrayStream *) stream);
}

/*
 * Ends the stream's threads. They must end after an error, because whoever catches it may go on.
 * They must also end when the backend exits, possibly while it sends, because they must not outlive
 * what they use.
 */
static void
stop_threads(void)
{
	if (running != NULL)
		dray_stream_stop(running);
}

static void
stop_at_exit(int code, Datum arg)
{
	stop_threads();
}

/*
 * Opens Rust's stream. It is closed when the current memory context is reset or deleted.
 */
static DrayStream *
open_stream(const DraySettings *settings, TupleDesc desc, const Bitmapset *not_null)
{
	MemoryContextCallback *callback = palloc(sizeof(MemoryContextCallback));
	DrayStream *stream = NULL;
	DrayError	error;
	DrayMember *columns;
	uint32		types;
	int32		code;

	columns = dray_describe_columns(desc, not_null, &types);
	code = dray_stream_open(settings, columns, desc->natts, types, &stream, &error);

	/* An entry may fail for want of memory after it has opened the stream. */
	if (stream != NULL)
	{
		static bool stops_at_exit = false;

		callback->func = close_stream;
		callback->arg = stream;
		MemoryContextRegisterResetCallback(CurrentMemoryContext, callback);
		running = stream;
		if (!stops_at_exit)
			on_proc_exit(stop_at_exit, 0);
		stops_at_exit = true;
	}
	if (code < 0)
		dray_fail(code, &error);
	return stream;
}

static uint64
nanoseconds_since(instr_time start)
{
	instr_time	now;

	INSTR_TIME_SET_CURRENT(now);
	INSTR_TIME_SUBTRACT(now, start);
	return (uint64) (INSTR_TIME_GET_MICROSEC(now)) * 1000;
}

/*
 * Runs the plan, and sends its result as a stream. Returns the number of rows.
 */
static uint64
run_plan(DrayPlan plan, DrayOptions *options, const char *source, instr_time start)
{
	const DrayPart *parts;
	size_t		count;
	DrayError	error;
	DrayStream *stream;
	DrayReceiver *receiver;
	DestReceiver *placeholder;
	QueryDesc  *query;
	uint64		rows;
	int32		code;

	/*
	 * As a SELECT does, and COPY does not: the snapshot is taken once the statement's locks are
	 * held. Whoever held them may have put other rows in a table's place, which an earlier snapshot
	 * does not see. As in COPY, this command sees its transaction's own changes.
	 */
	PushCopiedSnapshot(GetTransactionSnapshot());
	UpdateActiveSnapshotCommandId();

	/* The receiver needs the types of the result, which are known once the executor has started. */
	placeholder = CreateDestReceiver(DestNone);
	query = CreateQueryDesc(plan.stmt, source, GetActiveSnapshot(), InvalidSnapshot, placeholder,
							plan.params, NULL, 0);
	ExecutorStart(query, 0);

	/* The planner's estimate is a double, and may exceed every integer. */
	options->settings.rows_estimate = Min(Max(plan.stmt->planTree->plan_rows, 0), 1e18);
	options->settings.plan_ns = nanoseconds_since(start);
	stream = open_stream(&options->settings, query->tupDesc, plan.not_null);
	receiver = dray_create_receiver(stream, query->tupDesc);
	query->dest = &receiver->pub;

	pgstat_progress_start_command(PROGRESS_COMMAND_COPY, InvalidOid);
	pgstat_progress_update_param(PROGRESS_COPY_COMMAND, PROGRESS_COPY_COMMAND_TO);
	pgstat_progress_update_param(PROGRESS_COPY_TYPE, PROGRESS_COPY_TYPE_PIPE);

	code = dray_start(receiver->stream, &parts, &count, &error);
	if (code < 0)
		dray_fail(code, &error);
	dray_send_copy_out(query->tupDesc->natts);
	dray_send_frame(parts, count);
	if (plan.stmt->planTree->total_cost > LONG_COST)
		dray_send_now();

#if PG_VERSION_NUM >= 180000
	ExecutorRun(query, ForwardScanDirection, 0);
#else
	ExecutorRun(query, ForwardScanDirection, 0, true);
#endif
	dray_send_waiting(receiver, true);
	rows = receiver->rows;

	/*
	 * AFTER triggers of INSERT ... RETURNING may still fail. The stream must not have ended then.
	 */
	ExecutorFinish(query);

	code = dray_finish(receiver->stream, receiver->socket_ns, nanoseconds_since(start),
					   &parts, &count, &error);
	if (code < 0)
		dray_fail(code, &error);
	dray_send_frame(parts, count);
	dray_send_copy_done();

	ExecutorEnd(query);
	FreeQueryDesc(query);
	PopActiveSnapshot();
	pgstat_progress_end_command();
	return rows;
}

static void
run_copy(PlannedStmt *pstmt, const CopyStmt *stmt, const char *source, ParamListInfo params,
		 QueryEnvironment *environment, QueryCompletion *completion)
{
	MemoryContext context;
	MemoryContext caller_context;
	ParseState *pstate;
	DrayOptions options;
	DrayPlan	plan;
	instr_time	start;
	uint64		rows = 0;

	INSTR_TIME_SET_CURRENT(start);
	check_stack_depth();
	if (whereToSendOutput != DestRemote || MyProcPort == NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("COPY with format dray needs a client connection")));

	context = AllocSetContextCreate(CurrentMemoryContext, "dray copy", ALLOCSET_DEFAULT_SIZES);
	caller_context = MemoryContextSwitchTo(context);

	pstate = make_parsestate(NULL);
	pstate->p_sourcetext = source;
	pstate->p_queryEnv = environment;
	dray_read_options(pstate, stmt->options, params, &options);
	plan = dray_plan_copy(pstate, stmt, pstmt->stmt_location, pstmt->stmt_len, options.parameters);
	dray_choose_congestion_control();
	PG_TRY();
	{
		rows = run_plan(plan, &options, source, start);
	}
	PG_FINALLY();
	{
		stop_threads();
		dray_restore_congestion_control();
	}
	PG_END_TRY();
	free_parsestate(pstate);

	MemoryContextSwitchTo(caller_context);
	MemoryContextDelete(context);
	if (completion != NULL)
		SetQueryCompletion(completion, CMDTAG_COPY, rows);
}

static void
process_utility(PlannedStmt *pstmt, const char *source, bool read_only_tree,
				ProcessUtilityContext context, ParamListInfo params, QueryEnvironment *environment,
				DestReceiver *dest, QueryCompletion *completion)
{
	if (IsA(pstmt->utilityStmt, CopyStmt) && dray_is_asked_for((CopyStmt *) pstmt->utilityStmt))
	{
		/* Parse analysis modifies the tree, which may belong to a cached plan. */
		CopyStmt   *stmt = copyObject((CopyStmt *) pstmt->utilityStmt);

		run_copy(pstmt, stmt, source, params, environment, completion);
	}
	else if (previous_hook != NULL)
		previous_hook(pstmt, source, read_only_tree, context, params, environment, dest,
					  completion);
	else
		standard_ProcessUtility(pstmt, source, read_only_tree, context, params, environment, dest,
								completion);
}

void
dray_install_hook(void)
{
	previous_hook = ProcessUtility_hook;
	ProcessUtility_hook = process_utility;
}
