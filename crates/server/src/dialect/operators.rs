//! Operator precedence as in PostgreSQL and DuckDB. The parser has a different table, and
//! exceptions.
//!
//! The numbers follow the precedence table of PostgreSQL's grammar. In addition:
//!
//! - `a IS [NOT] DISTINCT FROM b OR c` ends before the `OR`. The parser would include it.
//! - `NOT EXISTS (…) IS NULL` negates the whole. The parser would negate `EXISTS` first.
//! - `-a ^ b` is `(-a) ^ b`, and `^` is a power, not an exclusive or.
//! - `a ISNULL` and `a NOTNULL` are tests, not aliases.
//! - `a < b < c`, and a chain of `LIKE`, `IN` or `BETWEEN`, need parentheses, because databases
//!   disagree on their meaning.
//! - Numbers with more digits than a 64-bit number can represent are decimals.

use std::any::TypeId;

use datafusion::sql::sqlparser::ast::{BinaryOperator, Expr, UnaryOperator};
use datafusion::sql::sqlparser::dialect::{Dialect, GenericDialect, Precedence};
use datafusion::sql::sqlparser::keywords::Keyword;
use datafusion::sql::sqlparser::parser::{Parser, ParserError};
use datafusion::sql::sqlparser::tokenizer::{Span, Token};

use super::decimals::{beyond_binary, beyond_negative};
use crate::planning::Bounds;

const OR: u8 = 10;
/// The precedence of MySQL, since PostgreSQL has no such operator.
const XOR: u8 = 15;
const AND: u8 = 20;
const NOT: u8 = 30;
const IS: u8 = 40;
const COMPARISON: u8 = 50;
const BETWEEN: u8 = 60;
/// All other operators: `||`, `&`, `<<`, `->`, `~` and so on.
const OTHER: u8 = 70;
const SUM: u8 = 80;
const PRODUCT: u8 = 90;
const POWER: u8 = 100;
const AT_TIME_ZONE: u8 = 110;
const SIGN: u8 = 125;
const BRACKET: u8 = 130;
const CAST: u8 = 140;
const PERIOD: u8 = 200;

/// The parser's generic dialect with these operators, and limits on the parser.
#[derive(Debug)]
pub(crate) struct Operators {
    pub(crate) bounds: Bounds,
}

/// Delegates to the generic dialect. Lists only the methods whose default differs.
macro_rules! as_in_generic {
    ($($name:ident),* $(,)?) => {
        $(fn $name(&self) -> bool {
            GenericDialect.$name()
        })*
    };
}

impl Dialect for Operators {
    /// The parser treats this as the generic dialect.
    fn dialect(&self) -> TypeId {
        TypeId::of::<GenericDialect>()
    }

    fn is_delimited_identifier_start(&self, letter: char) -> bool {
        GenericDialect.is_delimited_identifier_start(letter)
    }

    fn is_identifier_start(&self, letter: char) -> bool {
        GenericDialect.is_identifier_start(letter)
    }

    fn is_identifier_part(&self, letter: char) -> bool {
        GenericDialect.is_identifier_part(letter)
    }

    as_in_generic! {
        allow_extract_custom,
        allow_extract_single_quotes,
        support_map_literal_syntax,
        supports_array_join_syntax,
        supports_array_typedef_with_brackets,
        supports_asc_desc_in_column_definition,
        supports_bitwise_shift_operators,
        supports_comma_separated_set_assignments,
        supports_comma_separated_trim,
        supports_comment_on,
        supports_comment_optimizer_hint,
        supports_connect_by,
        supports_constraint_keyword_without_name,
        supports_create_index_with_clause,
        supports_create_view_comment_syntax,
        supports_cte_without_as,
        supports_data_type_signed_suffix,
        supports_detach,
        supports_dictionary_syntax,
        supports_empty_projections,
        supports_explain_with_utility_options,
        supports_extract_comma_syntax,
        supports_filter_during_aggregation,
        supports_from_first_select,
        supports_group_by_expr,
        supports_group_by_with_modifier,
        supports_install,
        supports_interpolate,
        supports_interval_options,
        supports_key_column_option,
        supports_left_associative_joins_without_parens,
        supports_limit_by,
        supports_limit_comma,
        supports_load_extension,
        supports_match_against,
        supports_match_recognize,
        supports_multiline_comment_hints,
        supports_named_fn_args_with_assignment_operator,
        supports_nested_comments,
        supports_optimize_table,
        supports_parens_around_table_factor,
        supports_parenthesized_set_variables,
        supports_partition_by_after_order_by,
        supports_pipe_operator,
        supports_prewhere,
        supports_projection_trailing_commas,
        supports_quote_delimited_string,
        supports_select_format,
        supports_select_item_multi_column_alias,
        supports_select_wildcard_except,
        supports_select_wildcard_exclude,
        supports_select_wildcard_ilike,
        supports_select_wildcard_rename,
        supports_select_wildcard_replace,
        supports_set_names,
        supports_settings,
        supports_start_transaction_modifier,
        supports_string_escape_constant,
        supports_struct_literal,
        supports_try_convert,
        supports_unicode_string_literal,
        supports_update_order_by,
        supports_user_host_grantee,
        supports_values_as_table_factor,
        supports_window_clause_named_window_reference,
        supports_window_function_null_treatment_arg,
        supports_with_fill,
        supports_xml_expressions,
    }

