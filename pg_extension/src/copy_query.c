/*
 * Planning the statement: its table or its query, with every refusal of COPY (copyto.c of
 * PostgreSQL).
 *
 * A table is read as SELECT columns FROM ONLY table, as COPY itself does under row security, and a
 * partitioned one with its partitions. So the executor checks privileges of tables and columns, and
 * the rewriter applies policies.
 */
#include "dray.h"

#include "access/htup_details.h"
#include "access/table.h"
#include "access/xact.h"
#include "catalog/objectaddress.h"
#include "catalog/pg_class.h"
#include "catalog/pg_constraint.h"
#include "miscadmin.h"
#include "nodes/makefuncs.h"
#include "parser/parse_relation.h"
#include "tcop/tcopprot.h"
#include "utils/acl.h"
#include "utils/builtins.h"
#include "utils/lsyscache.h"
#include "utils/rel.h"
#include "utils/snapmgr.h"
#include "utils/syscache.h"

static void
check_relation_kind(Relation rel)
{
	const char *name = RelationGetRelationName(rel);
	const char *kind;

	switch (rel->rd_rel->relkind)
	{
		case RELKIND_RELATION:
			return;
		case RELKIND_MATVIEW:
#if PG_VERSION_NUM >= 180000
			if (RelationIsPopulated(rel))
				return;
			ereport(ERROR,
					(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
					 errmsg("cannot copy from unpopulated materialized view \"%s\"", name),
					 errhint("Use the REFRESH MATERIALIZED VIEW command "
							 "to populate the materialized view.")));
#endif
			kind = "materialized view";
			break;
		case RELKIND_VIEW:
			kind = "view";
			break;
		case RELKIND_FOREIGN_TABLE:
			kind = "foreign table";
			break;
		case RELKIND_PARTITIONED_TABLE:
#if PG_VERSION_NUM >= 190000
			return;
#endif
			kind = "partitioned table";
			break;
		case RELKIND_SEQUENCE:
			ereport(ERROR,
					(errcode(ERRCODE_WRONG_OBJECT_TYPE),
					 errmsg("cannot copy from sequence \"%s\"", name)));
			break;
		default:
			ereport(ERROR,
					(errcode(ERRCODE_WRONG_OBJECT_TYPE),
					 errmsg("cannot copy from non-table relation \"%s\"", name)));
			return;
	}
	ereport(ERROR,
			(errcode(ERRCODE_WRONG_OBJECT_TYPE),
			 errmsg("cannot copy from %s \"%s\"", kind, name),
			 errhint("Try the COPY (SELECT ...) TO variant.")));
}

static ResTarget *
column_target(const char *name)
{
	ColumnRef  *column = makeNode(ColumnRef);
	ResTarget  *target = makeNode(ResTarget);

	column->fields = list_make1(makeString(pstrdup(name)));
	column->location = -1;
	target->val = (Node *) column;
	target->location = -1;
	return target;
}

/*
 * The columns of COPY table (columns), or all but the generated ones, as in CopyGetAttnums. Their
 * numbers are added to *numbers.
 */
static List *
column_targets(Relation rel, const List *names, Bitmapset **numbers)
{
	TupleDesc	desc = RelationGetDescr(rel);
	List	   *targets = NIL;
	List	   *seen = NIL;
	ListCell   *cell;

	if (names == NIL)
	{
		for (int i = 0; i < desc->natts; i++)
		{
			Form_pg_attribute attribute = TupleDescAttr(desc, i);

			if (!attribute->attisdropped && !attribute->attgenerated)
			{
				targets = lappend(targets, column_target(NameStr(attribute->attname)));
				*numbers = bms_add_member(*numbers, attribute->attnum);
			}
		}
		return targets;
	}
	foreach(cell, names)
	{
		char	   *name = strVal(lfirst(cell));
		int			number = InvalidAttrNumber;

		for (int i = 0; i < desc->natts; i++)
		{
			Form_pg_attribute attribute = TupleDescAttr(desc, i);

			if (attribute->attisdropped || namestrcmp(&attribute->attname, name) != 0)
				continue;
			if (attribute->attgenerated)
				ereport(ERROR,
						(errcode(ERRCODE_INVALID_COLUMN_REFERENCE),
						 errmsg("column \"%s\" is a generated column", name),
						 errdetail("Generated columns cannot be used in COPY.")));
			number = attribute->attnum;
			break;
		}
		if (number == InvalidAttrNumber)
			ereport(ERROR,
					(errcode(ERRCODE_UNDEFINED_COLUMN),
					 errmsg("column \"%s\" of relation \"%s\" does not exist",
							name, RelationGetRelationName(rel))));
		if (list_member_int(seen, number))
			ereport(ERROR,
					(errcode(ERRCODE_DUPLICATE_COLUMN),
					 errmsg("column \"%s\" specified more than once", name)));
		seen = lappend_int(seen, number);
		targets = lappend(targets, column_target(name));
		*numbers = bms_add_member(*numbers, number);
	}
	return targets;
}

