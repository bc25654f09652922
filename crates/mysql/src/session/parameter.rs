//! Values of a statement's parameters, and the command that carries them.

use mysql_common::constants::ColumnType;

use super::cache::Prepared;

/// Marks the type of an integer without a sign.
const UNSIGNED: u8 = 0x80;

/// The value of a parameter.
#[derive(Debug, Clone, PartialEq)]
pub enum Parameter {
    /// NULL.
    Null,
    /// A whole number.
    Signed(i64),
    /// A whole number of 0 or more.
    Unsigned(u64),
    /// A float.
    Double(f64),
    /// A decimal number's digits.
    Decimal(String),
    /// Text, also of a date or a time.
    Text(String),
    /// The text of a timestamp in UTC, which the session's time zone must be.
    Utc(String),
    /// Bytes.
    Bytes(Vec<u8>),
}

impl Parameter {
    fn column_type(&self) -> (ColumnType, u8) {
        match self {
            Self::Null => (ColumnType::MYSQL_TYPE_NULL, 0),
            Self::Signed(_) => (ColumnType::MYSQL_TYPE_LONGLONG, 0),
            Self::Unsigned(_) => (ColumnType::MYSQL_TYPE_LONGLONG, UNSIGNED),
            Self::Double(_) => (ColumnType::MYSQL_TYPE_DOUBLE, 0),
            Self::Decimal(_) => (ColumnType::MYSQL_TYPE_NEWDECIMAL, 0),
            Self::Text(_) | Self::Utc(_) => (ColumnType::MYSQL_TYPE_VAR_STRING, 0),
            Self::Bytes(_) => (ColumnType::MYSQL_TYPE_BLOB, 0),
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Null => {}
            Self::Signed(value) => out.extend(value.to_le_bytes()),
            Self::Unsigned(value) => out.extend(value.to_le_bytes()),
            Self::Double(value) => out.extend(value.to_le_bytes()),
            Self::Decimal(text) | Self::Text(text) | Self::Utc(text) => {
                write_string(text.as_bytes(), out)
            }
            Self::Bytes(bytes) => write_string(bytes, out),
        }
    }
}

/// Appends a length-encoded string, as the binary protocol has strings.
pub fn write_string(string: &[u8], out: &mut Vec<u8>) {
    let length = string.len() as u64;
    let [a, b, c, ..] = length.to_le_bytes();
    match length {
        0..=250 => out.push(a),
        251..=0xffff => out.extend([0xfc, a, b]),
        0x1_0000..=0xff_ffff => out.extend([0xfd, a, b, c]),
        _ => {
            out.push(0xfe);
            out.extend(length.to_le_bytes());
        }
    }
    out.extend(string);
}

/// The argument of COM_STMT_EXECUTE: the statement, no cursor, one execution; which parameters are
/// NULL; their types; their values.
pub(super) fn execute(prepared: Prepared, parameters: &[Parameter]) -> Vec<u8> {
    let mut out = prepared.id.to_le_bytes().to_vec();
    out.extend([0, 1, 0, 0, 0]);
    if parameters.is_empty() {
        return out;
    }
    for eight in parameters.chunks(8) {
        let nulls = eight.iter().enumerate();
        out.push(
            nulls.fold(0, |nulls, (i, value)| nulls | u8::from(*value == Parameter::Null) << i),
        );
    }
    // The types follow.
    out.push(1);
    for parameter in parameters {
        let (column_type, flags) = parameter.column_type();
        out.extend([column_type as u8, flags]);
    }
    parameters.iter().for_each(|parameter| parameter.write(&mut out));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands() {
        let prepared = Prepared { id: 7, parameters: 2, columns: 0 };
        assert_eq!(execute(prepared, &[]), [7, 0, 0, 0, 0, 1, 0, 0, 0]);
        let parameters = [Parameter::Null, Parameter::Unsigned(3), Parameter::Text("ab".into())];
        let expected = b"\x07\0\0\0\0\x01\0\0\0\x01\x01\x06\0\x08\x80\xfd\0\
            \x03\0\0\0\0\0\0\0\x02ab";
        assert_eq!(execute(prepared, &parameters), expected);
        let nine = vec![Parameter::Null; 9];
        assert_eq!(execute(prepared, &nine)[9..12], [0xff, 1, 1]);
    }

    #[test]
    fn strings() {
        for (length, head) in [
            (250, &[250][..]),
            (251, &[0xfc, 251, 0]),
            (0x1_0000, &[0xfd, 0, 0, 1]),
            (0x100_0000, &[0xfe, 0, 0, 0, 1, 0, 0, 0, 0]),
        ] {
            let mut out = Vec::new();
            write_string(&vec![b'x'; length], &mut out);
            assert_eq!((&out[..head.len()], out.len()), (head, head.len() + length));
        }
    }
}
