//! Parses a statement within limits on its length, its depth and the parser's steps.
//!
//! The parser limits its own recursion, but not the depth of the tree that it returns (`1 + 1 + 1
//! …` is as deep as it is long), nor its steps: after a failed attempt it backtracks, and each
//! nested `CAST` doubles the work.

use std::cell::Cell;
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use datafusion::common::{DataFusionError, Result};
use datafusion::execution::session_state::SessionState;
use datafusion::sql::parser::{DFParserBuilder, Statement};
use datafusion::sql::sqlparser::ast::{
    Expr, GroupByExpr, GroupByWithModifier, Query, Select, TableFactor, Visit, Visitor,
};
use datafusion::sql::sqlparser::dialect::GenericDialect;
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::ParserError;
use datafusion::sql::sqlparser::tokenizer::{Token, TokenWithSpan, Tokenizer};

use crate::dialect::operators::Operators;

use super::{DEPTH_MAX, OPERATORS_MAX, Planning};

const TEXT_BYTES_MAX: usize = 2 << 20;
/// Tokens other than whitespace.
const TOKENS_MAX: usize = 250_000;
/// Maximum nesting depth of brackets, and of types.
const BRACKETS_MAX: usize = 200;
const TYPES_MAX: usize = 64;
/// Maximum number of `EXPLAIN`.
const EXPLAINS_MAX: usize = 4;
const QUERIES_MAX: usize = 1_000;
/// As in PostgreSQL: a `CUBE` of twelve columns.
const GROUPING_SETS_MAX: usize = 4_096;
const TABLES_MAX: usize = 500;
/// Maximum number of columns of all joins together, estimated from the number of tables and the
/// widest one: a join has the columns of all tables before it.
const COLUMNS_MAX: usize = 20_000_000;
/// Maximum number of steps of the parser: a constant, and more for each token.
const STEPS_MAX: usize = 1_000;
const STEPS_PER_TOKEN: usize = 20;
/// Steps between two checks for a cancel.
const STEPS_PER_CHECK: usize = 1024;
/// How much of the planner's stack the parser may use.
const STACK_BYTES_MAX: usize = 24 << 20;

/// Parses a statement.
pub(crate) async fn parse(
    state: &SessionState,
    sql: &str,
    planning: &Arc<Planning>,
) -> Result<Statement> {
    if sql.len() > TEXT_BYTES_MAX {
        return Err(planning
            .too_complex(format!("a statement of {} bytes, at most {TEXT_BYTES_MAX}", sql.len())));
    }
    let tokens =
        Tokenizer::new(&GenericDialect, sql).tokenize_with_location().map_err(ParserError::from)?;
    let count = TokenCounter::count(&tokens).map_err(|what| planning.too_complex(what))?;
    let statement = parse_tokens(state, tokens, count, planning)?;
    let mut size = TreeSize::default();
    if let ControlFlow::Break(what) = size.add(&statement) {
        return Err(planning.too_complex(what));
    }
    if size.tables > 1 {
        let widest = widest(state, &statement).await?.max(size.columns);
        if (size.tables.pow(2) / 2).saturating_mul(widest) > COLUMNS_MAX {
            let what = format!(
                "{} tables of up to {widest} columns are too many for one statement",
                size.tables
            );
            return Err(planning.too_complex(what));
        }
    }
    Ok(statement)
}

/// Parses tokens that must be one statement.
fn parse_tokens(
    state: &SessionState,
    tokens: Vec<TokenWithSpan>,
    count: usize,
    planning: &Arc<Planning>,
) -> Result<Statement> {
    let dialect = Operators { bounds: Bounds::new(planning, count) };
    let parsed = DFParserBuilder::new(tokens)
        .with_dialect(&dialect)
        .with_recursion_limit(state.config_options().sql_parser.recursion_limit.get())
        .build()
        .and_then(|mut parser| parser.parse_statements());
    if dialect.bounds.exceeded.get() {
        // The parser's own error says nothing useful.
        planning.check()?;
        return Err(
            planning.too_complex("the statement is nested too deeply to be parsed".to_owned())
        );
    }
    let mut statements = parsed?;
    match (statements.pop_front(), statements.len()) {
        (Some(statement), 0) => Ok(statement),
        (None, _) => Err(DataFusionError::Plan("expected a statement, found none".to_owned())),
        (_, more) => {
            Err(DataFusionError::Plan(format!("expected one statement, found {}", more + 1)))
        }
    }
}

/// Counts the tokens of a text, and what is open at the current one.
#[derive(Default)]
struct TokenCounter {
    count: usize,
    /// Open brackets of all kinds but angles.
    open: usize,
    /// Open angles of types: `ARRAY<`.
    angles: usize,
    /// Consecutive `[]`, as in `INT[][]`.
    pairs: usize,
    explains: usize,
    /// Whether a function is called that takes a type as text.
    has_type_text: bool,
    /// The deepest nesting of brackets in a string.
    string_depth: usize,
}

