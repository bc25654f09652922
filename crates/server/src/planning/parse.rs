//! The text of a statement: how long it may be, how deep, and how many steps the parser may take
//! for it.
//!
//! The parser bounds how deep it calls itself, but not how deep a tree it makes (`1 + 1 + 1 …` is
//! as deep as it is long), nor how often it reads the same text: where an attempt fails it goes
//! back and tries another way, and each nested `CAST` doubles that.

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
/// Names, values, operators, brackets.
const WORDS_MAX: usize = 250_000;
/// How deep brackets may be nested, and types.
const BRACKETS_MAX: usize = 200;
const TYPES_MAX: usize = 64;
/// How often a statement may say that it is to be explained.
const EXPLAINS_MAX: usize = 4;
const QUERIES_MAX: usize = 1_000;
/// As in PostgreSQL: `CUBE` of twelve columns.
const GROUPING_SETS_MAX: usize = 4_096;
const TABLES_MAX: usize = 500;
/// A join has the columns of all tables before it: so many there may be in all joins, in a row of
/// so many tables of such a width.
const COLUMNS_MAX: usize = 20_000_000;
/// The parser may take so many steps for a statement, and so many more for each of its words.
const STEPS: (usize, usize) = (1_000, 20);
/// How often it is asked whether there is still somebody who waits.
const STEPS_PER_LOOK: usize = 1024;
/// And so much of the planner's stack.
const STACK_BYTES_MAX: usize = 24 << 20;

/// Reads a statement.
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
    let words = Words::of(&tokens).map_err(|what| planning.too_complex(what))?;
    let statement = read(state, tokens, words, planning)?;
    let mut size = Size::default();
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

