/*
 * The options of COPY ... (FORMAT dray, ...).
 */
#include "dray.h"

#include "commands/defrem.h"
#include "mb/pg_wchar.h"
#include "utils/builtins.h"
#include "utils/pg_locale.h"

#define CHUNK_BYTES_DEFAULT (1024 * 1024)
#define DECODED_BYTES_DEFAULT (64 * 1024 * 1024)
#define ROW_BYTES_DEFAULT (256 * 1024 * 1024)
#define CHUNK_ROWS_DEFAULT 65536
/* spec/protocol.md section 2 */
#define CHUNK_BYTES_MIN 4096
#define BYTES_MAX INT64CONST(4294967295)

static const char *const option_names[] = {
	"format", "chunk_bytes_max", "decoded_bytes_max", "row_bytes_max", "chunk_rows", "compression",
	"checksums", "numeric", "nonfinite", "param_types", "param_values", "param_nulls"
};

static bool
is_dray(const DefElem *option)
{
	return strcmp(option->defname, "format") == 0 && option->arg != NULL &&
		IsA(option->arg, String) && strcmp(strVal(option->arg), "dray") == 0;
}

/*
 * Whether a statement is COPY ... TO STDOUT (FORMAT dray).
 */
bool
dray_is_asked_for(const CopyStmt *stmt)
{
	ListCell   *cell;

	if (stmt->is_from || stmt->is_program || stmt->filename != NULL)
		return false;
	foreach(cell, stmt->options)
	{
		if (is_dray(lfirst_node(DefElem, cell)))
			return true;
	}
	return false;
}

static void
refuse_unknown(ParseState *pstate, DefElem *option)
{
	StringInfoData known;

	initStringInfo(&known);
	for (int i = 0; i < lengthof(option_names); i++)
		appendStringInfo(&known, "%s%s", i > 0 ? ", " : "", option_names[i]);
	ereport(ERROR,
			(errcode(ERRCODE_SYNTAX_ERROR),
			 errmsg("option \"%s\" is not known to COPY with format dray", option->defname),
			 errhint("The options are %s.", known.data),
			 parser_errposition(pstate, option->location)));
}

static uint64
read_number(ParseState *pstate, DefElem *option, int64 least, int64 most)
{
	int64		number = defGetInt64(option);

	if (number < least || number > most)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("%s is " INT64_FORMAT ", expected " INT64_FORMAT " to " INT64_FORMAT,
						option->defname, number, least, most),
				 parser_errposition(pstate, option->location)));
	return number;
}

static bool
read_checksums(ParseState *pstate, DefElem *option)
{
	char	   *text = defGetString(option);

	/* The checksums of the transport are enough: TLS and TCP have them. */
	if (strcmp(text, "auto") == 0)
		return false;
	if (strcmp(text, "on") == 0 || strcmp(text, "true") == 0)
		return true;
	if (strcmp(text, "off") == 0 || strcmp(text, "false") == 0)
		return false;
	ereport(ERROR,
			(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
			 errmsg("checksums is \"%s\", expected auto, on or off", text),
			 parser_errposition(pstate, option->location)));
}

/*
 * The words of an option: a list of them, or a single one.
 */
static List *
read_words(ParseState *pstate, DefElem *option)
{
	if (option->arg != NULL && IsA(option->arg, String))
		return list_make1(option->arg);
	if (option->arg == NULL || !IsA(option->arg, List))
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("argument to option \"%s\" must be a list of strings", option->defname),
				 parser_errposition(pstate, option->location)));
	return (List *) option->arg;
}

static int
money_scale(void)
{
	struct lconv *conventions = PGLC_localeconv();

	/* The same rule as cash_in. */
	if (conventions->frac_digits < 0 || conventions->frac_digits > 10)
		return 2;
	return conventions->frac_digits;
}

void
dray_read_options(ParseState *pstate, List *options, ParamListInfo bound, DrayOptions *out)
{
	List	   *types = NIL;
	List	   *values = NIL;
	List	   *nulls = NIL;
	List	   *seen = NIL;
	DraySettings *settings = &out->settings;
	ListCell   *cell;

	MemSet(out, 0, sizeof(*out));
	settings->chunk_bytes_max = CHUNK_BYTES_DEFAULT;
	settings->decoded_bytes_max = DECODED_BYTES_DEFAULT;
	settings->row_bytes_max = ROW_BYTES_DEFAULT;
	settings->chunk_rows = CHUNK_ROWS_DEFAULT;
	settings->compression = "auto";
	settings->numeric = "text";
	settings->nonfinite = "error";
	settings->money_scale = money_scale();
	settings->client_is_local = dray_client_is_local();
	settings->is_utf8 = GetDatabaseEncoding() == PG_UTF8;
	settings->threads = dray_encoding_threads();
	settings->socket = dray_client_socket();

	foreach(cell, options)
	{
		DefElem    *option = lfirst_node(DefElem, cell);
		const char *name = option->defname;

		if (list_member(seen, makeString(option->defname)))
			ereport(ERROR,
					(errcode(ERRCODE_SYNTAX_ERROR),
					 errmsg("option \"%s\" is given more than once", name),
					 parser_errposition(pstate, option->location)));
		seen = lappend(seen, makeString(option->defname));
		if (strcmp(name, "format") == 0)
			continue;
		else if (strcmp(name, "chunk_bytes_max") == 0)
			settings->chunk_bytes_max = read_number(pstate, option, CHUNK_BYTES_MIN, BYTES_MAX);
		else if (strcmp(name, "decoded_bytes_max") == 0)
			settings->decoded_bytes_max = read_number(pstate, option, 0, PG_INT64_MAX);
		else if (strcmp(name, "row_bytes_max") == 0)
			settings->row_bytes_max = read_number(pstate, option, CHUNK_BYTES_MIN, BYTES_MAX);
		else if (strcmp(name, "chunk_rows") == 0)
			settings->chunk_rows = read_number(pstate, option, 0, PG_INT32_MAX);
		else if (strcmp(name, "compression") == 0)
			settings->compression = defGetString(option);
		else if (strcmp(name, "checksums") == 0)
			settings->checksums = read_checksums(pstate, option);
		else if (strcmp(name, "numeric") == 0)
			settings->numeric = defGetString(option);
		else if (strcmp(name, "nonfinite") == 0)
			settings->nonfinite = defGetString(option);
		else if (strcmp(name, "param_types") == 0)
			types = read_words(pstate, option);
		else if (strcmp(name, "param_values") == 0)
			values = read_words(pstate, option);
		else if (strcmp(name, "param_nulls") == 0)
			nulls = read_words(pstate, option);
		else
			refuse_unknown(pstate, option);
	}
	if (settings->chunk_rows == 0)
		settings->chunk_rows = CHUNK_ROWS_DEFAULT;
	if (settings->row_bytes_max < settings->chunk_bytes_max)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("row_bytes_max is " UINT64_FORMAT
						", less than chunk_bytes_max, which is " UINT64_FORMAT,
						settings->row_bytes_max, settings->chunk_bytes_max)));
	out->parameters = dray_written_parameters(types, values, nulls);
	if (bound != NULL && bound->numParams > 0)
	{
		if (types != NIL || values != NIL || nulls != NIL)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("parameters are in the options, "
							"and were also bound to the statement")));
		out->parameters = dray_bound_parameters(bound);
	}
}