    fn supports_notnull_operator(&self) -> bool {
        true
    }

    fn prec_value(&self, precedence: Precedence) -> u8 {
        match precedence {
            Precedence::Period => PERIOD,
            Precedence::DoubleColon => CAST,
            Precedence::AtTz => AT_TIME_ZONE,
            Precedence::Caret => POWER,
            Precedence::MulDivModOp => PRODUCT,
            Precedence::PlusMinus => SUM,
            Precedence::Ampersand | Precedence::Pipe | Precedence::Colon | Precedence::PgOther => {
                OTHER
            }
            Precedence::Between | Precedence::Like => BETWEEN,
            Precedence::Eq => COMPARISON,
            Precedence::Is => IS,
            Precedence::UnaryNot => NOT,
            Precedence::And => AND,
            Precedence::Xor => XOR,
            Precedence::Or => OR,
        }
    }

    fn get_next_precedence(&self, parser: &Parser) -> Option<Result<u8, ParserError>> {
        let precedence = match &parser.peek_token_ref().token {
            Token::LBracket => BRACKET,
            Token::CaretAt
            | Token::DoubleTilde
            | Token::DoubleTildeAsterisk
            | Token::ExclamationMark
            | Token::ExclamationMarkDoubleTilde
            | Token::ExclamationMarkDoubleTildeAsterisk
            | Token::ExclamationMarkTilde
            | Token::ExclamationMarkTildeAsterisk
            | Token::Sharp
            | Token::ShiftLeft
            | Token::ShiftRight
            | Token::StringConcat
            | Token::Tilde
            | Token::TildeAsterisk => OTHER,
            Token::Word(word) if word.keyword == Keyword::OPERATOR => OTHER,
            Token::Word(word)
                if word.quote_style.is_none() && word.value.eq_ignore_ascii_case("isnull") =>
            {
                IS
            }
            token if is_comparison(token) && is_quantifier(&parser.peek_nth_token_ref(1).token) => {
                OTHER
            }
            _ => return None,
        };
        Some(Ok(precedence))
    }

    fn parse_prefix(&self, parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
        if self.bounds.are_exceeded() {
            return Some(Err(ParserError::RecursionLimitExceeded));
        }
        match &parser.peek_token_ref().token {
            Token::Word(word) if word.keyword == Keyword::NOT && word.quote_style.is_none() => {
                parser.advance_token();
                Some(parser.parse_subexpr(NOT).map(negated))
            }
            Token::Minus => {
                parser.advance_token();
                Some(
                    parser
                        .parse_subexpr(SIGN)
                        .map(|expr| unary(UnaryOperator::Minus, beyond_negative(expr))),
                )
            }
            Token::Plus => {
                parser.advance_token();
                Some(parser.parse_subexpr(SIGN).map(|expr| unary(UnaryOperator::Plus, expr)))
            }
            Token::Number(number, _) => {
                let expr = beyond_binary(number)?;
                parser.advance_token();
                Some(Ok(expr))
            }
            _ => None,
        }
    }

