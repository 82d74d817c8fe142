//! Reads a native trace in batches, one row group open at a time.

use std::fs::File;
use std::str::FromStr;

use bytes::{Buf, Bytes};
use parquet::column::reader::ColumnReader;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};

use super::guard::guarded;
use super::lists::{Lists, Misfit};
use super::seal::{self, Verified};
use super::{
    KEY_HOSTS, KEY_ORIGIN, KEY_RATIOS, KEY_RECORDS, KEY_STYLE, KEY_VALUES, KEY_VERSION, VERSION,
    schema,
};
use crate::devices::{DeviceNames, NameStyle};
use crate::digests::MAX_VALUES;
use crate::error::{Error, Fault, RecordPlace, Result};
use crate::formats::check;
use crate::overlay::FULL_RATIO;
use crate::record::{Batch, NO_CONTENT, Op, chunks};

/// Records of one batch.
const BATCH_RECORDS: usize = 4096;

/// Where the bytes of a native trace are: Parquet is read from its end, so a stream will not do.
pub(crate) enum NativeSourceBytes {
    File(File),
    Memory(Bytes),
}

pub(crate) struct NativeReader {
    path: String,
    file: Box<dyn FileReader>,
    verified: Verified,
    names: DeviceNames,
    records: u64,
    values: u32,
    ratios: u64,
    origin_ns: u64,
    next_group: usize,
    columns: Option<Columns>,
    scratch: Scratch,
    read: u64,
    ratios_read: u64,
    last_time_ns: u64,
}

/// The columns of the open row group.
struct Columns {
    time: ColumnReader,
    device: ColumnReader,
    op: ColumnReader,
    offset: ColumnReader,
    length: ColumnReader,
    content: Option<ColumnReader>,
    delta_ratio: Option<ColumnReader>,
}

impl Columns {
    fn open(
        file: &dyn FileReader,
        group: usize,
        has_content: bool,
        has_ratios: bool,
    ) -> std::result::Result<Columns, ParquetError> {
        let group = file.get_row_group(group)?;
        let column = |index| group.get_column_reader(index);
        Ok(Columns {
            time: column(0)?,
            device: column(1)?,
            op: column(2)?,
            offset: column(3)?,
            length: column(4)?,
            content: has_content.then(|| column(5)).transpose()?,
            delta_ratio: has_ratios.then(|| column(6)).transpose()?,
        })
    }
}

/// Buffers that keep their memory.
#[derive(Default)]
struct Scratch {
    wide: Vec<i64>,
    narrow: Vec<i32>,
    lists: Lists,
}

impl NativeReader {
    /// Checks the seal, the schema and the metadata.
    pub(crate) fn open(path: String, bytes: NativeSourceBytes) -> Result<Self> {
        let foreign = |what: String| Error::Native {
            path: path.clone(),
            what,
        };
        let verified = match &bytes {
            NativeSourceBytes::File(file) => seal::verify(file),
            NativeSourceBytes::Memory(bytes) => seal::verify(bytes.clone().reader()),
        };
        let verified = verified
            .map_err(|source| Error::Read {
                path: path.clone(),
                byte: 0,
                source,
            })?
            .map_err(&foreign)?;
        let stored = verified.bytes;
        let (file, metadata) = guarded(|| {
            let file = open_file(bytes).map_err(|e| e.to_string())?;
            check_extents(&*file, stored)?;
            let metadata = Metadata::of(&*file)?;
            Ok((file, metadata))
        })
        .map_err(foreign)?;
        Ok(NativeReader {
            path,
            file,
            verified,
            names: metadata.names,
            records: metadata.records,
            values: metadata.values,
            ratios: metadata.ratios,
            origin_ns: metadata.origin_ns,
            next_group: 0,
            columns: None,
            scratch: Scratch::default(),
            read: 0,
            ratios_read: 0,
            last_time_ns: 0,
        })
    }

    pub(crate) fn names(&self) -> &DeviceNames {
        &self.names
    }

    /// All value ids are below this number.
    pub(crate) fn values(&self) -> u32 {
        self.values
    }

    /// The first record's time on the trace's own clock.
    pub(crate) fn origin_ns(&self) -> u64 {
        self.origin_ns
    }

    pub(crate) fn sha256(&self) -> [u8; 32] {
        self.verified.sha256
    }

    pub(crate) fn stored_bytes(&self) -> u64 {
        self.verified.bytes
    }

    /// Back to the first record.
    pub(crate) fn rewind(&mut self) {
        self.next_group = 0;
        self.columns = None;
        self.read = 0;
        self.ratios_read = 0;
        self.last_time_ns = 0;
    }

    /// Fills `batch` with the next records; false at the end.
    pub(crate) fn next_batch(&mut self, batch: &mut Batch) -> Result<bool> {
        batch.clear();
        loop {
            if self.columns.is_none() && !self.open_group()? {
                self.check_end()?;
                return Ok(false);
            }
            let filled = guarded(|| self.fill(batch)).map_err(|what| self.foreign(what))?;
            if filled > 0 {
                self.check_batch(batch)?;
                self.read += filled as u64;
                self.ratios_read += batch.delta_ratios.len() as u64;
                return Ok(true);
            }
            self.columns = None;
        }
    }

