//! Writers of objects: each field by the position that the getters have, too.

use dray_format::{Type, Unit};
use dray_page::ValidityBit;

use super::names::{FieldNames, comment};
use super::{Java, Text, list, value};
use crate::{ClassKind, Field, FieldKind, Items};

/// A method that writes a value.
struct Setter {
    suffix: &'static str,
    parameters: &'static str,
    /// The statements.
    put: String,
}

/// A class whose fields are written.
struct Written {
    /// The number of the first tail of the class among those of its record.
    first_tail: usize,
    /// The validity bit of the nearest struct around that may be missing.
    around: Option<ValidityBit>,
}

impl Java<'_> {
    /// Adds the class that writes the fields of another, and the one for lists of it.
    pub(super) fn writer(&self, body: &mut Text, number: usize, names: &[FieldNames]) {
        let class = &self.model.classes[number];
        let (first_tail, around) = self.in_record(number);
        let written = Written { first_tail, around };
        let what = match class.kind {
            ClassKind::Object => "Writes an object that is built or edited.",
            ClassKind::Struct => "Writes the struct.",
            ClassKind::Item(_) => "Writes an item.",
        };
        body.add(1, &format!("/** {what} */"));
        body.add(1, "public static final class Writer extends ViewWriter {");
        let mut tail = written.first_tail;
        let mut is_first = true;
        for (field, names) in class.fields.iter().zip(names) {
            if matches!(&field.kind, FieldKind::Value(Type::Null)) {
                continue;
            }
            if !is_first {
                body.add(0, "\n");
            }
            is_first = false;
            self.field_writer(body, &written, field, names, tail);
            tail += self.tails(&field.kind);
        }
        body.add(1, "}");
        if let ClassKind::Item(_) = class.kind {
            body.add(0, "\n");
            body.add(
                1,
                "/** Writes a list of such items. */\n\
                 public static final class ListWriter extends StructListWriter<Writer> {\n    \
                 public ListWriter() {\n        super(Writer::new);\n    }\n}",
            );
        }
    }

    /// The number of tails that a field may have in its record.
    fn tails(&self, kind: &FieldKind) -> usize {
        match kind {
            FieldKind::Value(Type::Utf8 | Type::Binary) => 1,
            FieldKind::Value(_) => 0,
            FieldKind::Struct(class) => {
                self.model.classes[*class].fields.iter().map(|field| self.tails(&field.kind)).sum()
            }
            FieldKind::List(_) | FieldKind::FixedList(..) | FieldKind::Map(_) => 1,
        }
    }

    /// The first tail of a class in its record, and the validity bit around it.
    fn in_record(&self, number: usize) -> (usize, Option<ValidityBit>) {
        for (outer, class) in self.model.classes.iter().enumerate() {
            let mut tail = 0;
            for field in &class.fields {
                if matches!(field.kind, FieldKind::Struct(inner) if inner == number) {
                    return (self.in_record(outer).0 + tail, field.present_bit);
                }
                tail += self.tails(&field.kind);
            }
        }
        (0, None)
    }

    fn field_writer(
        &self,
        body: &mut Text,
        written: &Written,
        field: &Field,
        names: &FieldNames,
        tail: usize,
    ) {
        let shown = comment(&field.name);
        let within = written
            .around
            .map_or(String::new(), |bit| format!("    within({}, {});\n", bit.at, bit.mask));
        let present = field
            .own_bit
            .map_or(String::new(), |bit| format!("    present({}, {});\n", bit.at, bit.mask));
        match &field.kind {
            FieldKind::Value(data_type) => {
                let about = value::describe(data_type);
                for (i, setter) in setters(data_type, field.at, tail).iter().enumerate() {
                    if i > 0 {
                        body.add(0, "\n");
                    }
                    let (method, put) = (names.with(setter.suffix), &setter.put);
                    let parameters = setter.parameters;
                    body.add(2, &format!("/** {{@code {shown}}}: {about}. */"));
                    body.add(
                        2,
                        &format!(
                            "public Writer {method}({parameters}) {{\n{within}    {put}\n\
                             {present}    return this;\n}}"
                        ),
                    );
                }
            }
            FieldKind::Struct(class) => {
                let (class, base) = (self.names.of(*class), &names.base);
                let present = field.own_bit.map_or(String::new(), |bit| {
                    format!("    presentStruct({}, {});\n", bit.at, bit.mask)
                });
                body.add(2, &format!("/** {{@code {shown}}}: a struct, which becomes present. */"));
                body.add(
                    2,
                    &format!(
                        "public {class}.Writer {base}() {{\n{within}{present}    \
                         return share(new {class}.Writer());\n}}"
                    ),
                );
            }
            FieldKind::List(items) | FieldKind::FixedList(_, items) | FieldKind::Map(items) => {
                let is_fixed = matches!(field.kind, FieldKind::FixedList(..));
                let checks = (within.as_str(), present.as_str());
                self.list_writer(body, names, items, &shown, tail, is_fixed, checks);
            }
        }
        if let Some(bit) = field.own_bit {
            let base = names.with("Missing");
            body.add(0, "\n");
            body.add(2, &format!("/** Makes {{@code {shown}}} missing. */"));
            body.add(
                2,
                &format!(
                    "public Writer {base}() {{\n{within}    missing({}, {});\n    return this;\n}}",
                    bit.at, bit.mask
                ),
            );
        }
    }

    #[allow(clippy::too_many_arguments, reason = "the parts of four methods of one field")]
    fn list_writer(
        &self,
        body: &mut Text,
        names: &FieldNames,
        items: &Items,
        shown: &str,
        tail: usize,
        is_fixed: bool,
        (within, present): (&str, &str),
    ) {
        let list::Writer { java, new } = list::writer_of(items, &self.names);
        let base = &names.base;
        body.add(2, &format!("/** {{@code {shown}}}: a list of so many items, written next. */"));
        body.add(
            2,
            &format!(
                "public {java} {base}(int count) {{\n{within}    \
                 {java} list = putList({tail}, count, {new});\n{present}    return list;\n}}\n\n"
            ),
        );
        body.add(2, &format!("/** {{@code {shown}}} of an object that is edited, as it is. */"));
        body.add(
            2,
            &format!("public {java} {base}() {{\n{within}    return editList({tail}, {new});\n}}"),
        );
        if is_fixed {
            return;
        }
        let (resize, remove) = (names.with("Resize"), names.with("Remove"));
        body.add(0, "\n");
        body.add(2, &format!("/** Drops the last items of {{@code {shown}}}, or appends some. */"));
        body.add(
            2,
            &format!(
                "public Writer {resize}(int count) {{\n{within}    resizeList({tail}, count);\n\
                 {present}    return this;\n}}\n\n"
            ),
        );
        body.add(2, &format!("/** Drops an item of {{@code {shown}}}. */"));
        body.add(
            2,
            &format!(
                "public Writer {remove}(int i) {{\n{within}    removeItem({tail}, i);\n    \
                 return this;\n}}"
            ),
        );
    }
}