    fn parse_infix(
        &self,
        parser: &mut Parser,
        left: &Expr,
        precedence: u8,
    ) -> Option<Result<Expr, ParserError>> {
        let token = parser.peek_token_ref();
        let at = token.span;
        match &token.token {
            Token::Caret => {
                parser.advance_token();
                Some(parser.parse_subexpr(POWER).map(|right| Expr::BinaryOp {
                    left: Box::new(left.clone()),
                    op: BinaryOperator::PGExp,
                    right: Box::new(right),
                }))
            }
            Token::Word(word) if precedence == IS && word.keyword == Keyword::IS => {
                if parser.parse_keywords(&[Keyword::IS, Keyword::DISTINCT, Keyword::FROM]) {
                    let right = parser.parse_subexpr(IS);
                    return Some(right.map(|right| {
                        Expr::IsDistinctFrom(Box::new(left.clone()), Box::new(right))
                    }));
                }
                if parser.parse_keywords(&[
                    Keyword::IS,
                    Keyword::NOT,
                    Keyword::DISTINCT,
                    Keyword::FROM,
                ]) {
                    let right = parser.parse_subexpr(IS);
                    return Some(right.map(|right| {
                        Expr::IsNotDistinctFrom(Box::new(left.clone()), Box::new(right))
                    }));
                }
                None
            }
            Token::Word(word) if precedence == IS && word.value.eq_ignore_ascii_case("isnull") => {
                parser.advance_token();
                Some(Ok(Expr::IsNull(Box::new(left.clone()))))
            }
            token if precedence == COMPARISON && is_comparison(token) && compares(left) => {
                Some(Err(ambiguous(&format!("two comparisons, the second by {token}"), at)))
            }
            token if precedence == BETWEEN && is_test(left) => {
                Some(Err(ambiguous(&format!("two tests, the second by {token}"), at)))
            }
            _ => None,
        }
    }
}

fn ambiguous(what: &str, at: Span) -> ParserError {
    let (line, column) = (at.start.line, at.start.column);
    ParserError::ParserError(format!("{what}, need parentheses at Line: {line}, Column: {column}"))
}

fn unary(op: UnaryOperator, expr: Expr) -> Expr {
    Expr::UnaryOp { op, expr: Box::new(expr) }
}

fn negated(expr: Expr) -> Expr {
    match expr {
        Expr::Exists { subquery, negated: false } => Expr::Exists { subquery, negated: true },
        expr => unary(UnaryOperator::Not, expr),
    }
}

fn is_quantifier(token: &Token) -> bool {
    matches!(
        token,
        Token::Word(word) if matches!(word.keyword, Keyword::ALL | Keyword::ANY | Keyword::SOME)
    )
}

fn is_comparison(token: &Token) -> bool {
    matches!(
        token,
        Token::Eq
            | Token::DoubleEq
            | Token::Neq
            | Token::Lt
            | Token::LtEq
            | Token::Gt
            | Token::GtEq
            | Token::Spaceship
    )
}

/// Whether an expression is a comparison without parentheses.
fn compares(expr: &Expr) -> bool {
    use BinaryOperator as By;
    matches!(
        expr,
        Expr::BinaryOp {
            op: By::Eq | By::NotEq | By::Lt | By::LtEq | By::Gt | By::GtEq | By::Spaceship,
            ..
        }
    )
}

