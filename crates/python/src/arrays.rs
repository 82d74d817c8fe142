//! Records out of arrays: buffers of numbers, and columns of Arrow data.

use std::ptr::NonNull;

use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt8Type, UInt64Type};
use arrow_array::{Array, ArrayRef, RecordBatch};
use flashlore_trace::record::chunks;
use flashlore_trace::{Recorder, Records};
use pyo3::buffer::{PyBuffer, PyUntypedBuffer};
use pyo3::prelude::*;

use crate::errors::{raised, usage};
use crate::table::stream_of;
use crate::watch::{Watch, watched};

/// Records taken at a time: the interpreter lock is held while they are copied out of the buffers, and not while they
/// are looked at.
const TAKEN: usize = 1 << 16;

/// The records that buffers describe: operations, offsets and lengths, times if there are any, and content if it is
/// known: a number for each chunk of 4 KiB of every write, or of every read and write.
pub fn of_buffers(
    py: Python<'_>,
    [op, offset, length]: [&Bound<'_, PyAny>; 3],
    time: Option<&Bound<'_, PyAny>>,
    content: Option<&Bound<'_, PyAny>>,
    name: &str,
) -> PyResult<Records> {
    let op = Numbers::of("op", op)?;
    let columns = [
        Numbers::of("offset", offset)?,
        Numbers::of("length", length)?,
    ];
    let time = time.map(|time| Numbers::of("time", time)).transpose()?;
    let content = content
        .map(|content| Numbers::of("content", content))
        .transpose()?;
    let records = op.len();
    for column in columns.iter().chain(&time) {
        if column.len() != records {
            return Err(usage(format!(
                "{} has {} numbers and op has {records}, expected as many",
                column.name,
                column.len()
            )));
        }
    }
    let reads = match &content {
        Some(content) => of_reads_too(py, &op, &columns[1], content.len() as u64)?,
        None => false,
    };
    let mut recorder = Recorder::new(name);
    let mut taken = Taken::default();
    let (mut at, mut first_value) = (0, 0);
    while at < records {
        let end = records.min(at + TAKEN);
        taken.op.take(py, &op, at, end)?;
        taken.offset.take(py, &columns[0], at, end)?;
        taken.length.take(py, &columns[1], at, end)?;
        if let Some(time) = &time {
            taken.time.take(py, time, at, end)?;
        }
        let mut end_value = first_value;
        if let Some(content) = &content {
            end_value += taken.values(reads) as usize;
            taken.content.take(py, content, first_value, end_value)?;
        }
        let has_content = content.is_some();
        py.detach(|| taken.push(&mut recorder, has_content, reads))
            .map_err(|error| raised(error.into()))?;
        py.check_signals()?;
        (at, first_value) = (end, end_value);
    }
    recorder.finish().map_err(|error| raised(error.into()))
}

/// Whether there is content for reads as well.
fn of_reads_too(py: Python<'_>, op: &Numbers, length: &Numbers, values: u64) -> PyResult<bool> {
    let mut taken = Taken::default();
    let (mut of_writes, mut of_both) = (0, 0);
    let mut at = 0;
    while at < op.len() {
        let end = op.len().min(at + TAKEN);
        taken.op.take(py, op, at, end)?;
        taken.length.take(py, length, at, end)?;
        of_writes += taken.values(false);
        of_both += taken.values(true);
        at = end;
    }
    match (values == of_writes, values == of_both) {
        (true, _) => Ok(false),
        (_, true) => Ok(true),
        _ => Err(usage(format!(
            "content has {values} numbers, expected one for each 4 KiB of every write ({of_writes}) or of every \
             read and write ({of_both})"
        ))),
    }
}

/// A one-dimensional buffer of whole numbers.
struct Numbers {
    name: &'static str,
    values: Values,
}

enum Values {
    U8(PyBuffer<u8>),
    I8(PyBuffer<i8>),
    U16(PyBuffer<u16>),
    I16(PyBuffer<i16>),
    U32(PyBuffer<u32>),
    I32(PyBuffer<i32>),
    U64(PyBuffer<u64>),
    I64(PyBuffer<i64>),
}

macro_rules! with_buffer {
    ($values:expr, $buffer:ident => $done:expr) => {
        match $values {
            Values::U8($buffer) => $done,
            Values::I8($buffer) => $done,
            Values::U16($buffer) => $done,
            Values::I16($buffer) => $done,
            Values::U32($buffer) => $done,
            Values::I32($buffer) => $done,
            Values::U64($buffer) => $done,
            Values::I64($buffer) => $done,
        }
    };
}

impl Numbers {
    fn of(name: &'static str, data: &Bound<'_, PyAny>) -> PyResult<Self> {
        let refused = |what: String| {
            usage(format!(
                "{name} is {what}, expected a contiguous array of whole numbers of one dimension"
            ))
        };
        let Ok(buffer) = PyUntypedBuffer::get(data) else {
            return Err(refused(format!("a {}", data.get_type().name()?)));
        };
        if buffer.dimensions() != 1 || !buffer.is_c_contiguous() {
            let dimensions = buffer.dimensions();
            return Err(refused(format!(
                "an array of {dimensions} dimensions, or with gaps"
            )));
        }
        let values = PyBuffer::get(data)
            .map(Values::U8)
            .or_else(|_| PyBuffer::get(data).map(Values::I8))
            .or_else(|_| PyBuffer::get(data).map(Values::U16))
            .or_else(|_| PyBuffer::get(data).map(Values::I16))
            .or_else(|_| PyBuffer::get(data).map(Values::U32))
            .or_else(|_| PyBuffer::get(data).map(Values::I32))
            .or_else(|_| PyBuffer::get(data).map(Values::U64))
            .or_else(|_| PyBuffer::get(data).map(Values::I64));
        match values {
            Ok(values) => Ok(Numbers { name, values }),
            Err(_) => {
                let format = buffer.format().to_string_lossy().into_owned();
                Err(refused(format!("an array of the type {format:?}")))
            }
        }
    }

    fn len(&self) -> usize {
        with_buffer!(&self.values, buffer => buffer.item_count())
    }

    /// Hands on the numbers from `first` on, before `end`, with the interpreter lock held.
    fn each(&self, _: Python<'_>, first: usize, end: usize, mut hand: impl FnMut(i128)) {
        with_buffer!(&self.values, buffer => {
            let Some(all) = buffer.as_slice_ptr() else {
                return;
            };
            for at in first..end.min(all.len()) {
                // SAFETY: the buffer is held, the place is within it, and no reference to it is made.
                let value = unsafe { read_at(all, at) };
                hand(value.into());
            }
        });
    }
}

/// The item with the number `at`.
///
/// # Safety
/// It is within `all`, whose memory is held.
unsafe fn read_at<T: Copy>(all: NonNull<[T]>, at: usize) -> T {
    // SAFETY: as above.
    unsafe { all.cast::<T>().add(at).read_unaligned() }
}

/// Numbers of one type that were taken.
#[derive(Default)]
struct Column<T>(Vec<T>);

impl<T: TryFrom<i128>> Column<T> {
    fn take(&mut self, py: Python<'_>, from: &Numbers, first: usize, end: usize) -> PyResult<()> {
        self.0.clear();
        self.0.reserve(end - first);
        let mut refused = None;
        from.each(py, first, end, |value| match T::try_from(value) {
            Ok(value) => self.0.push(value),
            Err(_) => refused = refused.or(Some((self.0.len(), value))),
        });
        match refused {
            None => Ok(()),
            Some((at, value)) => Err(usage(format!(
                "{}[{}] is {value}, expected a number that fits {} unsigned or signed bits as its column has them",
                from.name,
                first + at,
                8 * size_of::<T>()
            ))),
        }
    }
}

/// Some thousand records that were taken out of buffers.
#[derive(Default)]
struct Taken {
    op: Column<u8>,
    offset: Column<u64>,
    length: Column<u64>,
    time: Column<i64>,
    content: Column<u64>,
}

/// Whether a record of this operation has content.
fn has_content(op: u8, reads: bool) -> bool {
    op == 1 || (reads && op == 0)
}

impl Taken {
    /// Numbers of content that belong to these records.
    fn values(&self, reads: bool) -> u64 {
        let records = self.op.0.iter().zip(&self.length.0);
        let with_content = records.filter(|&(&op, _)| has_content(op, reads));
        with_content.map(|(_, &length)| chunks(length)).sum()
    }

    fn push(
        &self,
        recorder: &mut Recorder,
        is_known: bool,
        reads: bool,
    ) -> flashlore_trace::Result<()> {
        let mut rest = &self.content.0[..];
        for (i, (&op, &length)) in self.op.0.iter().zip(&self.length.0).enumerate() {
            let content = match is_known && has_content(op, reads) {
                true => {
                    let (own, others) = rest.split_at(chunks(length) as usize);
                    rest = others;
                    Some(own)
                }
                false => None,
            };
            let time = self.time.0.get(i).copied().unwrap_or(0);
            recorder.push(time, op, self.offset.0[i], length, content)?;
        }
        Ok(())
    }
}

/// The records of an Arrow stream: `op` (uint8), `offset` and `length` (uint64), and if they are there `time` (int64)
/// and `content` (a list of uint64, or null).
pub fn of_stream(py: Python<'_>, data: &Bound<'_, PyAny>, name: &str) -> PyResult<Records> {
    let stream = stream_of(data)?;
    let watch = Watch::default();
    watched(py, &watch, None, || {
        let mut recorder = Recorder::new(name);
        for batch in stream {
            let batch = batch.map_err(|error| usage(error.to_string()))?;
            for first in (0..batch.num_rows()).step_by(TAKEN) {
                if watch.stop().is_asked() {
                    return Err(raised(flashlore_trace::Error::Interrupted.into()));
                }
                let rows = TAKEN.min(batch.num_rows() - first);
                push_batch(&mut recorder, &batch.slice(first, rows))?;
            }
        }
        recorder.finish().map_err(|error| raised(error.into()))
    })?
}

fn push_batch(recorder: &mut Recorder, batch: &RecordBatch) -> PyResult<()> {
    let wrong = |name: &str| usage(format!("the column {name} is missing or of another type"));
    let column = |name: &str| batch.column_by_name(name).ok_or_else(|| wrong(name));
    let number = |name: &'static str| -> PyResult<&[u64]> {
        let array = column(name)?.as_primitive_opt::<UInt64Type>();
        Ok(array.ok_or_else(|| wrong(name))?.values())
    };
    let op = column("op")?.as_primitive_opt::<UInt8Type>();
    let op = op.ok_or_else(|| wrong("op"))?.values();
    let (offset, length) = (number("offset")?, number("length")?);
    let times = batch.column_by_name("time").map(|time| {
        let time = time.as_primitive_opt::<Int64Type>();
        time.ok_or_else(|| wrong("time"))
    });
    let times = times.transpose()?;
    let content = batch.column_by_name("content");
    for row in 0..batch.num_rows() {
        let list = content
            .filter(|content| content.is_valid(row))
            .map(|content| list_of(content, row).ok_or_else(|| wrong("content")))
            .transpose()?;
        let values = list.as_ref().map(|list| {
            let values = list.as_primitive_opt::<UInt64Type>();
            values.ok_or_else(|| wrong("content"))
        });
        let values = values.transpose()?.map(|values| &values.values()[..]);
        let time = times.map_or(0, |times| times.value(row));
        recorder
            .push(time, op[row], offset[row], length[row], values)
            .map_err(|error| raised(error.into()))?;
    }
    Ok(())
}

/// What stands in a row of a column of lists.
fn list_of(column: &ArrayRef, row: usize) -> Option<ArrayRef> {
    let large = column.as_list_opt::<i64>().map(|lists| lists.value(row));
    large.or_else(|| column.as_list_opt::<i32>().map(|lists| lists.value(row)))
}
