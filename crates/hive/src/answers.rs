//! The structs of TCLIService's answers.

use std::io::{Read, Write};

use crate::calls::{Handle, Operation};
use crate::column::TypeId;
use crate::error::{Error, Result, sentence, sqlstate_in};
use crate::thrift::{Kind, Reader};

/// The most columns of a result: fields of a schema.
const COLUMNS_MAX: usize = 65_536;
/// The longest part of a name that the server gave.
const IDENTIFIER_BYTES_MAX: usize = 1024;
const SESSION_ENDED: &str = "the server has ended the session";

/// The error of a server, in one sentence.
pub(crate) fn server_error(sqlstate: String, message: String) -> Error {
    let sqlstate = match sqlstate.as_str() {
        "" | "00000" | "HY000" => sqlstate_in(&message).map_or(sqlstate, str::to_owned),
        _ => sqlstate,
    };
    let message = match sentence(&message) {
        empty if empty.is_empty() => "the server failed without saying why".to_owned(),
        message => message,
    };
    Error::Server { sqlstate, message }
}

/// Whether a call has done what it should.
pub(crate) fn read_status<S: Read + Write>(reader: &mut Reader<'_, S>) -> Result<Result<()>> {
    let (mut code, mut sqlstate, mut message) = (None, String::new(), String::new());
    let mut cause = String::new();
    while let Some((kind, field)) = reader.field()? {
        match (kind, field) {
            (Kind::I32, 1) => code = Some(reader.i32()?),
            (Kind::List, 2) => {
                for _ in 0..reader.list(Kind::Binary)? {
                    // An exception, `*CLASS:MESSAGE:DEPTH:FRAMES`, or a line of its stack.
                    let info = reader.text()?;
                    if info.starts_with('*') {
                        cause = info;
                    }
                }
            }
            (Kind::Binary, 3) => sqlstate = reader.text()?,
            (Kind::Binary, 5) => message = reader.text()?,
            _ => reader.skip(kind)?,
        }
    }
    match code {
        // Success, with or without information, and still running.
        Some(0..=2) => Ok(Ok(())),
        // Hive and Spark have no code for a session that has ended.
        Some(4) => Ok(Err(Error::Lost(SESSION_ENDED.to_owned()))),
        Some(3) if message.contains("Invalid SessionHandle") => {
            Ok(Err(Error::Lost(SESSION_ENDED.to_owned())))
        }
        Some(3) => {
            // What Hive says of exceptions that it did not foresee.
            if message.is_empty() || message == "Error running query" {
                message = format!("{message}: {}", cause_in(&cause));
            }
            Ok(Err(server_error(sqlstate, message)))
        }
        _ => Err(Error::protocol("a status has no known code")),
    }
}

/// An exception without what tells its place.
fn cause_in(info: &str) -> &str {
    let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let mut text = info.trim_start_matches('*');
    while let Some((rest, last)) = text.rsplit_once(':')
        && is_number(last)
    {
        text = rest;
    }
    text
}

/// Reads the one struct within a struct: the field 1.
pub(crate) fn nested<S: Read + Write, T>(
    reader: &mut Reader<'_, S>,
    read: impl Fn(&mut Reader<'_, S>) -> Result<T>,
) -> Result<T> {
    let mut found = None;
    while let Some((kind, field)) = reader.field()? {
        match (kind, field) {
            (Kind::Struct, 1) => found = Some(read(reader)?),
            _ => reader.skip(kind)?,
        }
    }
    found.ok_or_else(|| Error::protocol("a name without parts"))
}

/// Passes over the rest of a struct.
pub(crate) fn end_struct<S: Read + Write>(reader: &mut Reader<'_, S>) -> Result<()> {
    while let Some((kind, _)) = reader.field()? {
        reader.skip(kind)?;
    }
    Ok(())
}

pub(crate) fn handle<S: Read + Write>(reader: &mut Reader<'_, S>) -> Result<Handle> {
    let (mut public, mut secret) = (None, None);
    while let Some((kind, field)) = reader.field()? {
        match (kind, field) {
            (Kind::Binary, 1) => public = Some(identifier(reader)?),
            (Kind::Binary, 2) => secret = Some(identifier(reader)?),
            _ => reader.skip(kind)?,
        }
    }
    match (public, secret) {
        (Some(public), Some(secret)) => Ok(Handle { public, secret }),
        _ => Err(Error::protocol("a name without its parts")),
    }
}

fn identifier<S: Read + Write>(reader: &mut Reader<'_, S>) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    match reader.length()? {
        length @ ..=IDENTIFIER_BYTES_MAX => reader.copy(length, &mut bytes)?,
        length => return Err(Error::Limit(format!("an identifier has {length} bytes"))),
    }
    Ok(bytes)
}

