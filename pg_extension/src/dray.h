/*
 * The C half of the PostgreSQL extension. It owns all that is PostgreSQL's: hook, executor, memory
 * contexts, errors, socket. Rust owns the bytes.
 *
 *   copy_hook.c      recognises COPY ... (FORMAT dray), and runs it
 *   copy_query.c     plans the statement, with all the refusals of COPY
 *   options.c        reads the options in parentheses
 *   parameters.c     reads the values of $1, $2 ...
 *   describe_type.c  describes the types of the result, from the catalog
 *   receiver.c       hands rows of the executor to Rust
 *   send.c           sends frames of Rust to the client
 *   threads.c        limits the threads of Rust
 *   congestion.c     sets the congestion control of the connection
 *
 * Rust never calls back. It reads two flags of the server, which ask a statement to end. C raises
 * errors only while no Rust frame is on the stack, and no panic leaves Rust. The threads of Rust
 * touch its own memory only, block all signals, and end with the stream.
 */
#ifndef DRAY_H
#define DRAY_H

#include "postgres.h"

#include <signal.h>

#include "executor/execdesc.h"
#include "nodes/bitmapset.h"
#include "nodes/params.h"
#include "nodes/parsenodes.h"
#include "nodes/plannodes.h"
#include "parser/parse_node.h"
#include "tcop/dest.h"

/* The same declarations in Rust are in rust/src/ffi.rs, with what each call must keep to. */

StaticAssertDecl(sizeof(Datum) == 8, "datums of 64 bits");
StaticAssertDecl(sizeof(bool) == 1, "bool is a byte");
StaticAssertDecl(NAMEDATALEN == 64, "names of 64 bytes");
StaticAssertDecl(MAXIMUM_ALIGNOF == 8 && ALIGNOF_DOUBLE == 8 && ALIGNOF_INT == 4 &&
				 ALIGNOF_SHORT == 2, "values on pages");
StaticAssertDecl(sizeof(sig_atomic_t) == sizeof(int), "flags of signal handlers are ints");

typedef struct DrayStream DrayStream;

typedef struct DrayError
{
	char		message[1024];
} DrayError;

/* Why an entry failed. */
#define DRAY_MEMORY (-1)
#define DRAY_LIMIT (-2)
#define DRAY_VALUE (-3)
#define DRAY_OPTION (-4)
#define DRAY_ENCODING (-5)
#define DRAY_INTERNAL (-6)
#define DRAY_INTERRUPTED (-7)

/* What a row needs next, after dray_push_row and dray_push_tuple. */
#define DRAY_DONE 0
#define DRAY_FULL 1
#define DRAY_NEEDS_DETOASTING 2
#define DRAY_NEEDS_BINARY 3
#define DRAY_NEEDS_TEXT 4
#define DRAY_NEEDS_DATUMS 5

typedef struct DraySettings
{
	uint64		chunk_bytes_max;
	uint64		decoded_bytes_max;
	uint64		row_bytes_max;
	uint64		chunk_rows;
	uint64		rows_estimate;
	uint64		plan_ns;
	const char *compression;
	const char *numeric;
	const char *nonfinite;
	int32		money_scale;
	bool		checksums;
	bool		is_utf8;
	bool		client_is_local;
	uint32		threads;
	int			socket;
} DraySettings;

/* The kinds of a DrayType. */
#define DRAY_KIND_BASE 0
#define DRAY_KIND_ENUM 1
#define DRAY_KIND_DOMAIN 2
#define DRAY_KIND_ARRAY 3
#define DRAY_KIND_COMPOSITE 4
#define DRAY_KIND_RANGE 5
#define DRAY_KIND_MULTIRANGE 6

struct DrayMember;

typedef struct DrayType
{
	Oid			oid;
	int32		typmod;
	uint8		kind;
	char		delimiter;
	char		typalign;
	int16		typlen;
	uint32		members;
	const char *name;
	const char *extension;
	const struct DrayMember *member;
} DrayType;

/* A member of a type (its base, its items, an attribute), or a column. */
typedef struct DrayMember
{
	const char *name;
	const DrayType *type;
	bool		not_null;
} DrayMember;

