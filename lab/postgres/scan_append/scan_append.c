/*
 * Measures how long a backend takes to scan a result and append its values to columns without
 * sending anything: a lower bound for the transfer of the same result.
 *
 *     executor --slot--> receive() --deform--> values --append--> one buffer per column, which is
 *                                                                 reused when it is full
 *
 * Columns have Arrow's layout: values of fixed width, declared decimals as scaled integers of 8 or
 * 16 bytes, text as bytes and end offsets, and validity bits. Types whose form in memory differs
 * from that on the wire (undeclared numeric, arrays, jsonb …) are copied as they are in memory,
 * which a real transfer could not do.
 *
 *     CREATE FUNCTION lab_scan_append(query text, append boolean, OUT rows bigint,
 *         OUT bytes bigint, OUT seconds double precision)
 *         AS '…/scan_append' LANGUAGE c STRICT;
 */
#include "postgres.h"

#include "access/htup_details.h"
#include "catalog/pg_type.h"
#include "executor/spi.h"
#include "executor/tuptable.h"
#include "fmgr.h"
#include "funcapi.h"
#include "portability/instr_time.h"
#include "tcop/dest.h"
#include "utils/builtins.h"

PG_MODULE_MAGIC;

/* About as much of a column as a chunk holds, so that caches and page faults are comparable. */
#define COLUMN_BYTES ((Size) 1024 * 1024)
#define CHUNK_ROWS ((int) (COLUMN_BYTES / sizeof(int128)))
#define VALIDITY_BYTES (CHUNK_ROWS / 8)

/* The most digits of a decimal that fit 64 and 128 bits. */
#define INT64_DIGITS 18
#define INT128_DIGITS 38
/*
 * The digits of a group of PostgreSQL's numeric, and the bits of its header. No installed header
 * file declares them.
 */
#define GROUP_DIGITS 4
#define GROUP_BASE 10000
#define NUMERIC_SIGN_MASK 0xC000
#define NUMERIC_NEGATIVE 0x4000
#define NUMERIC_SHORT 0x8000
#define NUMERIC_SPECIAL 0xC000
#define NUMERIC_SHORT_NEGATIVE 0x2000
#define NUMERIC_SHORT_WEIGHT_SIGN 0x0040
#define NUMERIC_SHORT_WEIGHT 0x003F

typedef enum Form
{
	FORM_BYVAL,					/* 1, 2, 4 or 8 bytes in the datum */
	FORM_FIXED,					/* `width` bytes that the datum points to */
	FORM_DECIMAL64,
	FORM_DECIMAL128,
	FORM_TEXT					/* a varlena, or a cstring */
} Form;

typedef struct Column
{
	Form		form;
	int			width;
	int			scale;
	char	   *values;
	Size		used;
	uint8	   *validity;
	int32	   *ends;
} Column;

/*
 * A stored numeric: groups of four digits. The value of the first group is multiplied by 10,000 to
 * the power of the weight.
 */
typedef struct Decimal
{
	const char *groups;
	int			group_count;
	int			weight;
	bool		negative;
} Decimal;

typedef struct Receiver
{
	DestReceiver pub;
	bool		append;
	uint64		rows;
	uint64		bytes;			/* of buffers that have been emptied */
	int			column_count;
	int			chunk_rows;		/* rows in the buffers */
	int			chunk_rows_max;
	Column	   *columns;
} Receiver;

PG_FUNCTION_INFO_V1(lab_scan_append);

static bool receive(TupleTableSlot *slot, DestReceiver *self);
static void start_up(DestReceiver *self, int operation, TupleDesc descriptor);
static void shut_down(DestReceiver *self);
static void destroy(DestReceiver *self);
static void describe(Column *column, Form_pg_attribute attribute);
static void append_value(Receiver *receiver, Column *column, Datum value);
static void empty_columns(Receiver *receiver);

Datum
lab_scan_append(PG_FUNCTION_ARGS)
{
	char	   *query = text_to_cstring(PG_GETARG_TEXT_PP(0));
	Receiver	receiver = {
		.pub = {
			.receiveSlot = receive,
			.rStartup = start_up,
			.rShutdown = shut_down,
			.rDestroy = destroy,
			/* With DestNone, SPI would treat the query as a utility statement. */
			.mydest = DestCopyOut,
		},
		.append = PG_GETARG_BOOL(1),
	};
	SPIExecuteOptions options = {
		.read_only = true,
		.must_return_tuples = true,
		.dest = &receiver.pub,
	};
	instr_time	start,
				end;
	TupleDesc	descriptor;
	Datum		values[3];
	bool		nulls[3] = {false, false, false};
	int			code;

	if (get_call_result_type(fcinfo, NULL, &descriptor) != TYPEFUNC_COMPOSITE)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("lab_scan_append must be declared with three OUT parameters")));
	descriptor = BlessTupleDesc(descriptor);

	SPI_connect();
	INSTR_TIME_SET_CURRENT(start);
	code = SPI_execute_extended(query, &options);
	INSTR_TIME_SET_CURRENT(end);
	INSTR_TIME_SUBTRACT(end, start);
	if (code != SPI_OK_SELECT)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("lab_scan_append expects one SELECT, the query was %s",
						SPI_result_code_string(code))));
	SPI_finish();

	values[0] = Int64GetDatum((int64) receiver.rows);
	values[1] = Int64GetDatum((int64) receiver.bytes);
	values[2] = Float8GetDatum(INSTR_TIME_GET_DOUBLE(end));
	PG_RETURN_DATUM(HeapTupleGetDatum(heap_form_tuple(descriptor, values, nulls)));
}

