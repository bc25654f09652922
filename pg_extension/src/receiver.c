/*
 * Hands rows of the executor to Rust. Rust reads the datums of common types itself. It asks for
 * what only the server can do: detoast a value, or run the send or output function of its type.
 */
#include "dray.h"

#include "access/detoast.h"
#include "access/htup_details.h"
#include "commands/progress.h"
#include "executor/tuptable.h"
#include "fmgr.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "portability/instr_time.h"
#include "utils/backend_progress.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#if PG_VERSION_NUM >= 160000
#include "varatt.h"
#endif

#define CACHE_LINE_BYTES 64

/*
 * The functions of a column's type, once they have been looked up.
 */
typedef struct DrayColumnOut
{
	Oid			type;
	bool		has_send;
	bool		has_output;
	FmgrInfo	send;
	FmgrInfo	output;
} DrayColumnOut;

typedef struct RowReceiver
{
	DrayReceiver base;
	int			natts;
	/* The values of a row, some of which have been detoasted. */
	Datum	   *detoasted;
	/* For the result of a function, one value at a time. */
	MemoryContext value_context;
	DrayColumnOut *columns;
	/* For the lookups of functions, which live longer than a row. */
	MemoryContext function_context;
	uint64		bytes;
} RowReceiver;

void
dray_fail(int32 code, const DrayError *error)
{
	const char *message = pg_any_to_server(error->message, strlen(error->message), PG_UTF8);

	switch (code)
	{
		case DRAY_MEMORY:
			ereport(ERROR,
					(errcode(ERRCODE_OUT_OF_MEMORY),
					 errmsg("out of memory"),
					 errdetail("Failed while building a chunk of columns.")));
			break;
		case DRAY_INTERRUPTED:
			CHECK_FOR_INTERRUPTS();
			/* The value has been read in part, so the statement can't go on. */
			ereport(ERROR,
					(errcode(ERRCODE_QUERY_CANCELED),
					 errmsg("canceling statement in the middle of a value")));
			break;
		case DRAY_LIMIT:
			ereport(ERROR, (errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED), errmsg("%s", message)));
			break;
		case DRAY_VALUE:
			ereport(ERROR, (errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE), errmsg("%s", message)));
			break;
		case DRAY_OPTION:
			ereport(ERROR, (errcode(ERRCODE_INVALID_PARAMETER_VALUE), errmsg("%s", message)));
			break;
		case DRAY_ENCODING:
			ereport(ERROR, (errcode(ERRCODE_CHARACTER_NOT_IN_REPERTOIRE), errmsg("%s", message)));
			break;
		default:
			ereport(ERROR, (errcode(ERRCODE_INTERNAL_ERROR), errmsg("dray: %s", message)));
	}
	pg_unreachable();
}

/*
 * Hands one value to Rust as the type's send or output function makes it, in UTF-8. Send functions
 * write text in the client's encoding, so that is set to UTF-8 while they run.
 */
static void
push_sent(RowReceiver *receiver, uint32 column, Datum value, bool as_binary)
{
	DrayColumnOut *out = &receiver->columns[column];
	MemoryContext caller_context = MemoryContextSwitchTo(receiver->function_context);
	const char *bytes;
	size_t		len;
	DrayError	error;
	int32		code;
	Oid			function;
	bool		is_varlena;

	if (as_binary && !out->has_send)
	{
		getTypeBinaryOutputInfo(out->type, &function, &is_varlena);
		fmgr_info(function, &out->send);
		out->has_send = true;
	}
	if (!as_binary && !out->has_output)
	{
		getTypeOutputInfo(out->type, &function, &is_varlena);
		fmgr_info(function, &out->output);
		out->has_output = true;
	}
	MemoryContextSwitchTo(receiver->value_context);

	if (as_binary)
	{
		int			encoding = pg_get_client_encoding();
		bytea	   *sent = NULL;

		if (encoding == PG_UTF8)
			sent = SendFunctionCall(&out->send, value);
		else
		{
			PG_TRY();
			{
				SetClientEncoding(PG_UTF8);
				sent = SendFunctionCall(&out->send, value);
			}
			PG_FINALLY();
			{
				SetClientEncoding(encoding);
			}
			PG_END_TRY();
		}
		bytes = VARDATA(sent);
		len = VARSIZE(sent) - VARHDRSZ;
	}
	else
	{
		char	   *text = OutputFunctionCall(&out->output, value);

		bytes = pg_server_to_any(text, strlen(text), PG_UTF8);
		len = strlen(bytes);
	}
	code = dray_push_serialized(receiver->base.stream, bytes, len, &error);
	if (code < 0)
		dray_fail(code, &error);
	MemoryContextSwitchTo(caller_context);
	/* After each value: a row may have many large ones. */
	MemoryContextReset(receiver->value_context);
}