pub(crate) fn operation<S: Read + Write>(reader: &mut Reader<'_, S>) -> Result<Operation> {
    let (mut name, mut kind_of, mut has_rows) = (None, 0, None);
    while let Some((kind, field)) = reader.field()? {
        match (kind, field) {
            (Kind::Struct, 1) => name = Some(handle(reader)?),
            (Kind::I32, 2) => kind_of = reader.i32()?,
            (Kind::Bool, 3) => has_rows = Some(reader.bool()?),
            _ => reader.skip(kind)?,
        }
    }
    match (name, has_rows) {
        (Some(handle), Some(has_rows)) => Ok(Operation { handle, kind: kind_of, has_rows }),
        _ => Err(Error::protocol("a statement without its parts")),
    }
}

/// Reads a schema.
pub(crate) fn columns<S: Read + Write>(
    reader: &mut Reader<'_, S>,
) -> Result<Vec<(String, TypeId)>> {
    let mut columns = Vec::new();
    while let Some((kind, field)) = reader.field()? {
        match (kind, field) {
            (Kind::List, 1) => {
                let count = reader.list(Kind::Struct)?;
                if count > COLUMNS_MAX {
                    return Err(Error::Limit(format!("a result has {count} columns")));
                }
                for _ in 0..count {
                    columns.push(column(reader)?);
                }
            }
            _ => reader.skip(kind)?,
        }
    }
    Ok(columns)
}

fn column<S: Read + Write>(reader: &mut Reader<'_, S>) -> Result<(String, TypeId)> {
    let (mut name, mut declared) = (None, None);
    while let Some((kind, field)) = reader.field()? {
        match (kind, field) {
            (Kind::Binary, 1) => name = Some(reader.name()?),
            (Kind::Struct, 2) => declared = Some(type_of(reader)?),
            _ => reader.skip(kind)?,
        }
    }
    match (name, declared) {
        (Some(name), Some(declared)) => Ok((name, declared)),
        _ => Err(Error::protocol("a column without its name or its type")),
    }
}

/// The type of a column: the first of its entries. The others are those within it, whose values
/// come as text.
fn type_of<S: Read + Write>(reader: &mut Reader<'_, S>) -> Result<TypeId> {
    let mut found = None;
    while let Some((kind, field)) = reader.field()? {
        match (kind, field) {
            (Kind::List, 1) => {
                for _ in 0..reader.list(Kind::Struct)? {
                    let entry = entry(reader)?;
                    found = found.or(Some(entry));
                }
            }
            _ => reader.skip(kind)?,
        }
    }
    found.ok_or_else(|| Error::protocol("a column without a type"))
}

fn entry<S: Read + Write>(reader: &mut Reader<'_, S>) -> Result<TypeId> {
    let mut found = None;
    while let Some((kind, field)) = reader.field()? {
        match (kind, field) {
            (Kind::Struct, 1) => found = Some(primitive(reader)?),
            (Kind::Struct, 2..=6) => {
                // Array, map, struct, union and a user's type, as the codes of primitive types.
                const NESTED: [i32; 5] = [10, 11, 12, 13, 14];
                reader.skip(kind)?;
                found = Some(TypeId::new(NESTED[usize::from(field.unsigned_abs()) - 2]));
            }
            _ => reader.skip(kind)?,
        }
    }
    found.ok_or_else(|| Error::protocol("a type without a name"))
}

fn primitive<S: Read + Write>(reader: &mut Reader<'_, S>) -> Result<TypeId> {
    let (mut code, mut precision, mut scale) = (None, None, None);
    while let Some((kind, field)) = reader.field()? {
        match (kind, field) {
            (Kind::I32, 1) => code = Some(reader.i32()?),
            (Kind::Struct, 2) => {
                while let Some((kind, field)) = reader.field()? {
                    match (kind, field) {
                        (Kind::Map, 1) => {
                            for _ in 0..reader.map(Kind::Binary, Kind::Struct)? {
                                let name = reader.text()?;
                                let value = qualifier(reader)?;
                                match name.as_str() {
                                    "precision" => precision = value,
                                    "scale" => scale = value,
                                    _ => {}
                                }
                            }
                        }
                        _ => reader.skip(kind)?,
                    }
                }
            }
            _ => reader.skip(kind)?,
        }
    }
    let code = code.ok_or_else(|| Error::protocol("a type without a code"))?;
    Ok(TypeId { precision, scale, ..TypeId::new(code) })
}

fn qualifier<S: Read + Write>(reader: &mut Reader<'_, S>) -> Result<Option<i32>> {
    let mut value = None;
    while let Some((kind, field)) = reader.field()? {
        match (kind, field) {
            (Kind::I32, 1) => value = Some(reader.i32()?),
            _ => reader.skip(kind)?,
        }
    }
    Ok(value)
}