    fn open_group(&mut self) -> Result<bool> {
        if self.next_group == self.file.num_row_groups() {
            return Ok(false);
        }
        let opened = guarded(|| {
            let (content, ratios) = (self.values > 0, self.ratios > 0);
            Columns::open(&*self.file, self.next_group, content, ratios).map_err(|e| e.to_string())
        });
        self.columns = Some(opened.map_err(|what| self.foreign(what))?);
        self.next_group += 1;
        Ok(true)
    }

    /// Decodes every column of the next records; the number of records, 0 at the group's end.
    fn fill(&mut self, batch: &mut Batch) -> std::result::Result<usize, String> {
        let Some(columns) = &mut self.columns else {
            return Ok(0);
        };
        let scratch = &mut self.scratch;
        wide(&mut columns.time, scratch, &mut batch.time_ns)?;
        wide(&mut columns.offset, scratch, &mut batch.offset)?;
        wide(&mut columns.length, scratch, &mut batch.length)?;
        narrow(&mut columns.device, scratch)?;
        batch
            .device
            .extend(scratch.narrow.iter().map(|&v| v as u32));
        narrow(&mut columns.op, scratch)?;
        for &number in &scratch.narrow {
            let op = Op::from_number(number as u32)
                .ok_or_else(|| format!("operation {number} is unknown, expected 0, 1, 2 or 3"))?;
            batch.op.push(op);
        }
        let records = batch.time_ns.len();
        match &mut columns.content {
            None => batch.first_value.resize(records, NO_CONTENT),
            Some(column) => {
                let (lists, lengths) = (&mut scratch.lists, &batch.length);
                lists.decode(column, BATCH_RECORDS)?;
                lists
                    .place(lengths, &mut batch.first_value)
                    .map_err(|misfit| misplaced("content", self.read, misfit))?;
                let values = lists.elements.iter().map(|&v| v as u32);
                batch.values.extend(values);
            }
        }
        if let Some(column) = &mut columns.delta_ratio {
            scratch.lists.decode(column, BATCH_RECORDS)?;
            ratios(&scratch.lists, batch)
                .map_err(|misfit| misplaced("delta_ratio", self.read, misfit))?;
        }
        let lengths = [
            batch.device.len(),
            batch.op.len(),
            batch.offset.len(),
            batch.length.len(),
            batch.first_value.len(),
        ];
        if lengths.iter().any(|&length| length != records) {
            return Err("its columns have different numbers of records".to_owned());
        }
        Ok(records)
    }

    /// Demands that as much was read as the metadata say.
    fn check_end(&self) -> Result<()> {
        let counts = [
            ("records", self.read, self.records),
            ("ratios", self.ratios_read, self.ratios),
        ];
        match counts.iter().find(|(_, found, wanted)| found != wanted) {
            None => Ok(()),
            Some((what, found, wanted)) => Err(self.foreign(format!(
                "it holds {found} {what}, expected {wanted} by its metadata"
            ))),
        }
    }

    fn check_batch(&mut self, batch: &Batch) -> Result<()> {
        if let Some(&value) = batch.values.iter().find(|&&value| value >= self.values) {
            return Err(self.foreign(format!(
                "value id {value} is not below {}, the number of values by its metadata",
                self.values
            )));
        }
        for index in 0..batch.len() {
            let time_ns = batch.time_ns[index];
            let checked = if time_ns < self.last_time_ns {
                Err(Fault::value(
                    "time",
                    time_ns,
                    "no time below the record's before",
                ))
            } else {
                check(batch.op[index], batch.offset[index], batch.length[index])
            };
            checked.map_err(|fault| Error::Malformed {
                path: self.path.clone(),
                place: RecordPlace::Record(self.read + index as u64 + 1),
                fault,
            })?;
            self.last_time_ns = time_ns;
        }
        Ok(())
    }

    fn foreign(&self, what: String) -> Error {
        Error::Native {
            path: self.path.clone(),
            what,
        }
    }
}

fn open_file(bytes: NativeSourceBytes) -> std::result::Result<Box<dyn FileReader>, ParquetError> {
    Ok(match bytes {
        NativeSourceBytes::File(file) => Box::new(SerializedFileReader::new(file)?),
        NativeSourceBytes::Memory(bytes) => Box::new(SerializedFileReader::new(bytes)?),
    })
}

/// The next values of a 64-bit column.
fn wide(
    column: &mut ColumnReader,
    scratch: &mut Scratch,
    out: &mut Vec<u64>,
) -> std::result::Result<(), String> {
    let ColumnReader::Int64ColumnReader(reader) = column else {
        return Err("a column has another type".to_owned());
    };
    scratch.wide.clear();
    reader
        .read_records(BATCH_RECORDS, None, None, &mut scratch.wide)
        .map_err(|e| e.to_string())?;
    out.extend(scratch.wide.iter().map(|&v| v as u64));
    Ok(())
}

