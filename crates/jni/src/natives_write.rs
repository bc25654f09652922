//! The functions of the class `dray.spark.Native`, which documents them: those that write.

#![allow(unsafe_code, reason = "the names of native functions, and Arrow's C structs")]

use arrow::datatypes::Schema;
use arrow::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi_and_data_type};
use dray_client::{Connection, ExtensionChoice, Partitions, WriteMode};
use jni::EnvUnowned;
use jni::objects::{JClass, JObjectArray, JString};
use jni::sys::jlong;

use crate::errors::Failure;
use crate::handles::{self, State};
use crate::natives::{clamp, out_of_turn, run, struct_at, text, texts};
use crate::options::Options;
use crate::{reading, writing};

#[unsafe(no_mangle)]
extern "system" fn Java_dray_spark_Native_openSession<'local>(
    env: EnvUnowned<'local>,
    _: JClass<'local>,
    handle: jlong,
    uri: JString<'local>,
    options: JObjectArray<'local, JString<'local>>,
) -> JString<'local> {
    run(env, |env| {
        let uri = text(env, &uri)?;
        let options = Options::parse(&texts(env, &options)?)?;
        let handle = handles::find(handle)?;
        let connection = reading::connect(&handle, &uri, &options)?;
        let kind = env.new_string(connection.kind().dialect_name())?;
        *handle.lock() = State::Session(Box::new(connection));
        Ok(kind)
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_dray_spark_Native_ask<'local>(
    env: EnvUnowned<'local>,
    _: JClass<'local>,
    handle: jlong,
    sql: JString<'local>,
) -> JObjectArray<'local, JString<'local>> {
    run(env, |env| {
        let sql = text(env, &sql)?;
        let handle = handles::find(handle)?;
        let State::Session(connection) = &mut *handle.lock() else { return Err(out_of_turn()) };
        let rows = connection.ask(&sql, &mut || handle.verdict())?;
        let values: Vec<_> = rows.into_iter().flatten().collect();
        let array = JObjectArray::<JString>::new(env, values.len(), JString::null())?;
        for (i, value) in values.iter().enumerate() {
            if let Some(value) = value {
                let value = env.new_string(value)?;
                array.set_element(env, i, &value)?;
                env.delete_local_ref(value);
            }
        }
        Ok(array)
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_dray_spark_Native_change<'local>(
    env: EnvUnowned<'local>,
    _: JClass<'local>,
    handle: jlong,
    sql: JString<'local>,
) -> jlong {
    run(env, |env| {
        let sql = text(env, &sql)?;
        let handle = handles::find(handle)?;
        let State::Session(connection) = &mut *handle.lock() else { return Err(out_of_turn()) };
        let mut options = Options::parse(&[])?.query;
        options.postgres.extension = ExtensionChoice::Never;
        options.postgres.partitions = Partitions::Exactly(1);
        let watch = Some(handle.watch());
        let mut results = Connection::query_with(&mut **connection, &sql, &options, watch)?;
        while results.next_batch()?.is_some() {}
        let rows = results.rows_changed();
        rows.map(clamp).ok_or_else(|| Failure::usage("the statement counts no rows"))
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_dray_spark_Native_beginWrite<'local>(
    env: EnvUnowned<'local>,
    _: JClass<'local>,
    handle: jlong,
    uri: JString<'local>,
    options: JObjectArray<'local, JString<'local>>,
    table: JObjectArray<'local, JString<'local>>,
    mode: JString<'local>,
    address: jlong,
) {
    run(env, |env| {
        let uri = text(env, &uri)?;
        let options = Options::parse(&texts(env, &options)?)?;
        let mode = text(env, &mode)?.parse::<WriteMode>().map_err(Failure::usage)?;
        let Ok([namespace, table]) = <[String; 2]>::try_from(texts(env, &table)?) else {
            return Err(Failure::usage("a table has a schema and a name"));
        };
        let address = struct_at::<FFI_ArrowSchema>(address)?;
        // SAFETY: `Native` is not public. Its one caller, `TableWriter`, has just had Arrow write
        // a struct ArrowSchema there, which nobody else has, and which is not freed before the end
        // of this call. `struct_at` has checked that the pointer is aligned and not null.
        let schema = Schema::try_from(unsafe { &*address })?;
        let handle = handles::find(handle)?;
        writing::begin(&handle, &uri, &options, (namespace, table), mode, schema)
    });
}

#[unsafe(no_mangle)]
extern "system" fn Java_dray_spark_Native_write(
    env: EnvUnowned<'_>,
    _: JClass<'_>,
    handle: jlong,
    address: jlong,
) {
    run(env, |_| {
        let handle = handles::find(handle)?;
        let address = struct_at::<FFI_ArrowArray>(address)?;
        let State::Writing(writing) = &mut *handle.lock() else { return Err(out_of_turn()) };
        // SAFETY: `Native` is not public. Its one caller, `TableWriter`, has just had Arrow write
        // a struct ArrowArray there, with columns of the types that it gave `beginWrite`.
        // `struct_at` has checked that the pointer is aligned and not null. `from_raw` moves the
        // array out and leaves a released one, as "Moving an array" demands.
        let array = unsafe { FFI_ArrowArray::from_raw(address) };
        // SAFETY: as above, so the buffers are those that the C data interface demands of the type.
        let rows = unsafe { from_ffi_and_data_type(array, writing.data_type()) }?;
        writing.push(rows)
    });
}

#[unsafe(no_mangle)]
extern "system" fn Java_dray_spark_Native_endWrite(
    env: EnvUnowned<'_>,
    _: JClass<'_>,
    handle: jlong,
) -> jlong {
    run(env, |_| {
        let handle = handles::find(handle)?;
        let State::Writing(writing) = &mut *handle.lock() else { return Err(out_of_turn()) };
        Ok(clamp(writing.end()?))
    })
}
