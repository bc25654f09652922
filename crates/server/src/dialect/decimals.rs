//! Number literals that are decimals, because no 64-bit number represents all their digits.

use datafusion::sql::sqlparser::ast::{
    CastKind, DataType, ExactNumberInfo, Expr, Value, ValueWithSpan,
};

/// Significant digits that a 64-bit float represents exactly.
const FLOAT_DIGITS: usize = 15;
/// Maximum precision of the engine's decimals.
const DECIMAL_DIGITS_MAX: usize = 76;

/// A number as a decimal, if neither a 64-bit integer nor a 64-bit float represents all its digits.
pub(super) fn beyond_binary(number: &str) -> Option<Expr> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let is_plain = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_digit());
    if !is_plain(whole)
        || !is_plain(fraction)
        || (!number.contains('.') && number.parse::<u64>().is_ok())
    {
        return None;
    }
    let whole = whole.trim_start_matches('0');
    let significant = match whole.is_empty() {
        true => fraction.trim_start_matches('0').len(),
        false => whole.len() + fraction.len(),
    };
    let digits = whole.len() + fraction.len();
    (significant > FLOAT_DIGITS && digits <= DECIMAL_DIGITS_MAX)
        .then(|| decimal(number, digits, fraction.len()))
}

/// The number after a minus as a decimal, if its negative is below the lowest 64-bit integer.
pub(super) fn beyond_negative(expr: Expr) -> Expr {
    match &expr {
        Expr::Value(ValueWithSpan { value: Value::Number(number, _), .. })
            if number.parse::<u64>().is_ok_and(|number| number > i64::MIN.unsigned_abs()) =>
        {
            decimal(number, number.len(), 0)
        }
        _ => expr,
    }
}

fn decimal(number: &str, digits: usize, scale: usize) -> Expr {
    let info = ExactNumberInfo::PrecisionAndScale(digits as u64, scale as i64);
    Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(Expr::Value(Value::SingleQuotedString(number.to_owned()).into())),
        data_type: DataType::Decimal(info),
        array: false,
        format: None,
    }
}