/// The next values of a 32-bit column, left in `scratch.narrow`.
fn narrow(column: &mut ColumnReader, scratch: &mut Scratch) -> std::result::Result<(), String> {
    let ColumnReader::Int32ColumnReader(reader) = column else {
        return Err("a column has another type".to_owned());
    };
    scratch.narrow.clear();
    reader
        .read_records(BATCH_RECORDS, None, None, &mut scratch.narrow)
        .map_err(|e| e.to_string())?;
    Ok(())
}

/// Takes the ratios of the records of `batch`, whose operations and lengths are known.
fn ratios(lists: &Lists, batch: &mut Batch) -> std::result::Result<(), Misfit> {
    lists.place(&batch.length, &mut batch.first_ratio)?;
    batch.delta_ratios.reserve(lists.elements.len());
    let mut left = lists.elements.iter();
    for (index, first) in batch.first_ratio.iter().enumerate() {
        if *first == NO_CONTENT {
            continue;
        }
        let op = batch.op[index];
        if op != Op::Write {
            let op = format!("{op:?}").to_lowercase();
            return Err((index, format!("a {op} has R_c, expected it of writes only")));
        }
        for &element in left.by_ref().take(chunks(batch.length[index]) as usize) {
            let ratio = u16::try_from(element).ok().filter(|&ratio| ratio > 0);
            let ratio = ratio.ok_or_else(|| {
                let found = format!("R_c is {element}, expected a number from 1 to {FULL_RATIO}");
                (index, found)
            })?;
            batch.delta_ratios.push(ratio);
        }
    }
    Ok(())
}

/// A misfit of a record of a batch behind `before` records, as text.
fn misplaced(column: &str, before: u64, (index, what): Misfit) -> String {
    format!(
        "record {}, column {column}: {what}",
        before + index as u64 + 1
    )
}

/// Demands that every column chunk lies within the file, which the decoder takes for granted.
fn check_extents(file: &dyn FileReader, bytes: u64) -> std::result::Result<(), String> {
    let columns = file
        .metadata()
        .row_groups()
        .iter()
        .flat_map(|group| group.columns());
    for column in columns {
        let first = column
            .dictionary_page_offset()
            .unwrap_or(column.data_page_offset());
        let end = first.checked_add(column.compressed_size());
        let inside = first >= 0
            && column.compressed_size() >= 0
            && end.is_some_and(|end| end as u64 <= bytes);
        if !inside {
            return Err(format!(
                "column {} has a chunk of {} bytes at byte {first}, expected it within the {bytes} \
                 bytes of the file",
                column.column_path(),
                column.compressed_size()
            ));
        }
    }
    Ok(())
}

/// The key-value metadata, checked.
struct Metadata {
    names: DeviceNames,
    records: u64,
    values: u32,
    ratios: u64,
    origin_ns: u64,
}

impl Metadata {
    fn of(file: &dyn FileReader) -> std::result::Result<Metadata, String> {
        let metadata = file.metadata().file_metadata();
        let pairs = metadata.key_value_metadata().map_or(&[][..], Vec::as_slice);
        let text = |key: &str| {
            pairs
                .iter()
                .find(|pair| pair.key == key)
                .and_then(|pair| pair.value.as_deref())
                .ok_or_else(|| format!("its metadata lacks the key {key}"))
        };
        let version = text(KEY_VERSION)?;
        if version != VERSION {
            return Err(format!(
                "it has version '{version}', expected '{VERSION}'; convert the original trace again"
            ));
        }
        if metadata.schema_descr().root_schema().get_fields() != schema().get_fields() {
            return Err(format!("its columns are not those of version {VERSION}"));
        }
        let style = text(KEY_STYLE)?;
        let style = NameStyle::from_name(style)
            .ok_or_else(|| format!("its device style '{style}' is unknown"))?;
        let mut names = DeviceNames::new(style);
        for label in text(KEY_HOSTS)?.lines() {
            names
                .intern_label("host or file", label.as_bytes())
                .map_err(|fault| fault.to_string())?;
        }
        Ok(Metadata {
            names,
            records: number(KEY_RECORDS, text(KEY_RECORDS)?)?,
            values: number(KEY_VALUES, text(KEY_VALUES)?).and_then(|values| {
                if values > MAX_VALUES {
                    Err("it has too many values".to_owned())
                } else {
                    Ok(values)
                }
            })?,
            ratios: number(KEY_RATIOS, text(KEY_RATIOS)?)?,
            origin_ns: number(KEY_ORIGIN, text(KEY_ORIGIN)?)?,
        })
    }
}

fn number<T: FromStr>(key: &str, text: &str) -> std::result::Result<T, String> {
    text.parse()
        .map_err(|_| format!("its metadata has {key} = '{text}', expected a whole number"))
}