/*
 * Checks that the user may select the table, or each of the columns. The executor checks that too,
 * but only after the kind of the relation has been revealed; DoCopy checks before, by these rules.
 * The functions of the executor can't be used here: their hook (pgaudit's) expects a statement that
 * the executor runs.
 */
static void
check_may_select(Relation rel, const Bitmapset *columns)
{
	Oid			relid = RelationGetRelid(rel);
	int			member = -1;
	bool		may;

	if (pg_class_aclcheck(relid, GetUserId(), ACL_SELECT) == ACLCHECK_OK)
		return;
	may = !bms_is_empty(columns) ||
		pg_attribute_aclcheck_all(relid, GetUserId(), ACL_SELECT, ACLMASK_ANY) == ACLCHECK_OK;
	while (may && (member = bms_next_member(columns, member)) >= 0)
		may = pg_attribute_aclcheck(relid, member, GetUserId(), ACL_SELECT) == ACLCHECK_OK;
	if (!may)
		aclcheck_error(ACLCHECK_NO_PRIV, get_relkind_objtype(rel->rd_rel->relkind),
					   RelationGetRelationName(rel));
}

/*
 * COPY table (columns) as a query. The lock is held until the transaction ends, so that the table
 * can't change before the planner looks it up again.
 */
static Node *
select_from_table(const CopyStmt *stmt, Oid *relid)
{
	Relation	rel = table_openrv(stmt->relation, AccessShareLock);
	SelectStmt *select = makeNode(SelectStmt);
	Bitmapset  *columns = NULL;
	RangeVar   *from;

	select->targetList = column_targets(rel, stmt->attlist, &columns);
	check_may_select(rel, columns);
	check_relation_kind(rel);
	*relid = RelationGetRelid(rel);
	from = makeRangeVar(get_namespace_name(RelationGetNamespace(rel)),
						pstrdup(RelationGetRelationName(rel)), -1);
	/* ONLY: without the tables that inherit from this one. Partitions are its own rows. */
	from->inh = rel->rd_rel->relkind == RELKIND_PARTITIONED_TABLE;
	select->fromClause = list_make1(from);
	table_close(rel, NoLock);
	return (Node *) select;
}

static Query *
only_query(List *rewritten)
{
	ListCell   *cell;
	Query	   *query;

	if (rewritten == NIL)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("DO INSTEAD NOTHING rules are not supported for COPY")));
	if (list_length(rewritten) > 1)
	{
		foreach(cell, rewritten)
		{
			Query	   *each = lfirst_node(Query, cell);

			if (each->querySource == QSRC_QUAL_INSTEAD_RULE)
				ereport(ERROR,
						(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
						 errmsg("conditional DO INSTEAD rules are not supported for COPY")));
			if (each->querySource == QSRC_NON_INSTEAD_RULE)
				ereport(ERROR,
						(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
						 errmsg("DO ALSO rules are not supported for COPY")));
		}
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("multi-statement DO INSTEAD rules are not supported for COPY")));
	}
	query = linitial_node(Query, rewritten);
	if (query->utilityStmt != NULL && IsA(query->utilityStmt, CreateTableAsStmt))
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("COPY (SELECT INTO) is not supported")));
	if (query->utilityStmt != NULL)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("COPY query must not be a utility command")));
	if (query->commandType != CMD_SELECT && query->returningList == NIL)
		ereport(ERROR,
				(errcode(ERRCODE_FEATURE_NOT_SUPPORTED),
				 errmsg("COPY query must have a RETURNING clause")));
	return query;
}

/*
 * Whether the transaction's snapshot sees this row of the catalog.
 */
static bool
is_in_snapshot(HeapTuple tuple)
{
	return !XidInMVCCSnapshot(HeapTupleHeaderGetXmin(tuple->t_data), GetTransactionSnapshot());
}

/*
 * Whether a column that is not NULL at present is so in the transaction's snapshot, too: the lock
 * came after it, and in between NULLs may have been replaced, and the constraint added.
 */
static bool
was_not_null(Oid relid, AttrNumber number)
{
	HeapTuple	tuple = SearchSysCache2(ATTNUM, ObjectIdGetDatum(relid), Int16GetDatum(number));
	bool		was = HeapTupleIsValid(tuple) && is_in_snapshot(tuple);

	if (HeapTupleIsValid(tuple))
		ReleaseSysCache(tuple);
#if PG_VERSION_NUM >= 180000
	/* Validating a constraint changes its own row alone. Tables of the catalog have none. */
	tuple = findNotNullConstraintAttnum(relid, number);
	was = was && (!HeapTupleIsValid(tuple) || is_in_snapshot(tuple));
#endif
	return was;
}

