//! Writes a native trace, one row group at a time.

use std::io::{self, Seek, Write};
use std::sync::Arc;

use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::writer::ColumnWriter;
use parquet::errors::{ParquetError, Result as ParquetResult};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::ColumnPath;

use super::seal::{Sealing, placeholder};
use super::{
    KEY_HOSTS, KEY_ORIGIN, KEY_RATIOS, KEY_RECORDS, KEY_STYLE, KEY_VALUES, KEY_VERSION, PRESENT,
    VERSION, schema,
};
use crate::devices::DeviceNames;
use crate::record::{Batch, NO_CONTENT, Record, chunks};

/// A row group is closed at this many records,
const GROUP_RECORDS: usize = 1 << 18;

/// or at this many value ids or ratios.
const GROUP_VALUES: usize = 1 << 20;

/// Streams records into a sealed Parquet file.
pub struct NativeWriter<W: Write + Seek + Send> {
    file: SerializedFileWriter<Sealing<W>>,
    group: Batch,
    records: u64,
    values: u64,
    ratios: u64,
}

impl<W: Write + Seek + Send> NativeWriter<W> {
    /// Begins a file at the start of `out`, which must be empty.
    pub fn new(out: W) -> io::Result<Self> {
        let properties = Arc::new(properties());
        let mut file =
            SerializedFileWriter::new(Sealing::new(out), schema(), properties).map_err(as_io)?;
        file.write_all(&placeholder())?;
        Ok(NativeWriter {
            file,
            group: Batch::default(),
            records: 0,
            values: 0,
            ratios: 0,
        })
    }

    /// Appends a record, whose time must not be below that of the one before.
    ///
    /// # Panics
    /// As [`Batch::push`].
    pub fn push(&mut self, record: &Record<'_>) -> io::Result<()> {
        self.group.push(record);
        self.records += 1;
        for &value in record.content.unwrap_or_default() {
            self.values = self.values.max(u64::from(value) + 1);
        }
        self.ratios += record.delta_ratios.map_or(0, <[u16]>::len) as u64;
        let elements = self.group.values.len().max(self.group.delta_ratios.len());
        if self.group.len() >= GROUP_RECORDS || elements >= GROUP_VALUES {
            self.write_group()?;
        }
        Ok(())
    }

    /// Writes what is left, the metadata and the seal. `origin_ns` is the first record's time on the
    /// trace's own clock.
    pub fn finish(mut self, names: &DeviceNames, origin_ns: u64) -> io::Result<W> {
        if !self.group.is_empty() {
            self.write_group()?;
        }
        let pairs = [
            (KEY_VERSION, VERSION.to_owned()),
            (KEY_RECORDS, self.records.to_string()),
            (KEY_VALUES, self.values.to_string()),
            (KEY_RATIOS, self.ratios.to_string()),
            (KEY_ORIGIN, origin_ns.to_string()),
            (KEY_STYLE, names.style().name().to_owned()),
            (KEY_HOSTS, names.labels().join("\n")),
        ];
        for (key, value) in pairs {
            self.file
                .append_key_value_metadata(KeyValue::new(key.to_owned(), value));
        }
        self.file.into_inner().map_err(as_io)?.seal()
    }

    fn write_group(&mut self) -> io::Result<()> {
        let mut group = self.file.next_row_group().map_err(as_io)?;
        write_columns(&mut group, &self.group).map_err(as_io)?;
        group.close().map_err(as_io)?;
        self.group.clear();
        Ok(())
    }
}

fn write_columns<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    batch: &Batch,
) -> ParquetResult<()> {
    let wide = |column: &[u64]| column.iter().map(|&v| v as i64).collect::<Vec<_>>();
    let narrow = |column: &[u32]| column.iter().map(|&v| v as i32).collect::<Vec<_>>();
    write_column(group, ColumnValues::Wide(&wide(&batch.time_ns)), None)?;
    write_column(group, ColumnValues::Narrow(&narrow(&batch.device)), None)?;
    let ops: Vec<i32> = batch.op.iter().map(|&op| op as i32).collect();
    write_column(group, ColumnValues::Narrow(&ops), None)?;
    write_column(group, ColumnValues::Wide(&wide(&batch.offset)), None)?;
    write_column(group, ColumnValues::Wide(&wide(&batch.length)), None)?;
    write_column(
        group,
        ColumnValues::Narrow(&narrow(&batch.values)),
        Some(&levels(batch, &batch.first_value)),
    )?;
    let ratios: Vec<i32> = batch.delta_ratios.iter().map(|&r| i32::from(r)).collect();
    write_column(
        group,
        ColumnValues::Narrow(&ratios),
        Some(&levels(batch, &batch.first_ratio)),
    )
}

enum ColumnValues<'a> {
    Wide(&'a [i64]),
    Narrow(&'a [i32]),
}

/// Definition and repetition levels of a list column.
type Levels = (Vec<i16>, Vec<i16>);

fn write_column<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: ColumnValues<'_>,
    levels: Option<&Levels>,
) -> ParquetResult<()> {
    let mut column = group
        .next_column()?
        .ok_or_else(|| ParquetError::General("more columns than the schema has".to_owned()))?;
    let (definition, repetition) = match levels {
        Some((definition, repetition)) => (Some(&definition[..]), Some(&repetition[..])),
        None => (None, None),
    };
    match (column.untyped(), values) {
        (ColumnWriter::Int64ColumnWriter(writer), ColumnValues::Wide(values)) => {
            writer.write_batch(values, definition, repetition)?;
        }
        (ColumnWriter::Int32ColumnWriter(writer), ColumnValues::Narrow(values)) => {
            writer.write_batch(values, definition, repetition)?;
        }
        _ => return Err(ParquetError::General("a column of another type".to_owned())),
    }
    column.close()
}

/// The levels of the lists that begin at `first`, or of none where `first` is empty.
fn levels(batch: &Batch, first: &[u32]) -> Levels {
    if first.is_empty() {
        return (vec![0; batch.len()], vec![0; batch.len()]);
    }
    let capacity = batch.values.len().max(batch.len());
    let mut definition = Vec::with_capacity(capacity);
    let mut repetition = Vec::with_capacity(capacity);
    for (&first, &length) in first.iter().zip(&batch.length) {
        repetition.push(0);
        if first == NO_CONTENT {
            definition.push(0);
            continue;
        }
        let count = chunks(length) as usize;
        definition.extend(std::iter::repeat_n(PRESENT, count));
        repetition.extend(std::iter::repeat_n(1, count - 1));
    }
    (definition, repetition)
}

/// Columns of many different numbers are stored as differences, those of few numbers by dictionary.
/// `docs/traces.md` has the sizes and speeds of the alternatives.
fn properties() -> WriterProperties {
    let content = ColumnPath::from(vec!["content".into(), "list".into(), "element".into()]);
    let differences = ["time_ns".into(), "offset".into(), content];
    let mut properties = WriterProperties::builder()
        .set_created_by("Flashlore".to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_dictionary_enabled(true);
    for column in differences {
        properties = properties
            .set_column_dictionary_enabled(column.clone(), false)
            .set_column_encoding(column, Encoding::DELTA_BINARY_PACKED);
    }
    properties.build()
}

fn as_io(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(source) => *source,
            Err(source) => io::Error::other(source),
        },
        error => io::Error::other(error),
    }
}