static bool
receive(TupleTableSlot *slot, DestReceiver *self)
{
	Receiver   *receiver = (Receiver *) self;
	int			row;

	slot_getallattrs(slot);
	receiver->rows++;
	if (!receiver->append)
		return true;

	if (receiver->chunk_rows == receiver->chunk_rows_max)
		empty_columns(receiver);
	row = receiver->chunk_rows++;
	for (int i = 0; i < receiver->column_count; i++)
	{
		Column	   *column = &receiver->columns[i];

		if (!slot->tts_isnull[i])
			append_value(receiver, column, slot->tts_values[i]);
		else
		{
			column->validity[row >> 3] &= ~(1 << (row & 7));
			if (column->form != FORM_TEXT)
			{
				/* A missing value takes space in Arrow, too. */
				memset(column->values + column->used, 0, column->width);
				column->used += column->width;
			}
		}
		if (column->form == FORM_TEXT)
			column->ends[row] = (int32) column->used;
	}
	return true;
}

/*
 * The widest column of fixed width limits the rows of a chunk. A full buffer of text is emptied by
 * itself.
 */
static void
start_up(DestReceiver *self, int operation, TupleDesc descriptor)
{
	Receiver   *receiver = (Receiver *) self;

	receiver->column_count = descriptor->natts;
	receiver->chunk_rows_max = CHUNK_ROWS;
	if (!receiver->append)
		return;
	receiver->columns = palloc0(sizeof(Column) * descriptor->natts);
	for (int i = 0; i < descriptor->natts; i++)
	{
		Column	   *column = &receiver->columns[i];

		describe(column, TupleDescAttr(descriptor, i));
		if (column->form != FORM_TEXT && column->width > (int) sizeof(int128))
			receiver->chunk_rows_max = Min(receiver->chunk_rows_max,
										   (int) (COLUMN_BYTES / column->width));
		column->values = palloc(COLUMN_BYTES);
		column->validity = palloc(VALIDITY_BYTES);
		memset(column->validity, 0xFF, VALIDITY_BYTES);
		if (column->form == FORM_TEXT)
			column->ends = palloc(sizeof(int32) * CHUNK_ROWS);
	}
}

/* Counts the bytes that are left in the columns, while their memory context still exists. */
static void
shut_down(DestReceiver *self)
{
	Receiver   *receiver = (Receiver *) self;

	if (receiver->append)
		empty_columns(receiver);
}

static void
destroy(DestReceiver *self)
{
}

static void
describe(Column *column, Form_pg_attribute attribute)
{
	int32		typmod = attribute->atttypmod - VARHDRSZ;
	int			precision = (typmod >> 16) & 0xFFFF;
	int			scale = typmod & 0x7FF;

	column->width = attribute->attlen;
	if (attribute->atttypid == NUMERICOID && typmod >= 0 &&
		precision <= INT128_DIGITS && scale <= precision)
	{
		column->form = precision <= INT64_DIGITS ? FORM_DECIMAL64 : FORM_DECIMAL128;
		column->width = precision <= INT64_DIGITS ? sizeof(int64) : sizeof(int128);
		column->scale = scale;
	}
	else if (attribute->attlen < 0)
	{
		column->form = FORM_TEXT;
		column->width = attribute->attlen;
	}
	else
		column->form = attribute->attbyval ? FORM_BYVAL : FORM_FIXED;
}

/* Finds the digits behind a short or a long header, as in PostgreSQL's `numeric.c`. */
static Decimal
parse_decimal(struct varlena *value)
{
	const char *bytes = VARDATA_ANY(value);
	Size		length = VARSIZE_ANY_EXHDR(value);
	Decimal		decimal;
	uint16		header;

	memcpy(&header, bytes, sizeof(header));
	if ((header & NUMERIC_SIGN_MASK) == NUMERIC_SPECIAL)
		ereport(ERROR,
				(errcode(ERRCODE_NUMERIC_VALUE_OUT_OF_RANGE),
				 errmsg("lab_scan_append expects finite decimals, found NaN or infinity")));
	if ((header & NUMERIC_SIGN_MASK) == NUMERIC_SHORT)
	{
		decimal.negative = (header & NUMERIC_SHORT_NEGATIVE) != 0;
		decimal.weight = header & NUMERIC_SHORT_WEIGHT;
		if (header & NUMERIC_SHORT_WEIGHT_SIGN)
			decimal.weight -= NUMERIC_SHORT_WEIGHT + 1;
		decimal.groups = bytes + sizeof(uint16);
		decimal.group_count = (length - sizeof(uint16)) / sizeof(int16);
	}
	else
	{
		int16		weight;

		decimal.negative = (header & NUMERIC_SIGN_MASK) == NUMERIC_NEGATIVE;
		memcpy(&weight, bytes + sizeof(uint16), sizeof(weight));
		decimal.weight = weight;
		decimal.groups = bytes + 2 * sizeof(uint16);
		decimal.group_count = (length - 2 * sizeof(uint16)) / sizeof(int16);
	}
	return decimal;
}