/* Consecutive bytes of a frame. */
typedef struct DrayPart
{
	const char *bytes;
	size_t		len;
} DrayPart;

extern void dray_init(volatile sig_atomic_t *cancel, volatile sig_atomic_t *die);
extern int32 dray_stream_open(const DraySettings *settings, const DrayMember *columns, size_t count,
							  uint32 types, DrayStream **stream, DrayError *error);
extern void dray_stream_stop(DrayStream *stream);
extern void dray_stream_close(DrayStream *stream);
extern int32 dray_push_tuple(DrayStream *stream, const char *data, const uint8 *present,
							 DrayError *error);
extern int32 dray_push_row(DrayStream *stream, const Datum *datums, const bool *nulls, size_t count,
						   uint32 *column, DrayError *error);
extern int32 dray_push_serialized(DrayStream *stream, const char *bytes, size_t len,
								  DrayError *error);
extern int32 dray_start(DrayStream *stream, const DrayPart **parts, size_t *count,
						DrayError *error);
extern int32 dray_next_chunk(DrayStream *stream, bool is_last, const DrayPart **parts,
							 size_t *count, DrayError *error);
extern int32 dray_finish(DrayStream *stream, uint64 socket_ns, uint64 total_ns,
						 const DrayPart **parts, size_t *count, DrayError *error);
#ifdef DRAY_TEST_ALLOCATOR
extern void dray_test_fail_after(size_t n);
extern bool dray_test_fail_send;
#endif

/* parameters.c */
typedef struct DrayParameter
{
	/* InvalidOid or UNKNOWNOID if the query decides. */
	Oid			type;
	int32		typmod;
	bool		isnull;
	/* The value is a C string, which is read once the type is known. */
	bool		is_text;
	Datum		value;
} DrayParameter;

typedef struct DrayParameters
{
	int			count;
	DrayParameter *parameter;
} DrayParameters;

extern DrayParameters dray_bound_parameters(ParamListInfo bound);
extern DrayParameters dray_written_parameters(const List *types, const List *values,
											  const List *null_numbers);
extern ParamListInfo dray_read_parameters(DrayParameters given, const Oid *types, int count);

/* options.c */
typedef struct DrayOptions
{
	DraySettings settings;
	DrayParameters parameters;
} DrayOptions;

extern bool dray_is_asked_for(const CopyStmt *stmt);
extern void dray_read_options(ParseState *pstate, List *options, ParamListInfo bound,
							  DrayOptions *out);

/* copy_query.c */
typedef struct DrayPlan
{
	PlannedStmt *stmt;
	ParamListInfo params;
	/* The columns that can't be NULL, by their index in the result. */
	Bitmapset  *not_null;
} DrayPlan;

extern DrayPlan dray_plan_copy(ParseState *pstate, const CopyStmt *stmt, int stmt_location,
							   int stmt_len, DrayParameters parameters);

/* describe_type.c */
extern void dray_check_types(const List *targets);
extern DrayMember *dray_describe_columns(TupleDesc desc, const Bitmapset *not_null,
										 uint32 *types);

/* receiver.c */
#ifndef pg_noreturn				/* before 18 */
#define pg_noreturn _Noreturn
#endif
typedef struct DrayReceiver
{
	DestReceiver pub;
	DrayStream *stream;
	MemoryContext row_context;
	uint64		rows;
	uint64		socket_ns;
} DrayReceiver;

extern DrayReceiver *dray_create_receiver(DrayStream *stream, TupleDesc desc);
extern void dray_send_waiting(DrayReceiver *receiver, bool is_last);
pg_noreturn extern void dray_fail(int32 code, const DrayError *error);

/* send.c */
extern bool dray_client_is_local(void);
extern int	dray_client_socket(void);
extern void dray_send_copy_out(int columns);
extern void dray_send_frame(const DrayPart *parts, size_t count);
extern void dray_send_now(void);
extern void dray_send_copy_done(void);

/* threads.c */
extern void dray_define_encoding_threads(void);
extern uint32 dray_encoding_threads(void);

/* congestion.c */
extern void dray_define_congestion_control(void);
extern void dray_choose_congestion_control(void);
extern void dray_restore_congestion_control(void);

/* copy_hook.c */
extern void dray_install_hook(void);

#endif