/*
 * Hands over the rest of a row if Rust can't read all of its values.
 */
static int32
push_unusual_row(RowReceiver *receiver, TupleTableSlot *slot, int32 step, uint32 column)
{
	MemoryContext caller_context = MemoryContextSwitchTo(receiver->base.row_context);
	Datum	   *values = slot->tts_values;
	struct varlena *detoasted = NULL;
	uint32		detoasted_column = 0;
	DrayError	error;

	while (step > DRAY_FULL)
	{
		if (step == DRAY_NEEDS_DETOASTING)
		{
			/* The slot is the executor's, and must not be changed. */
			if (values != receiver->detoasted)
				values = memcpy(receiver->detoasted, values, sizeof(Datum) * receiver->natts);
			detoasted = detoast_attr((struct varlena *) DatumGetPointer(values[column]));
			detoasted_column = column;
			values[column] = PointerGetDatum(detoasted);
		}
		else
			push_sent(receiver, column, values[column], step == DRAY_NEEDS_BINARY);
		step = dray_push_row(receiver->base.stream, values, slot->tts_isnull, receiver->natts,
							 &column, &error);
		/* Rust may need the same value serialized. Once it is past the column, it has it. */
		if (detoasted != NULL && (step <= DRAY_FULL || column != detoasted_column))
		{
			pfree(detoasted);
			detoasted = NULL;
		}
	}
	if (step < 0)
		dray_fail(step, &error);
	MemoryContextSwitchTo(caller_context);
	MemoryContextReset(receiver->base.row_context);
	return step;
}

/*
 * The tuple of a slot, if it lies on its page, has all columns of the result, and most of them have
 * not been deformed yet. NULL otherwise.
 */
static HeapTuple
tuple_in_place(const RowReceiver *receiver, TupleTableSlot *slot)
{
	HeapTuple	tuple;

	if (!TTS_IS_BUFFERTUPLE(slot) || slot->tts_nvalid > receiver->natts / 2 ||
		slot->tts_tupleDescriptor->natts != receiver->natts)
		return NULL;
	tuple = ((BufferHeapTupleTableSlot *) slot)->base.tuple;
	/* The tuple lacks columns that were added to the table later. */
	if (tuple == NULL || HeapTupleHeaderGetNatts(tuple->t_data) < receiver->natts)
		return NULL;
	/*
	 * Prefetch the next tuple. Pages are filled from their end, so it most likely lies just before
	 * this one, and is about as long.
	 */
	for (uint32 before = CACHE_LINE_BYTES; before <= tuple->t_len; before += CACHE_LINE_BYTES)
		__builtin_prefetch((char *) tuple->t_data - before);
	return tuple;
}

