/*
 * The values of $1, $2 ...: from a Bind message, as for any statement, or from the options.
 *
 * The types that a query within COPY gives its parameters are not known before COPY runs. So a
 * value whose type the query decides stays text until the query has been analysed. The server has
 * converted all other values when they were bound.
 */
#include "dray.h"

#include "catalog/pg_type.h"
#include "fmgr.h"
#include "parser/parse_type.h"
#include "utils/lsyscache.h"

/*
 * The parameters of a Bind message. The type cstring marks a value that stays text.
 */
DrayParameters
dray_bound_parameters(ParamListInfo bound)
{
	DrayParameters given = {.count = bound->numParams};

	/* Only variables of functions are fetched, and no function runs a COPY to the client. */
	Assert(bound->paramFetch == NULL);
	given.parameter = palloc0(sizeof(DrayParameter) * given.count);
	for (int i = 0; i < given.count; i++)
	{
		const ParamExternData *value = &bound->params[i];
		DrayParameter *parameter = &given.parameter[i];

		parameter->is_text = value->ptype == CSTRINGOID;
		parameter->type = parameter->is_text ? InvalidOid : value->ptype;
		parameter->typmod = -1;
		parameter->isnull = value->isnull;
		parameter->value = value->value;
	}
	return given;
}

/*
 * Marks parameters as NULL. Numbers count from 1.
 */
static void
mark_nulls(DrayParameters given, const List *numbers)
{
	ListCell   *cell;

	foreach(cell, numbers)
	{
		char	   *word = strVal(lfirst(cell));
		char	   *end;
		long		number;

		errno = 0;
		number = strtol(word, &end, 10);
		if (errno != 0 || end == word || *end != '\0' || number < 1 || number > given.count)
			ereport(ERROR,
					(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
					 errmsg("param_nulls names parameter \"%s\", expected a number from 1 to %d",
							word, given.count)));
		given.parameter[number - 1].isnull = true;
	}
}

/*
 * The parameters of the options: their values as text, and the names of their types, if given.
 */
DrayParameters
dray_written_parameters(const List *types, const List *values, const List *null_numbers)
{
	DrayParameters given = {.count = list_length(values)};

	if (types != NIL && list_length(types) != given.count)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("param_types has %d parameters, param_values %d",
						list_length(types), given.count)));
	/* The limit of a Bind message. */
	if (given.count > PG_UINT16_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_INVALID_PARAMETER_VALUE),
				 errmsg("%d parameters, expected at most %d", given.count, PG_UINT16_MAX)));
	given.parameter = palloc0(sizeof(DrayParameter) * Max(given.count, 1));
	for (int i = 0; i < given.count; i++)
	{
		DrayParameter *parameter = &given.parameter[i];

		parameter->typmod = -1;
		parameter->is_text = true;
		parameter->value = CStringGetDatum(strVal(list_nth(values, i)));
		if (types == NIL)
			continue;
#if PG_VERSION_NUM >= 160000
		(void) parseTypeString(strVal(list_nth(types, i)), &parameter->type, &parameter->typmod,
							   NULL);
#else
		parseTypeString(strVal(list_nth(types, i)), &parameter->type, &parameter->typmod, false);
#endif
	}
	mark_nulls(given, null_numbers);
	return given;
}

static void
name_parameter(void *number)
{
	errcontext("parameter $%d", *(const int *) number);
}

/*
 * The parameters for the executor, with the types that analysis has found.
 */
ParamListInfo
dray_read_parameters(DrayParameters given, const Oid *types, int count)
{
	ParamListInfo params;
	ErrorContextCallback context;
	int			number;

	if (count != given.count)
		ereport(ERROR,
				(errcode(ERRCODE_PROTOCOL_VIOLATION),
				 errmsg("the statement has %d parameters, %d values were given",
						count, given.count)));
	if (count == 0)
		return NULL;
	params = makeParamList(count);
	context.previous = error_context_stack;
	context.callback = name_parameter;
	context.arg = &number;
	error_context_stack = &context;
	for (number = 1; number <= count; number++)
	{
		const DrayParameter *parameter = &given.parameter[number - 1];
		ParamExternData *param = &params->params[number - 1];

		param->ptype = types[number - 1];
		param->pflags = PARAM_FLAG_CONST;
		param->isnull = parameter->isnull;
		param->value = parameter->value;
		if (parameter->is_text)
		{
			char	   *text = parameter->isnull ? NULL : DatumGetCString(parameter->value);
			Oid			input;
			Oid			io_param;

			getTypeInputInfo(param->ptype, &input, &io_param);
			/* For NULL too: a domain may have constraints on it. */
			param->value = OidInputFunctionCall(input, text, io_param, parameter->typmod);
		}
	}
	error_context_stack = context.previous;
	return params;
}