/// The methods that write a value at an offset, or with a tail.
fn setters(data_type: &Type, at: usize, tail: usize) -> Vec<Setter> {
    let setter = |suffix, parameters, put: String| Setter { suffix, parameters, put };
    let value =
        |parameters, method: &str| setter("", parameters, format!("{method}({at}, value);"));
    let unsigned = |parameters, width: usize| {
        setter("", parameters, format!("putUnsigned({at}, {width}, value);"))
    };
    let int = || value("int value", "putInt");
    let long = || value("long value", "putLong");
    let decimal = |scale: &i8, put: &str| {
        setter(
            "Decimal",
            "BigDecimal value",
            put.replace("{x}", &format!("Numbers.unscaled(value, {scale})")),
        )
    };
    match data_type {
        Type::Null => vec![],
        Type::Boolean => vec![value("boolean value", "putBoolean")],
        Type::Int8 => vec![value("byte value", "putByte")],
        Type::UInt8 => vec![unsigned("int value", 1)],
        Type::Int16 | Type::Float16 => vec![value("short value", "putShort")],
        Type::UInt16 => vec![unsigned("int value", 2)],
        Type::UInt32 => vec![unsigned("long value", 4)],
        Type::Float32 => vec![value("float value", "putFloat")],
        Type::Float64 => vec![value("double value", "putDouble")],
        Type::Decimal32 { scale, .. } => {
            vec![int(), decimal(scale, &format!("putInt({at}, {{x}}.intValueExact());"))]
        }
        Type::Decimal64 { scale, .. } => {
            vec![long(), decimal(scale, &format!("putLong({at}, {{x}}.longValueExact());"))]
        }
        Type::Decimal128 { scale, .. } | Type::Decimal256 { scale, .. } => {
            let width = data_type.width().unwrap_or_default();
            vec![
                setter("", "BigInteger value", format!("putInteger({at}, {width}, value);")),
                decimal(scale, &format!("putInteger({at}, {width}, {{x}});")),
            ]
        }
        Type::Date32 => vec![
            int(),
            setter(
                "Date",
                "LocalDate value",
                format!("putInt({at}, Math.toIntExact(value.toEpochDay()));"),
            ),
        ],
        Type::Timestamp { unit, zone } => {
            let unit = unit_number(*unit);
            let put = format!("putLong({at}, Times.of(value, {unit}));");
            vec![
                long(),
                match zone {
                    Some(_) => setter("Instant", "Instant value", put),
                    None => setter("DateTime", "LocalDateTime value", put),
                },
            ]
        }
        Type::IntervalDayTime => vec![setter(
            "",
            "int days, int milliseconds",
            format!("putInt({at}, days);\n    putInt({}, milliseconds);", at + 4),
        )],
        Type::IntervalMonthDayNano => vec![setter(
            "",
            "int months, int days, long nanoseconds",
            format!(
                "putInt({at}, months);\n    putInt({}, days);\n    putLong({}, nanoseconds);",
                at + 4,
                at + 8
            ),
        )],
        Type::Utf8 => ["String value", "Utf8 value"]
            .map(|parameters| setter("", parameters, format!("putString({tail}, value);")))
            .into(),
        Type::Binary => vec![setter("", "byte[] value", format!("putBytes({tail}, value);"))],
        Type::FixedBinary(width) => {
            vec![setter("", "byte[] value", format!("putFixed({at}, {width}, value);"))]
        }
        other if other.width() == Some(4) => vec![int()],
        _ => vec![long()],
    }
}

/// How the runtime knows a unit.
pub(super) fn unit_number(unit: Unit) -> u8 {
    match unit {
        Unit::Second => 0,
        Unit::Millisecond => 1,
        Unit::Microsecond => 2,
        Unit::Nanosecond => 3,
    }
}
