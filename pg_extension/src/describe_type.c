/*
 * The columns of the result and their types, from the catalog. Rust (crates/pgtypes) decides which
 * Arrow type each becomes, as it does for servers without the extension.
 */
#include "dray.h"

#include "access/htup_details.h"
#include "access/transam.h"
#include "catalog/dependency.h"
#include "catalog/pg_namespace.h"
#include "catalog/pg_type.h"
#include "commands/extension.h"
#include "mb/pg_wchar.h"
#include "miscadmin.h"
#include "nodes/nodeFuncs.h"
#include "utils/builtins.h"
#include "utils/fmgroids.h"
#include "utils/lsyscache.h"
#include "utils/memutils.h"
#include "utils/syscache.h"
#include "utils/typcache.h"

#if PG_VERSION_NUM < 160000
#include "utils/rel.h"
#endif

/*
 * The most types of a result. A composite counts with all its attributes at each mention, so a few
 * small composites can multiply to any number. This many take some 10 MB here, and as much in Rust.
 */
#define TYPES_MAX 20000

static const DrayType *describe(Oid oid, int32 typmod, uint32 *types);

static const char *
to_utf8(const char *text)
{
	return pg_server_to_any(text, strlen(text), PG_UTF8);
}

/*
 * The name of a type, independent of the search path: "integer", or "schema.name" for types that
 * are not built in.
 */
static const char *
type_name(Oid oid)
{
	const char *name = format_type_extended(oid, -1,
											FORMAT_TYPE_FORCE_QUALIFY | FORMAT_TYPE_ALLOW_INVALID);
	const char *catalog = "pg_catalog.";

	if (strncmp(name, catalog, strlen(catalog)) == 0)
		name += strlen(catalog);
	return to_utf8(name);
}

/*
 * The extension that a type belongs to, or "".
 */
static const char *
extension_name(Oid oid)
{
	Oid			extension = oid < FirstGenbkiObjectId ? InvalidOid :
		getExtensionOfObject(TypeRelationId, oid);

	/* NULL if it has been dropped meanwhile. */
	const char *name = OidIsValid(extension) ? get_extension_name(extension) : NULL;

	return name != NULL ? to_utf8(name) : "";
}

static void
set_only_member(DrayType *type, uint8 kind, Oid oid, int32 typmod, uint32 *types)
{
	DrayMember *member = palloc0(sizeof(DrayMember));

	member->name = "";
	member->type = describe(oid, typmod, types);
	type->kind = kind;
	type->members = 1;
	type->member = member;
}

/*
 * A member for each attribute that has not been dropped.
 */
static DrayMember *
describe_attributes(TupleDesc desc, uint32 *count, uint32 *types)
{
	DrayMember *members = palloc0(sizeof(DrayMember) * Max(desc->natts, 1));

	*count = 0;
	for (int i = 0; i < desc->natts; i++)
	{
		Form_pg_attribute attribute = TupleDescAttr(desc, i);

		if (attribute->attisdropped)
			continue;
		members[*count].name = to_utf8(NameStr(attribute->attname));
		members[*count].type = describe(attribute->atttypid, attribute->atttypmod, types);
		(*count)++;
	}
	return members;
}

static const DrayType *
describe(Oid oid, int32 typmod, uint32 *types)
{
	DrayType   *type;
	HeapTuple	tuple;
	Form_pg_type form;
	TupleDesc	desc;

	check_stack_depth();
	CHECK_FOR_INTERRUPTS();
	if (++*types > TYPES_MAX)
		ereport(ERROR,
				(errcode(ERRCODE_PROGRAM_LIMIT_EXCEEDED),
				 errmsg("the columns have over %d types in all, those within composites included",
						TYPES_MAX),
				 errhint("Select fewer columns, or the attributes that are needed.")));
	type = palloc0(sizeof(DrayType));
	tuple = SearchSysCache1(TYPEOID, ObjectIdGetDatum(oid));
	if (!HeapTupleIsValid(tuple))
		elog(ERROR, "cache lookup failed for type %u", oid);
	form = (Form_pg_type) GETSTRUCT(tuple);

	type->oid = oid;
	type->typmod = typmod;
	type->kind = DRAY_KIND_BASE;
	type->delimiter = form->typdelim;
	type->typalign = form->typalign;
	type->typlen = form->typlen;
	type->name = type_name(oid);
	type->extension = extension_name(oid);

	switch (form->typtype)
	{
		case TYPTYPE_BASE:
		case TYPTYPE_PSEUDO:	/* such as record[] */
			/* The typmod of an array is that of its items. */
			if (IsTrueArrayType(form))
				set_only_member(type, DRAY_KIND_ARRAY, form->typelem, typmod, types);
			break;
		case TYPTYPE_ENUM:
			type->kind = DRAY_KIND_ENUM;
			break;
		case TYPTYPE_DOMAIN:
			set_only_member(type, DRAY_KIND_DOMAIN, form->typbasetype, form->typtypmod, types);
			break;
		case TYPTYPE_COMPOSITE:
			desc = lookup_rowtype_tupdesc_copy(oid, -1);
			type->kind = DRAY_KIND_COMPOSITE;
			type->member = describe_attributes(desc, &type->members, types);
			break;
		case TYPTYPE_RANGE:
			set_only_member(type, DRAY_KIND_RANGE, get_range_subtype(oid), -1, types);
			break;
		case TYPTYPE_MULTIRANGE:
			set_only_member(type, DRAY_KIND_MULTIRANGE,
							get_range_subtype(get_multirange_range(oid)), -1, types);
			break;
		default:
			/* Other pseudo-types have at least an output function. */
			break;
	}
	if (type->kind == DRAY_KIND_ARRAY)
	{
		/* The delimiter between items is that of their own type. */
		HeapTuple	item = SearchSysCache1(TYPEOID, ObjectIdGetDatum(form->typelem));

		if (HeapTupleIsValid(item))
		{
			type->delimiter = ((Form_pg_type) GETSTRUCT(item))->typdelim;
			ReleaseSysCache(item);
		}
	}
	ReleaseSysCache(tuple);
	return type;
}

/*
 * Describes the columns of a result, which has no dropped ones. *types becomes the number of types
 * in all.
 */
DrayMember *
dray_describe_columns(TupleDesc desc, const Bitmapset *not_null, uint32 *types)
{
	uint32		count;
	DrayMember *columns;

	*types = 0;
	columns = describe_attributes(desc, &count, types);

	Assert(count == desc->natts);
	for (int i = 0; i < desc->natts; i++)
		columns[i].not_null = bms_is_member(i, not_null);
	return columns;
}

/*
 * Refuses results of too many types, before planning. Built-in types can't be too many.
 */
void
dray_check_types(const List *targets)
{
	MemoryContext context = AllocSetContextCreate(CurrentMemoryContext, "dray types",
												  ALLOCSET_DEFAULT_SIZES);
	MemoryContext caller_context = MemoryContextSwitchTo(context);
	uint32		types = 0;
	ListCell   *cell;

	foreach(cell, targets)
	{
		TargetEntry *target = lfirst_node(TargetEntry, cell);
		Oid			type = exprType((Node *) target->expr);

		if (!target->resjunk && type >= FirstNormalObjectId)
			describe(type, -1, &types);
	}
	MemoryContextSwitchTo(caller_context);
	MemoryContextDelete(context);
}