static bool
receive_row(TupleTableSlot *slot, DestReceiver *self)
{
	RowReceiver *receiver = (RowReceiver *) self;
	HeapTuple	tuple = tuple_in_place(receiver, slot);
	DrayError	error;
	uint32		column;
	int32		step = DRAY_NEEDS_DATUMS;

	CHECK_FOR_INTERRUPTS();
	if (tuple != NULL)
		step = dray_push_tuple(receiver->base.stream,
							   (char *) tuple->t_data + tuple->t_data->t_hoff,
							   HeapTupleHasNulls(tuple) ? tuple->t_data->t_bits : NULL, &error);
	if (step == DRAY_NEEDS_DATUMS)
	{
		slot_getallattrs(slot);
		step = dray_push_row(receiver->base.stream, slot->tts_values, slot->tts_isnull,
							 receiver->natts, &column, &error);
	}
	if (unlikely(step < 0))
		dray_fail(step, &error);
	if (unlikely(step > DRAY_FULL))
		step = push_unusual_row(receiver, slot, step, column);
	receiver->base.rows++;
	if (unlikely(step == DRAY_FULL))
		dray_send_waiting(&receiver->base, false);
	return true;
}

/*
 * Sends the chunks that are ready, or all of them if no more rows come.
 */
void
dray_send_waiting(DrayReceiver *base, bool is_last)
{
	RowReceiver *receiver = (RowReceiver *) base;
	const DrayPart *parts;
	size_t		count;
	DrayError	error;
	int32		code;

	while ((code = dray_next_chunk(base->stream, is_last, &parts, &count, &error)) > 0)
	{
		instr_time	start;
		instr_time	end;

		INSTR_TIME_SET_CURRENT(start);
		dray_send_frame(parts, count);
		INSTR_TIME_SET_CURRENT(end);
		INSTR_TIME_SUBTRACT(end, start);
		base->socket_ns += (uint64) (INSTR_TIME_GET_MICROSEC(end)) * 1000;
		for (size_t i = 0; i < count; i++)
			receiver->bytes += parts[i].len;
		CHECK_FOR_INTERRUPTS();
	}
	if (code < 0)
		dray_fail(code, &error);
	pgstat_progress_update_param(PROGRESS_COPY_BYTES_PROCESSED, receiver->bytes);
	pgstat_progress_update_param(PROGRESS_COPY_TUPLES_PROCESSED, base->rows);
}

static void
start_receiver(DestReceiver *self, int operation, TupleDesc desc)
{
	/* The stream is open already. */
}

static void
end_receiver(DestReceiver *self)
{
	/* Everything belongs to the memory context. */
}

DrayReceiver *
dray_create_receiver(DrayStream *stream, TupleDesc desc)
{
	RowReceiver *receiver = palloc0(sizeof(RowReceiver));
	int			encoding = pg_get_client_encoding();

	if (encoding != PG_UTF8)
	{
		if (PrepareClientEncoding(PG_UTF8) < 0)
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("conversion between %s and UTF8 is not supported",
							GetDatabaseEncodingName())));
		/*
		 * A prepared conversion stays for the session. An older one is freed only when the new one
		 * is used, so use it once.
		 */
		SetClientEncoding(PG_UTF8);
		SetClientEncoding(encoding);
	}
	receiver->base.pub.receiveSlot = receive_row;
	receiver->base.pub.rStartup = start_receiver;
	receiver->base.pub.rShutdown = end_receiver;
	receiver->base.pub.rDestroy = end_receiver;
	receiver->base.pub.mydest = DestCopyOut;
	receiver->base.stream = stream;
	receiver->base.row_context =
		AllocSetContextCreate(CurrentMemoryContext, "dray row", ALLOCSET_DEFAULT_SIZES);
	receiver->value_context =
		AllocSetContextCreate(CurrentMemoryContext, "dray value", ALLOCSET_DEFAULT_SIZES);
	receiver->function_context = CurrentMemoryContext;
	receiver->natts = desc->natts;
	receiver->detoasted = palloc(sizeof(Datum) * Max(desc->natts, 1));
	receiver->columns = palloc0(sizeof(DrayColumnOut) * Max(desc->natts, 1));
	for (int i = 0; i < desc->natts; i++)
		receiver->columns[i].type = TupleDescAttr(desc, i)->atttypid;
	return &receiver->base;
}