fn is_test(expr: &Expr) -> bool {
    matches!(
        expr,
        Expr::Between { .. }
            | Expr::InList { .. }
            | Expr::InSubquery { .. }
            | Expr::InUnnest { .. }
            | Expr::Like { .. }
            | Expr::ILike { .. }
            | Expr::SimilarTo { .. }
            | Expr::RLike { .. }
    )
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests may panic")]

    use std::ops::ControlFlow;

    use datafusion::sql::sqlparser::ast::{Expr, VisitMut, VisitorMut};
    use datafusion::sql::sqlparser::parser::Parser;

    use super::Operators;
    use crate::planning::{Bounds, Planning};

    fn parsed(text: &str) -> Result<Expr, String> {
        let operators = Operators { bounds: Bounds::new(&Planning::new(), 1000) };
        let mut parser =
            Parser::new(&operators).try_with_sql(text).map_err(|cause| cause.to_string())?;
        let expr = parser.parse_expr().map_err(|cause| cause.to_string())?;
        match parser.peek_token_ref().token.to_string() {
            end if end == "EOF" => Ok(expr),
            rest => Err(format!("{rest} is left")),
        }
    }

    /// The expression without parentheses.
    fn bare(mut expr: Expr) -> Expr {
        struct Bare;
        impl VisitorMut for Bare {
            type Break = ();
            fn post_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<()> {
                if let Expr::Nested(inner) = expr {
                    *expr = inner.as_ref().clone();
                }
                ControlFlow::Continue(())
            }
        }
        let _ = VisitMut::visit(&mut expr, &mut Bare);
        expr
    }

    #[test]
    fn operators_bind_as_in_postgresql() {
        for (text, meant) in [
            ("a IS DISTINCT FROM b OR c", "(a IS DISTINCT FROM b) OR c"),
            ("a IS NOT DISTINCT FROM b AND c", "(a IS NOT DISTINCT FROM b) AND c"),
            ("a IS DISTINCT FROM b = c", "a IS DISTINCT FROM (b = c)"),
            ("NOT a IS DISTINCT FROM b", "NOT (a IS DISTINCT FROM b)"),
            ("a = b IS DISTINCT FROM c + d", "(a = b) IS DISTINCT FROM (c + d)"),
            ("a = b IS NULL", "(a = b) IS NULL"),
            ("a -> b IS NULL", "(a -> b) IS NULL"),
            ("a = b LIKE c", "a = (b LIKE c)"),
            ("a LIKE b = c", "(a LIKE b) = c"),
            ("a LIKE b || c", "a LIKE (b || c)"),
            ("a = b IN (c)", "a = (b IN (c))"),
            ("a = b BETWEEN c AND d", "a = (b BETWEEN c AND d)"),
            ("a BETWEEN b AND c = d", "(a BETWEEN b AND c) = d"),
            ("a = b ~ c", "a = (b ~ c)"),
            ("a ~ b || c", "(a ~ b) || c"),
            ("a || b + c", "a || (b + c)"),
            ("a + b || c", "(a + b) || c"),
            ("a | b & c", "(a | b) & c"),
            ("a << b + c", "a << (b + c)"),
            ("a & b = c", "(a & b) = c"),
            ("a ^ b ^ c", "(a ^ b) ^ c"),
            ("a * b ^ c", "a * (b ^ c)"),
            ("-a ^ b", "(-a) ^ b"),
            ("a ^ -b", "a ^ (-b)"),
            ("-a::int", "-(a::int)"),
            ("-a AT TIME ZONE b", "(-a) AT TIME ZONE b"),
            ("a + b AT TIME ZONE c", "a + (b AT TIME ZONE c)"),
            ("NOT a = b", "NOT (a = b)"),
            ("NOT a AND b", "(NOT a) AND b"),
            ("a = NOT b = c", "a = (NOT (b = c))"),
            ("NOT EXISTS (SELECT 1) IS NULL", "NOT (EXISTS (SELECT 1) IS NULL)"),
            ("a OR b AND c", "a OR (b AND c)"),
            ("a - b - c", "(a - b) - c"),
            ("a + b ISNULL", "(a + b) IS NULL"),
            ("a NOTNULL AND b", "(a IS NOT NULL) AND b"),
            ("a < b = ANY(c)", "a < (b = ANY(c))"),
            ("a <-1", "a < (-1)"),
        ] {
            assert_eq!(bare(parsed(text).unwrap()), bare(parsed(meant).unwrap()), "{text}");
        }
        // The comparison would notice a wrong nesting.
        assert_ne!(bare(parsed("a = (b OR c)").unwrap()), bare(parsed("a = b OR c").unwrap()));
    }

    #[test]
    fn ambiguous_chains_need_parentheses() {
        for text in [
            "a < b < c",
            "a = b = c",
            "a = b <> c",
            "a LIKE b LIKE c",
            "a IN (b) IN (c)",
            "a BETWEEN b AND c LIKE d",
        ] {
            assert!(parsed(text).unwrap_err().contains("need parentheses"), "{text}");
        }
        for text in ["(a < b) = c", "a = (b = c)", "a < b AND b < c", "(a LIKE b) LIKE c"] {
            parsed(text).unwrap();
        }
    }

    #[test]
    fn long_numbers_are_decimals() {
        for (text, meant) in [
            ("18446744073709551616", "CAST('18446744073709551616' AS DECIMAL(20,0))"),
            ("-9223372036854775809", "-CAST('9223372036854775809' AS DECIMAL(19,0))"),
            ("0.1234567890123456", "CAST('0.1234567890123456' AS DECIMAL(16,16))"),
            ("1234567890123.4567", "CAST('1234567890123.4567' AS DECIMAL(17,4))"),
        ] {
            assert_eq!(parsed(text).unwrap().to_string().replace(", ", ","), meant);
        }
        for text in [
            "18446744073709551615",
            "-9223372036854775808",
            "1.5",
            "0.001234567890123456e2",
            "1e30",
            "0.100000000000000",
        ] {
            assert_eq!(parsed(text).unwrap().to_string(), text);
        }
    }
}
