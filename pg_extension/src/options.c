/*
 * The options of COPY ... (FORMAT dray, ...).
 */
#include "dray.h"

#include "commands/defrem.h"
#include "fmgr.h"
#include "mb/pg_wchar.h"
#include "parser/parse_type.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/pg_locale.h"

#define CHUNK_BYTES_DEFAULT (1024 * 1024)
#define DECODED_BYTES_DEFAULT (64 * 1024 * 1024)
#define ROW_BYTES_DEFAULT (256 * 1024 * 1024)
#define CHUNK_ROWS_DEFAULT 65536
/* spec/protocol.md section 2 */
#define CHUNK_BYTES_MIN 4096
#define BYTES_MAX INT64CONST(4294967295)

static const char *const option_names[] = {
	"format", "chunk_bytes_max", "decoded_bytes_max", "row_bytes_max", "chunk_rows", "compression", "checksums",
	"numeric", "nonfinite", "param_types", "param_values", "param_nulls"
};

static bool
is_dray(const DefElem *option)
{
	return strcmp(option->defname, "format") == 0 && option->arg != NULL && IsA(option->arg, String) &&
		strcmp(strVal(option->arg), "dray") == 0;
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

	/* The transport's own are enough: TLS has them, and so do TCP and a host's memory. */
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
 * A list of words, or one word.
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

/*
 * Which parameters are NULL: their numbers, from 1.
 */
static bool *
read_nulls(const List *words, int count)
{
	bool	   *nulls = palloc0(sizeof(bool) * Max(count, 1));
	ListCell   *cell;

	foreach(cell, words)
	{
		char	   *word = strVal(lfirst(cell));
		char	   *end;
		long		number;

		errno = 0;
		number = strtol(word, &end, 10);
		if (errno != 0 || end == word || *end != '\0' || number < 1 || number > count)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("param_nulls names parameter \"%s\", expected a number from 1 to %d", word, count)));
		nulls[number - 1] = true;
	}
	return nulls;
}

/*
 * $1, $2 ...: types by name, values as their types' input functions read them.
 */
static void
read_parameters(const List *types, const List *values, const List *null_numbers, DrayOptions *out)
{
	int			count = list_length(types);
	bool	   *nulls;

	if (list_length(values) != count)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("param_types has %d parameters, param_values %d", count, list_length(values))));
	if (count > PG_INT16_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("%d parameters, expected at most %d", count, PG_INT16_MAX)));
	nulls = read_nulls(null_numbers, count);
	if (count == 0)
		return;
	out->param_count = count;
	out->param_types = palloc(sizeof(Oid) * count);
	out->params = makeParamList(count);
	for (int i = 0; i < count; i++)
	{
		ParamExternData *param = &out->params->params[i];
		char	   *text = strVal(list_nth(values, i));
		Oid			type;
		int32		typmod;
		Oid			input;
		Oid			io_param;

#if PG_VERSION_NUM >= 160000
		(void) parseTypeString(strVal(list_nth(types, i)), &type, &typmod, NULL);
#else
		parseTypeString(strVal(list_nth(types, i)), &type, &typmod, false);
#endif
		getTypeInputInfo(type, &input, &io_param);
		out->param_types[i] = type;
		param->ptype = type;
		param->pflags = PARAM_FLAG_CONST;
		param->isnull = nulls[i];
		/* Domains have constraints on NULL too. */
		param->value = OidInputFunctionCall(input, nulls[i] ? NULL : text, io_param, typmod);
	}
}

static int
money_scale(void)
{
	struct lconv *conventions = PGLC_localeconv();

	/* As cash_in has it. */
	return conventions->frac_digits < 0 || conventions->frac_digits > 10 ? 2 : conventions->frac_digits;
}

void
dray_read_options(ParseState *pstate, List *options, DrayOptions *out)
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
				 errmsg("row_bytes_max is " UINT64_FORMAT ", less than chunk_bytes_max, which is " UINT64_FORMAT,
						settings->row_bytes_max, settings->chunk_bytes_max)));
	read_parameters(types, values, nulls, out);
}
