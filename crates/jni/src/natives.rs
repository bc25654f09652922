//! The functions of the class `dray.spark.Native`, which documents them: those that read.

#![allow(unsafe_code, reason = "the names of native functions, and Arrow's C structs")]

use std::sync::Arc;
use std::time::Duration;

use arrow::array::{Array, StructArray};
use arrow::datatypes::SchemaRef;
use arrow::ffi::{FFI_ArrowArray, FFI_ArrowSchema};
use dray_client::{Estimate, Part, PlanOptions, export};
use jni::objects::{JByteArray, JClass, JLongArray, JObjectArray, JString};
use jni::sys::{jboolean, jint, jlong};
use jni::{Env, EnvUnowned};

use crate::errors::{Failure, Throw};
use crate::handles::{self, State};
use crate::options::Options;
use crate::reading;

/// What Java gets where the server's planner expects nothing.
const UNKNOWN: i64 = -1;

/// Runs a native function. Errors and panics become exceptions, with the default as the value.
pub(crate) fn run<'local, T: Default>(
    mut env: EnvUnowned<'local>,
    function: impl FnOnce(&mut Env<'local>) -> Result<T, Failure>,
) -> T {
    env.with_env(function).resolve::<Throw>()
}

#[unsafe(no_mangle)]
extern "system" fn Java_dray_spark_Native_newHandle(env: EnvUnowned<'_>, _: JClass<'_>) -> jlong {
    run(env, |_| Ok(handles::create()))
}

#[unsafe(no_mangle)]
extern "system" fn Java_dray_spark_Native_cancel(
    env: EnvUnowned<'_>,
    _: JClass<'_>,
    handle: jlong,
) {
    run(env, |_| {
        // What was closed has ended.
        if let Ok(handle) = handles::find(handle) {
            handle.cancel();
        }
        Ok(())
    });
}

#[unsafe(no_mangle)]
extern "system" fn Java_dray_spark_Native_close(env: EnvUnowned<'_>, _: JClass<'_>, handle: jlong) {
    run(env, |_| {
        handles::close(handle);
        Ok(())
    });
}

#[unsafe(no_mangle)]
extern "system" fn Java_dray_spark_Native_describe<'local>(
    env: EnvUnowned<'local>,
    _: JClass<'local>,
    handle: jlong,
    uri: JString<'local>,
    sql: JString<'local>,
    options: JObjectArray<'local, JString<'local>>,
) {
    run(env, |env| {
        let (uri, sql) = (text(env, &uri)?, text(env, &sql)?);
        let options = Options::parse(&texts(env, &options)?)?;
        reading::describe(&*handles::find(handle)?, &uri, &sql, options)
    });
}

