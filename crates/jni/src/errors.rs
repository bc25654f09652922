//! Errors, and the Java exception that each becomes.

use std::any::Any;

use arrow::error::ArrowError;
use dray_client::{ErrorKind, panic_text};
use jni::errors::ErrorPolicy;
use jni::objects::{JThrowable, JValue};
use jni::{Env, jni_sig, jni_str};

/// SQLSTATE `feature_not_supported`: what Spark can't hold.
const NOT_SUPPORTED: &str = "0A000";
/// SQLSTATE `numeric_value_out_of_range`.
const OUT_OF_RANGE: &str = "22003";
/// SQLSTATE `character_not_in_repertoire`.
const NOT_TEXT: &str = "22021";
/// SQLSTATE `program_limit_exceeded`.
const LIMIT_EXCEEDED: &str = "54000";
/// SQLSTATE `internal_error`.
const INTERNAL: &str = "XX000";

/// Why a native function failed.
#[derive(Debug)]
pub(crate) struct Failure {
    message: String,
    /// Empty if there is none.
    sqlstate: String,
    kind: &'static str,
}

impl Failure {
    /// The call is wrong.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { message: message.into(), sqlstate: String::new(), kind: "usage" }
    }

    /// More than an option allows.
    pub(crate) fn limit(message: impl Into<String>) -> Self {
        Self { message: message.into(), sqlstate: LIMIT_EXCEEDED.to_owned(), kind: "limit" }
    }

    /// A fault of this library.
    pub(crate) fn internal(message: impl Into<String>) -> Self {
        Self { message: message.into(), sqlstate: INTERNAL.to_owned(), kind: "internal" }
    }

    /// A type that Spark does not have.
    pub(crate) fn not_supported(message: impl Into<String>) -> Self {
        Self { message: message.into(), sqlstate: NOT_SUPPORTED.to_owned(), kind: "query" }
    }

    /// A string that is none.
    pub(crate) fn not_text(message: impl Into<String>) -> Self {
        Self { message: message.into(), sqlstate: NOT_TEXT.to_owned(), kind: "execution" }
    }

    /// A value that its type in Spark does not hold.
    pub(crate) fn out_of_range(message: impl Into<String>) -> Self {
        Self { message: message.into(), sqlstate: OUT_OF_RANGE.to_owned(), kind: "execution" }
    }
}

impl From<dray_client::Error> for Failure {
    fn from(error: dray_client::Error) -> Self {
        let kind = match error.kind() {
            ErrorKind::Connection => "connection",
            ErrorKind::Authentication => "authentication",
            ErrorKind::Query => "query",
            ErrorKind::Execution => "execution",
            ErrorKind::Resources => "resources",
            ErrorKind::Limit => "limit",
            ErrorKind::Cancelled => "cancelled",
            ErrorKind::Protocol => "protocol",
            ErrorKind::Usage => "usage",
            _ => "internal",
        };
        let sqlstate = error.sqlstate().unwrap_or_default().to_owned();
        Self { message: error.to_string(), sqlstate, kind }
    }
}

impl From<ArrowError> for Failure {
    fn from(error: ArrowError) -> Self {
        Self::internal(error.to_string())
    }
}

impl From<jni::errors::Error> for Failure {
    fn from(error: jni::errors::Error) -> Self {
        Self { message: format!("a call of Java: {error}"), ..Self::usage("") }
    }
}

/// Throws failures and panics as `dray.spark.DrayException`.
pub(crate) struct Throw;

impl<T: Default> ErrorPolicy<T, Failure> for Throw {
    type Captures<'env: 'native, 'native> = ();

    fn on_error<'env: 'native, 'native>(
        env: &mut Env<'env>,
        (): &mut (),
        failure: Failure,
    ) -> jni::errors::Result<T> {
        if !env.exception_check() {
            throw(env, &failure)?;
        }
        Ok(T::default())
    }

    fn on_panic<'env: 'native, 'native>(
        env: &mut Env<'env>,
        (): &mut (),
        panic: Box<dyn Any + Send>,
    ) -> jni::errors::Result<T> {
        throw(env, &Failure::internal(panic_text(&*panic)))?;
        Ok(T::default())
    }
}

fn throw(env: &mut Env<'_>, failure: &Failure) -> jni::errors::Result<()> {
    let message = env.new_string(&failure.message)?;
    let sqlstate = env.new_string(&failure.sqlstate)?;
    let kind = env.new_string(failure.kind)?;
    let exception = env.new_object(
        jni_str!("dray/spark/DrayException"),
        jni_sig!((JString, JString, JString)),
        &[JValue::Object(&message), JValue::Object(&sqlstate), JValue::Object(&kind)],
    )?;
    let exception = env.cast_local::<JThrowable>(exception)?;
    match env.throw(exception) {
        // It says that the exception was thrown.
        Err(jni::errors::Error::JavaException) => Ok(()),
        other => other,
    }
}