impl TokenCounter {
    /// The number of tokens, or which limit they exceed.
    fn count(tokens: &[TokenWithSpan]) -> std::result::Result<usize, String> {
        let mut counter = Self::default();
        let mut before = &Token::EOF;
        for TokenWithSpan { token, .. } in tokens {
            if !matches!(token, Token::Whitespace(_)) {
                counter.add(before, token)?;
                before = token;
            }
        }
        // The parser of types given as text recurses.
        if counter.has_type_text && counter.string_depth > TYPES_MAX {
            return Err(format!(
                "a type is nested {} deep, at most {TYPES_MAX}",
                counter.string_depth
            ));
        }
        Ok(counter.count)
    }

    fn add(&mut self, before: &Token, token: &Token) -> std::result::Result<(), String> {
        self.count += 1;
        match token {
            Token::LParen | Token::LBracket | Token::LBrace => self.open += 1,
            Token::RBracket if *before == Token::LBracket => {
                self.open = self.open.saturating_sub(1);
                self.pairs += 1;
            }
            Token::RParen | Token::RBracket | Token::RBrace => {
                self.open = self.open.saturating_sub(1)
            }
            Token::Lt if is_nesting_type(before) => self.angles += 1,
            Token::Gt => self.angles = self.angles.saturating_sub(1),
            Token::ShiftRight => self.angles = self.angles.saturating_sub(2),
            Token::Word(word) if word.keyword == Keyword::EXPLAIN => self.explains += 1,
            Token::Word(word) => {
                self.has_type_text |= word.value.to_ascii_lowercase().starts_with("arrow_")
            }
            Token::SingleQuotedString(text) => {
                self.string_depth = self.string_depth.max(bracket_depth(text))
            }
            _ => {}
        }
        match token {
            Token::LBracket | Token::RBracket => {}
            _ => self.pairs = 0,
        }
        let too_many = |count: usize, max: usize, what: &str| {
            (count > max).then(|| format!("{what}, at most {max}"))
        };
        let refused = too_many(self.count, TOKENS_MAX, "the statement has too many tokens")
            .or_else(|| too_many(self.open, BRACKETS_MAX, "brackets are nested too deeply"))
            .or_else(|| {
                too_many(self.angles.max(self.pairs), TYPES_MAX, "a type is nested too deeply")
            })
            .or_else(|| too_many(self.explains, EXPLAINS_MAX, "too many EXPLAIN"));
        refused.map_or(Ok(()), Err)
    }
}

/// Whether an angle after this token opens the parameters of a type.
fn is_nesting_type(word: &Token) -> bool {
    matches!(word, Token::Word(word) if matches!(word.keyword, Keyword::ARRAY | Keyword::STRUCT))
}

/// How deep brackets are nested in a string.
fn bracket_depth(text: &str) -> usize {
    let mut open = 0usize;
    let depths = text.bytes().map(|byte| {
        match byte {
            b'(' | b'<' | b'[' => open += 1,
            b')' | b'>' | b']' => open = open.saturating_sub(1),
            _ => {}
        }
        open
    });
    depths.max().unwrap_or(0)
}

/// The size of the visited part of a statement's tree.
#[derive(Default)]
struct TreeSize {
    depth: usize,
    queries: usize,
    tables: usize,
    /// The columns of the widest query.
    columns: usize,
    /// The queries and tables of each open query. Those of a `WITH` query count as often as it is
    /// named.
    expanded: Vec<usize>,
    /// The names of `WITH` queries, by their address in the tree.
    with_names: HashMap<usize, String>,
    /// The queries and tables that each `WITH` query expands to.
    with_sizes: HashMap<String, usize>,
}

impl TreeSize {
    fn add(&mut self, statement: &Statement) -> ControlFlow<String> {
        match statement {
            Statement::Statement(statement) => statement.visit(self),
            Statement::Explain(explain) => self.add(&explain.statement),
            // Other statements are refused later.
            _ => ControlFlow::Continue(()),
        }
    }

    /// Counts queries or tables of the innermost open query.
    fn expand(&mut self, count: usize) {
        if let Some(open) = self.expanded.last_mut() {
            *open = open.saturating_add(count);
        }
    }

    fn descend(&mut self) -> ControlFlow<String> {
        self.depth += 1;
        match self.depth > DEPTH_MAX {
            true => {
                ControlFlow::Break(format!("expressions are nested more than {DEPTH_MAX} deep"))
            }
            false => ControlFlow::Continue(()),
        }
    }
}

impl Visitor for TreeSize {
    type Break = String;

    fn pre_visit_expr(&mut self, _: &Expr) -> ControlFlow<String> {
        self.descend()
    }

    fn post_visit_expr(&mut self, _: &Expr) -> ControlFlow<String> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<String> {
        self.expanded.push(0);
        for with in query.with.iter().flat_map(|clause| &clause.cte_tables) {
            self.with_names.insert(
                std::ptr::from_ref(with.query.as_ref()).addr(),
                with.alias.name.value.to_lowercase(),
            );
        }
        self.descend()
    }