/// Has the parser read the one statement that there is.
fn read(
    state: &SessionState,
    tokens: Vec<TokenWithSpan>,
    words: usize,
    planning: &Arc<Planning>,
) -> Result<Statement> {
    let dialect = Operators { bounds: Bounds::new(planning, words) };
    let parsed = DFParserBuilder::new(tokens)
        .with_dialect(&dialect)
        .with_recursion_limit(state.config_options().sql_parser.recursion_limit.get())
        .build()
        .and_then(|mut parser| parser.parse_statements());
    if dialect.bounds.exceeded.get() {
        // What the parser makes of it is of no use.
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

/// The words of a text, and what is open between them.
#[derive(Default)]
struct Words {
    count: usize,
    /// Brackets of all kinds but angles.
    open: usize,
    /// Those that open a type: `ARRAY<`.
    angles: usize,
    /// `[]`, as in `INT[][]`.
    pairs: usize,
    explains: usize,
    names_types: bool,
    deepest_text: usize,
}

impl Words {
    /// How many there are.
    fn of(tokens: &[TokenWithSpan]) -> std::result::Result<usize, String> {
        let mut words = Self::default();
        let mut before = &Token::EOF;
        for TokenWithSpan { token, .. } in tokens {
            if !matches!(token, Token::Whitespace(_)) {
                words.add(before, token)?;
                before = token;
            }
        }
        // A type may be given as text, which is read by a function that calls itself.
        if words.names_types && words.deepest_text > TYPES_MAX {
            return Err(format!(
                "a type is nested {} deep, at most {TYPES_MAX}",
                words.deepest_text
            ));
        }
        Ok(words.count)
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
                self.names_types |= word.value.to_ascii_lowercase().starts_with("arrow_")
            }
            Token::SingleQuotedString(text) => {
                self.deepest_text = self.deepest_text.max(deepest(text))
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
        let refused = too_many(self.count, WORDS_MAX, "the statement has too many words")
            .or_else(|| too_many(self.open, BRACKETS_MAX, "brackets are nested too deeply"))
            .or_else(|| {
                too_many(self.angles.max(self.pairs), TYPES_MAX, "a type is nested too deeply")
            })
            .or_else(|| too_many(self.explains, EXPLAINS_MAX, "too many EXPLAIN"));
        refused.map_or(Ok(()), Err)
    }
}

/// Whether an angle behind this word opens a type's parameters.
fn is_nesting_type(word: &Token) -> bool {
    matches!(word, Token::Word(word) if matches!(word.keyword, Keyword::ARRAY | Keyword::STRUCT))
}

/// How deep brackets are nested in a text.
fn deepest(text: &str) -> usize {
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

/// What a statement's tree has so far.
#[derive(Default)]
struct Size {
    depth: usize,
    queries: usize,
    tables: usize,
    /// Of the widest query.
    columns: usize,
    /// The queries and tables of each query that is open, those of `WITH` as often as they are
    /// named.
    expanded: Vec<usize>,
    /// The names of queries of `WITH`, by their place in memory,
    steps: HashMap<usize, String>,
    /// and what they expand to.
    sizes: HashMap<String, usize>,
}

impl Size {
    fn add(&mut self, statement: &Statement) -> ControlFlow<String> {
        match statement {
            Statement::Statement(statement) => statement.visit(self),
            Statement::Explain(explain) => self.add(&explain.statement),
            // Refused later, whatever is in there.
            _ => ControlFlow::Continue(()),
        }
    }

    /// Counts queries or tables of the query that is open.
    fn expand(&mut self, count: usize) {
        if let Some(open) = self.expanded.last_mut() {
            *open = open.saturating_add(count);
        }
    }

    fn deeper(&mut self) -> ControlFlow<String> {
        self.depth += 1;
        match self.depth > DEPTH_MAX {
            true => {
                ControlFlow::Break(format!("expressions are nested more than {DEPTH_MAX} deep"))
            }
            false => ControlFlow::Continue(()),
        }
    }
}

impl Visitor for Size {
    type Break = String;

    fn pre_visit_expr(&mut self, _: &Expr) -> ControlFlow<String> {
        self.deeper()
    }

    fn post_visit_expr(&mut self, _: &Expr) -> ControlFlow<String> {
        self.depth -= 1;
        ControlFlow::Continue(())
    }

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<String> {
        self.expanded.push(0);
        for step in query.with.iter().flat_map(|with| &with.cte_tables) {
            self.steps.insert(
                std::ptr::from_ref(step.query.as_ref()).addr(),
                step.alias.name.value.to_lowercase(),
            );
        }
        self.deeper()
    }

    /// The planner puts queries of `WITH` in the places where they are named, and goes through all
    /// of what comes of it.
    fn post_visit_query(&mut self, query: &Query) -> ControlFlow<String> {
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
        match self.steps.get(&std::ptr::from_ref(query).addr()) {
            Some(name) => drop(self.sizes.insert(name.clone(), count)),
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
                self.sizes.get(&name.to_string().to_lowercase().replace('"', ""))
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

/// How many grouping sets a GROUP BY stands for.
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

/// The columns of the widest table that a statement names.
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

/// What the parser may take: it asks before each expression.
#[derive(Debug)]
pub(crate) struct Bounds {
    planning: Arc<Planning>,
    /// How many are left.
    steps: Cell<usize>,
    /// Where the stack was.
    stack: usize,
    exceeded: Cell<bool>,
}

impl Bounds {
    /// Of a parser that is called from here, for a text of so many words.
    pub(crate) fn new(planning: &Arc<Planning>, words: usize) -> Self {
        let steps = Cell::new(STEPS.0 + STEPS.1 * words);
        Self {
            planning: planning.clone(),
            steps,
            stack: stack_pointer(),
            exceeded: Cell::new(false),
        }
    }

    /// Takes a step; whether it was one too many, or one since.
    pub(crate) fn are_exceeded(&self) -> bool {
        let steps = self.steps.get();
        let stopped = || steps.is_multiple_of(STEPS_PER_LOOK) && self.planning.check().is_err();
        if steps == 0 || self.stack.abs_diff(stack_pointer()) > STACK_BYTES_MAX || stopped() {
            self.exceeded.set(true);
        }
        self.steps.set(steps.saturating_sub(1));
        self.exceeded.get()
    }
}

/// About where the stack is.
#[inline(never)]
fn stack_pointer() -> usize {
    let here = 0u8;
    std::ptr::from_ref(std::hint::black_box(&here)).addr()
}