/* The group at a power of 10,000. Groups of zeros at both ends are not stored. */
static inline int
group_at(const Decimal *decimal, int power)
{
	int			index = decimal->weight - power;
	int16		group = 0;

	if (index >= 0 && index < decimal->group_count)
		memcpy(&group, decimal->groups + sizeof(int16) * index, sizeof(group));
	return group;
}

/*
 * A decimal times ten to the power of its declared scale: the groups before the point, then those
 * after it up to the scale. The type guarantees that no digit lies beyond it. There is one function
 * for each width, because a 128-bit multiplication costs three.
 */
#define DEFINE_SCALED(name, integer) \
static inline integer \
name(struct varlena *value, int scale) \
{ \
	Decimal		decimal = parse_decimal(value); \
	integer		unscaled = 0; \
\
	for (int power = decimal.weight; power >= 0; power--) \
		unscaled = unscaled * GROUP_BASE + group_at(&decimal, power); \
	for (int power = -1; scale > 0; power--, scale -= GROUP_DIGITS) \
	{ \
		int			group = group_at(&decimal, power); \
\
		switch (scale) \
		{ \
			case 1: \
				unscaled = unscaled * 10 + group / 1000; \
				break; \
			case 2: \
				unscaled = unscaled * 100 + group / 100; \
				break; \
			case 3: \
				unscaled = unscaled * 1000 + group / 10; \
				break; \
			default: \
				unscaled = unscaled * GROUP_BASE + group; \
		} \
	} \
	return decimal.negative ? -unscaled : unscaled; \
}

DEFINE_SCALED(scaled_int64, int64)
DEFINE_SCALED(scaled_int128, int128)

static void
append_value(Receiver *receiver, Column *column, Datum value)
{
	char	   *end = column->values + column->used;

	switch (column->form)
	{
		case FORM_BYVAL:
			store_att_byval(end, value, column->width);
			column->used += column->width;
			break;

		case FORM_FIXED:
			memcpy(end, DatumGetPointer(value), column->width);
			column->used += column->width;
			break;

		case FORM_DECIMAL64:
		case FORM_DECIMAL128:
			{
				struct varlena *packed = PG_DETOAST_DATUM_PACKED(value);

				if (column->form == FORM_DECIMAL64)
				{
					int64		unscaled = scaled_int64(packed, column->scale);

					memcpy(end, &unscaled, sizeof(unscaled));
				}
				else
				{
					int128		unscaled = scaled_int128(packed, column->scale);

					memcpy(end, &unscaled, sizeof(unscaled));
				}
				column->used += column->width;
				if ((Pointer) packed != DatumGetPointer(value))
					pfree(packed);
				break;
			}

		case FORM_TEXT:
			{
				bool		is_varlena = column->width == -1;
				struct varlena *packed = is_varlena ? PG_DETOAST_DATUM_PACKED(value) : NULL;
				const char *bytes = is_varlena ? VARDATA_ANY(packed) : DatumGetCString(value);
				Size		length = is_varlena ? VARSIZE_ANY_EXHDR(packed) : strlen(bytes);

				if (column->used + length > COLUMN_BYTES)
				{
					receiver->bytes += column->used;
					column->used = 0;
				}
				if (length > COLUMN_BYTES)
					receiver->bytes += length;	/* longer than the buffer: counted, not copied */
				else
				{
					memcpy(column->values + column->used, bytes, length);
					column->used += length;
				}
				if (packed != NULL && (Pointer) packed != DatumGetPointer(value))
					pfree(packed);
				break;
			}
	}
}

static void
empty_columns(Receiver *receiver)
{
	Size		validity_bytes = (receiver->chunk_rows + 7) / 8;

	for (int i = 0; i < receiver->column_count; i++)
	{
		Column	   *column = &receiver->columns[i];

		receiver->bytes += column->used + validity_bytes;
		if (column->form == FORM_TEXT)
			receiver->bytes += sizeof(int32) * receiver->chunk_rows;
		column->used = 0;
		memset(column->validity, 0xFF, validity_bytes);
	}
	receiver->chunk_rows = 0;
}