static bool
is_not_null(Relation rel, AttrNumber number)
{
	TupleDesc	desc = RelationGetDescr(rel);

#if PG_VERSION_NUM >= 180000
	/* A constraint that is not validated says nothing. */
	if (TupleDescCompactAttr(desc, number - 1)->attnullability != ATTNULLABLE_VALID)
		return false;
#else
	if (!TupleDescAttr(desc, number - 1)->attnotnull)
		return false;
#endif
	/* A snapshot of the statement's own is taken later, when the lock is held. */
	return !IsolationUsesXactSnapshot() || was_not_null(RelationGetRelid(rel), number);
}

/*
 * The columns of the result that can't be NULL. They are only looked for in a query of a single
 * table: it has no outer join, no grouping set, and no inheriting table that lacks the constraint.
 */
static Bitmapset *
columns_not_null(const Query *query, const PlannedStmt *plan)
{
	Bitmapset  *not_null = NULL;
	RangeTblEntry *entry;
	Relation	rel;
	ListCell   *cell;
	int			column = 0;

	if (query->commandType != CMD_SELECT || list_length(query->rtable) != 1 ||
		query->setOperations != NULL || query->groupingSets != NIL ||
		list_length(plan->relationOids) != 1)
		return NULL;
	entry = linitial_node(RangeTblEntry, query->rtable);
	if (entry->rtekind != RTE_RELATION || entry->relkind != RELKIND_RELATION ||
		linitial_oid(plan->relationOids) != entry->relid)
		return NULL;

	/* Parse analysis has locked the table, so its constraints stay. */
	rel = table_open(entry->relid, NoLock);
	foreach(cell, query->targetList)
	{
		TargetEntry *target = lfirst_node(TargetEntry, cell);

		if (target->resjunk)
			continue;
		if (IsA(target->expr, Var))
		{
			Var		   *var = (Var *) target->expr;

			if (var->varno == 1 && var->varlevelsup == 0 && var->varattno > 0 &&
				is_not_null(rel, var->varattno))
				not_null = bms_add_member(not_null, column);
		}
		column++;
	}
	table_close(rel, NoLock);
	return not_null;
}

DrayPlan
dray_plan_copy(ParseState *pstate, const CopyStmt *stmt, int stmt_location, int stmt_len,
			   DrayParameters parameters)
{
	RawStmt    *raw = makeNode(RawStmt);
	Oid			relid = InvalidOid;
	/*
	 * As for a Parse message: analysis fills in the types of parameters that have none, and adds
	 * parameters that the query uses beyond these.
	 */
	Oid		   *types = palloc(sizeof(Oid) * Max(parameters.count, 1));
	int			count = parameters.count;
	Query	   *query;
	Query	   *as_written;
	DrayPlan	plan;

	raw->stmt = stmt->relation != NULL ? select_from_table(stmt, &relid) : stmt->query;
	raw->stmt_location = stmt_location;
	raw->stmt_len = stmt_len;
	for (int i = 0; i < count; i++)
		types[i] = parameters.parameter[i].type;
	query = only_query(pg_analyze_and_rewrite_varparams(raw, pstate->p_sourcetext, &types, &count,
														pstate->p_queryEnv));
	/*
	 * Planning may evaluate functions. This error comes before, so that the client may still run
	 * the statement another way.
	 */
	dray_check_types(query->commandType == CMD_SELECT ? query->targetList : query->returningList);
	plan.params = dray_read_parameters(parameters, types, count);
	/* The planner modifies its input. */
	as_written = copyObject(query);
#if PG_VERSION_NUM >= 190000
	plan.stmt = pg_plan_query(query, pstate->p_sourcetext, CURSOR_OPT_PARALLEL_OK, plan.params,
							  NULL);
#else
	plan.stmt = pg_plan_query(query, pstate->p_sourcetext, CURSOR_OPT_PARALLEL_OK, plan.params);
#endif

	/* Analysis has looked the name up again, and it may be that of another table by now. */
	if (OidIsValid(relid) && !list_member_oid(plan.stmt->relationOids, relid))
		ereport(ERROR,
				(errcode(ERRCODE_OBJECT_NOT_IN_PREREQUISITE_STATE),
				 errmsg("relation referenced by COPY statement has changed")));
	plan.not_null = columns_not_null(as_written, plan.stmt);
	return plan;
}