#[unsafe(no_mangle)]
extern "system" fn Java_dray_spark_Native_plan<'local>(
    env: EnvUnowned<'local>,
    _: JClass<'local>,
    handle: jlong,
    uri: JString<'local>,
    sql: JString<'local>,
    options: JObjectArray<'local, JString<'local>>,
    at_most: jint,
    lease_ms: jlong,
    partial: jboolean,
    earlier: JByteArray<'local>,
) -> jboolean {
    run(env, |env| {
        let (uri, sql) = (text(env, &uri)?, text(env, &sql)?);
        let options = Options::parse(&texts(env, &options)?)?;
        // 0 leaves the number of parts to the size of the table.
        let at_most = u32::try_from(at_most).ok().filter(|&count| count > 0);
        let lease = u64::try_from(lease_ms).map(Duration::from_millis);
        let lease = lease.map_err(|_| Failure::usage(format!("a lease of {lease_ms} ms")))?;
        let snapshot = match earlier.is_null() {
            true => None,
            false => Some(Part::decode(&env.convert_byte_array(&earlier)?)?),
        };
        let plan = PlanOptions { at_most, lease, include_password: false, partial, snapshot };
        reading::plan(&*handles::find(handle)?, &uri, &sql, &options, &plan)
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_dray_spark_Native_openPart<'local>(
    env: EnvUnowned<'local>,
    _: JClass<'local>,
    handle: jlong,
    part: JByteArray<'local>,
    uri: JString<'local>,
    options: JObjectArray<'local, JString<'local>>,
) {
    run(env, |env| {
        let (part, uri) = (env.convert_byte_array(&part)?, text(env, &uri)?);
        let options = Options::parse(&texts(env, &options)?)?;
        reading::open_part(&*handles::find(handle)?, &part, &uri, &options)
    });
}

#[unsafe(no_mangle)]
extern "system" fn Java_dray_spark_Native_openQuery<'local>(
    env: EnvUnowned<'local>,
    _: JClass<'local>,
    handle: jlong,
    uri: JString<'local>,
    sql: JString<'local>,
    options: JObjectArray<'local, JString<'local>>,
) {
    run(env, |env| {
        let (uri, sql) = (text(env, &uri)?, text(env, &sql)?);
        let options = Options::parse(&texts(env, &options)?)?;
        reading::open_query(&*handles::find(handle)?, &uri, &sql, &options)
    });
}

#[unsafe(no_mangle)]
extern "system" fn Java_dray_spark_Native_schema(
    env: EnvUnowned<'_>,
    _: JClass<'_>,
    handle: jlong,
    address: jlong,
) {
    run(env, |_| {
        let schema = schema_of(&handles::find(handle)?.lock())?;
        let exported = export::schema(&schema)?;
        let address = struct_at::<FFI_ArrowSchema>(address)?;
        // SAFETY: `Native` is not public. Its one caller, `SparkTypes.arrowSchema`, has just
        // allocated an empty struct ArrowSchema there, which nobody else has, and frees it after
        // this call. `struct_at` has checked that the pointer is aligned and not null.
        unsafe { address.write(exported) };
        Ok(())
    });
}

#[unsafe(no_mangle)]
extern "system" fn Java_dray_spark_Native_dialect<'local>(
    env: EnvUnowned<'local>,
    _: JClass<'local>,
    handle: jlong,
) -> JString<'local> {
    run(env, |env| {
        let handle = handles::find(handle)?;
        let State::Description(description) = &*handle.lock() else { return Err(out_of_turn()) };
        Ok(env.new_string(description.dialect.dialect_name())?)
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_dray_spark_Native_estimates<'local>(
    env: EnvUnowned<'local>,
    _: JClass<'local>,
    handle: jlong,
) -> JLongArray<'local> {
    run(env, |env| {
        let handle = handles::find(handle)?;
        let numbers: Vec<i64> = match &*handle.lock() {
            State::Description(description) => numbers(&description.estimate).into(),
            State::Plan(planned) => planned.plan.estimates().iter().flat_map(numbers).collect(),
            _ => return Err(out_of_turn()),
        };
        let array = env.new_long_array(numbers.len())?;
        array.set_region(env, 0, &numbers)?;
        Ok(array)
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_dray_spark_Native_parts<'local>(
    env: EnvUnowned<'local>,
    _: JClass<'local>,
    handle: jlong,
) -> JObjectArray<'local, JByteArray<'local>> {
    run(env, |env| {
        let handle = handles::find(handle)?;
        let State::Plan(planned) = &*handle.lock() else { return Err(out_of_turn()) };
        let parts = planned.plan.partitions();
        let array = JObjectArray::<JByteArray>::new(env, parts.len(), JByteArray::null())?;
        for (i, part) in parts.iter().enumerate() {
            let bytes = env.byte_array_from_slice(part)?;
            array.set_element(env, i, &bytes)?;
            env.delete_local_ref(bytes);
        }
        Ok(array)
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_dray_spark_Native_reason<'local>(
    env: EnvUnowned<'local>,
    _: JClass<'local>,
    handle: jlong,
) -> JString<'local> {
    run(env, |env| {
        let handle = handles::find(handle)?;
        let State::Plan(planned) = &*handle.lock() else { return Err(out_of_turn()) };
        match planned.plan.reason() {
            Some(reason) => Ok(env.new_string(reason)?),
            None => Ok(JString::default()),
        }
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_dray_spark_Native_verify<'local>(
    env: EnvUnowned<'local>,
    _: JClass<'local>,
    handle: jlong,
    receipts: JObjectArray<'local, JByteArray<'local>>,
) -> jlong {
    run(env, |env| {
        let count = receipts.len(env)?;
        let mut all = Vec::with_capacity(count);
        for i in 0..count {
            let receipt = receipts.get_element(env, i)?;
            all.push(env.convert_byte_array(&receipt)?);
            env.delete_local_ref(receipt);
        }
        let handle = handles::find(handle)?;
        let State::Plan(planned) = &*handle.lock() else { return Err(out_of_turn()) };
        Ok(clamp(planned.plan.verify(&all)?.rows))
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_dray_spark_Native_next(
    env: EnvUnowned<'_>,
    _: JClass<'_>,
    handle: jlong,
    address: jlong,
    bytes_max: jlong,
) -> jboolean {
    run(env, |_| {
        let handle = handles::find(handle)?;
        let address = struct_at::<FFI_ArrowArray>(address)?;
        let State::Reading(reading) = &mut *handle.lock() else { return Err(out_of_turn()) };
        let Some(batch) = reading.next()? else { return Ok(false) };
        let batch = StructArray::from(batch).to_data();
        let bytes = batch.get_slice_memory_size()?;
        if i64::try_from(bytes).is_ok_and(|bytes| bytes > bytes_max) {
            return Err(Failure::limit(format!(
                "a batch of {} rows has {bytes} bytes, option taskMemory allows {bytes_max} \
                 (smaller batchRows and batchBytes make smaller batches)",
                batch.len(),
            )));
        }
        let exported = FFI_ArrowArray::new(&batch);
        // SAFETY: `Native` is not public. Its one caller, `Rows.next`, has just allocated an empty
        // struct ArrowArray there, which nobody else has, and frees it after this call.
        // `struct_at` has checked that the pointer is aligned and not null.
        unsafe { address.write(exported) };
        Ok(true)
    })
}

#[unsafe(no_mangle)]
extern "system" fn Java_dray_spark_Native_receipt<'local>(
    env: EnvUnowned<'local>,
    _: JClass<'local>,
    handle: jlong,
) -> JByteArray<'local> {
    run(env, |env| {
        let handle = handles::find(handle)?;
        let State::Reading(reading) = &*handle.lock() else { return Err(out_of_turn()) };
        match reading.receipt() {
            Some(receipt) => Ok(env.byte_array_from_slice(&receipt)?),
            None => Ok(JByteArray::default()),
        }
    })
}

pub(crate) fn text(env: &Env<'_>, string: &JString<'_>) -> Result<String, Failure> {
    Ok(string.try_to_string(env)?)
}

pub(crate) fn texts<'local>(
    env: &mut Env<'local>,
    strings: &JObjectArray<'local, JString<'local>>,
) -> Result<Vec<String>, Failure> {
    let count = strings.len(env)?;
    (0..count)
        .map(|i| {
            let string = strings.get_element(env, i)?;
            text(env, &string)
        })
        .collect()
}

fn schema_of(state: &State) -> Result<SchemaRef, Failure> {
    match state {
        State::New | State::Session(_) | State::Writing(_) => Err(out_of_turn()),
        State::Description(description) => Ok(Arc::clone(&description.schema)),
        State::Plan(planned) => Ok(Arc::clone(&planned.schema)),
        State::Reading(reading) => Ok(Arc::clone(&reading.schema)),
    }
}

/// Rows and bytes.
fn numbers(estimate: &Estimate) -> [i64; 2] {
    [estimate.rows, estimate.bytes].map(|known| known.value().map_or(UNKNOWN, clamp))
}

pub(crate) fn clamp(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// A struct of Arrow's C data interface that Java allocated.
///
/// # Errors
/// When the address can't be one of such a struct.
pub(crate) fn struct_at<T>(address: jlong) -> Result<*mut T, Failure> {
    let pointer = usize::try_from(address).unwrap_or_default() as *mut T;
    match pointer.is_null() || !pointer.is_aligned() {
        true => Err(Failure::usage("no address of a struct")),
        false => Ok(pointer),
    }
}

pub(crate) fn out_of_turn() -> Failure {
    Failure::usage("the handle stands for something else")
}