    /// The planner replaces each name of a `WITH` query by the query, and plans the expansion.
    fn post_visit_query(&mut self, query: &Query) -> ControlFlow<String> {
        debug_assert!(self.depth > 0);
        self.depth -= 1;
        let Some(count) = self.expanded.pop() else {
            return ControlFlow::Break(
                "the parser's tree ends a query that it has not begun".to_owned(),
            );
        };
        if count > OPERATORS_MAX {
            let again = "a query of WITH that is named twice is planned twice";
            return ControlFlow::Break(format!(
                "the statement has more than {OPERATORS_MAX} queries and tables: {again}"
            ));
        }
        match self.with_names.get(&std::ptr::from_ref(query).addr()) {
            Some(name) => drop(self.with_sizes.insert(name.clone(), count)),
            None => self.expand(count),
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &Select) -> ControlFlow<String> {
        self.queries += 1;
        self.expand(1);
        self.columns = self.columns.max(select.projection.len());
        let sets = grouping_sets(&select.group_by);
        if self.queries > QUERIES_MAX {
            return ControlFlow::Break(format!(
                "the statement has more than {QUERIES_MAX} queries"
            ));
        }
        if sets > GROUPING_SETS_MAX {
            return ControlFlow::Break(format!(
                "GROUP BY has more than {GROUPING_SETS_MAX} grouping sets"
            ));
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, table: &TableFactor) -> ControlFlow<String> {
        self.tables += 1;
        let size = match table {
            TableFactor::Table { name, .. } => {
                self.with_sizes.get(&name.to_string().to_lowercase().replace('"', ""))
            }
            _ => None,
        };
        self.expand(size.copied().unwrap_or(1));
        match self.tables > TABLES_MAX {
            true => {
                ControlFlow::Break(format!("the statement names more than {TABLES_MAX} tables"))
            }
            false => ControlFlow::Continue(()),
        }
    }
}

/// The number of grouping sets of a GROUP BY.
fn grouping_sets(group_by: &GroupByExpr) -> usize {
    let (GroupByExpr::All(modifiers) | GroupByExpr::Expressions(_, modifiers)) = group_by;
    let exprs = match group_by {
        GroupByExpr::All(_) => &[],
        GroupByExpr::Expressions(exprs, _) => &exprs[..],
    };
    let cube = |count: usize| u32::try_from(count).ok().and_then(|count| 1usize.checked_shl(count));
    let sets = exprs.iter().map(|expr| match expr {
        Expr::Cube(columns) => cube(columns.len()).unwrap_or(usize::MAX),
        Expr::Rollup(columns) => columns.len() + 1,
        Expr::GroupingSets(sets) => sets.len(),
        _ => 1,
    });
    let of_all = modifiers.iter().map(|modifier| match modifier {
        GroupByWithModifier::Cube => cube(exprs.len()).unwrap_or(usize::MAX),
        GroupByWithModifier::Rollup => exprs.len() + 1,
        _ => 1,
    });
    sets.chain(of_all).fold(1, usize::saturating_mul)
}

/// The number of columns of the widest table that a statement names.
async fn widest(state: &SessionState, statement: &Statement) -> Result<usize> {
    let mut widest = 0;
    for name in state.resolve_table_references(statement)? {
        let table = name.table().to_owned();
        if let Ok(schema) = state.schema_for_ref(name)
            && let Some(table) = schema.table(&table).await?
        {
            widest = widest.max(table.schema().fields().len());
        }
    }
    Ok(widest)
}

/// The limits of one run of the parser, which checks them before each expression.
#[derive(Debug)]
pub(crate) struct Bounds {
    planning: Arc<Planning>,
    /// Steps that are left.
    steps: Cell<usize>,
    /// The stack pointer at the start.
    stack: usize,
    exceeded: Cell<bool>,
}

impl Bounds {
    /// Limits for a parser that the caller runs on a text of `tokens` tokens.
    pub(crate) fn new(planning: &Arc<Planning>, tokens: usize) -> Self {
        let steps = Cell::new(STEPS_MAX + STEPS_PER_TOKEN * tokens);
        Self {
            planning: planning.clone(),
            steps,
            stack: stack_pointer(),
            exceeded: Cell::new(false),
        }
    }

    /// Counts a step. Returns whether a limit is exceeded, by this step or an earlier one.
    pub(crate) fn are_exceeded(&self) -> bool {
        let steps = self.steps.get();
        let stopped = || steps.is_multiple_of(STEPS_PER_CHECK) && self.planning.check().is_err();
        if steps == 0 || self.stack.abs_diff(stack_pointer()) > STACK_BYTES_MAX || stopped() {
            self.exceeded.set(true);
        }
        self.steps.set(steps.saturating_sub(1));
        self.exceeded.get()
    }
}

/// The approximate stack pointer.
#[inline(never)]
fn stack_pointer() -> usize {
    let here = 0u8;
    std::ptr::from_ref(std::hint::black_box(&here)).addr()
}
