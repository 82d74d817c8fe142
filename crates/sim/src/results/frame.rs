//! Columns of equal length, written as CSV or Parquet.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{ConvertedType, Repetition, Type as PhysicalType};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, FileReader, SerializedFileReader};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::record::Field;
use parquet::schema::types::{Type, TypePtr};
use serde_json::{Map, Value};

/// A table to write.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Frame {
    columns: Vec<(String, Column)>,
    rows: usize,
}

/// The values of a column, each possibly absent.
#[derive(Debug, Clone, PartialEq)]
pub enum Column {
    /// Whole numbers.
    Integer(Vec<Option<i64>>),
    /// Numbers.
    Float(Vec<Option<f64>>),
    /// Texts.
    Text(Vec<Option<String>>),
}

/// A frame that cannot be made or written.
#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    /// The file system's reason.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The Parquet writer's reason.
    #[error(transparent)]
    Parquet(#[from] ParquetError),
}

impl From<FrameError> for io::Error {
    fn from(error: FrameError) -> Self {
        match error {
            FrameError::Io(source) => source,
            // What the operating system said is what a reader can do something about.
            FrameError::Parquet(ParquetError::External(source)) => {
                match source.downcast::<io::Error>() {
                    Ok(source) => *source,
                    Err(source) => io::Error::other(source),
                }
            }
            FrameError::Parquet(source) => io::Error::other(source),
        }
    }
}

impl Frame {
    /// A frame of one row for each object: nested objects become columns named by their path, with
    /// dots; lists are left out. The columns `leading` come first, the others follow by name. A
    /// column holds integers if all its numbers are, texts if any of its values is one (or an integer
    /// beyond 64 bits with sign), else numbers.
    pub fn from_rows(leading: &[&str], rows: &[Value]) -> Self {
        let flat: Vec<BTreeMap<String, Value>> = rows.iter().map(flatten).collect();
        let known: BTreeSet<&str> = flat
            .iter()
            .flat_map(|row| row.keys().map(String::as_str))
            .collect();
        let first = leading.iter().copied().filter(|name| known.contains(name));
        let names = first.chain(known.iter().copied().filter(|name| !leading.contains(name)));
        let column = |name: &str| {
            let values: Vec<&Value> = flat
                .iter()
                .map(|row| row.get(name).unwrap_or(&Value::Null))
                .collect();
            (name.to_string(), Column::of(&values))
        };
        Self {
            columns: names.map(column).collect(),
            rows: rows.len(),
        }
    }

    /// Reads what [`Self::write_parquet`] wrote.
    ///
    /// # Errors
    /// A file that is no Parquet, or has columns of other types.
    pub fn read_parquet<R: ChunkReader + 'static>(file: R) -> Result<Self, FrameError> {
        let reader = SerializedFileReader::new(file)?;
        let schema = reader.metadata().file_metadata().schema_descr();
        let mut columns = Vec::new();
        for column in schema.columns() {
            let empty = match column.physical_type() {
                PhysicalType::INT64 => Column::Integer(Vec::new()),
                PhysicalType::DOUBLE => Column::Float(Vec::new()),
                PhysicalType::BYTE_ARRAY => Column::Text(Vec::new()),
                other => {
                    let message = format!("column {} holds {other}", column.name());
                    return Err(ParquetError::General(message).into());
                }
            };
            columns.push((column.name().to_string(), empty));
        }
        let mut rows = 0;
        for row in reader.get_row_iter(None)? {
            for ((_, column), (_, field)) in columns.iter_mut().zip(row?.get_column_iter()) {
                column.push(field);
            }
            rows += 1;
        }
        Ok(Self { columns, rows })
    }

    /// The row with this number as an object, `null` where a value is absent.
    ///
    /// # Panics
    /// When there is no such row.
    pub fn row(&self, number: usize) -> Map<String, Value> {
        let columns = self.columns.iter();
        columns
            .map(|(name, column)| (name.clone(), column.value(number)))
            .collect()
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.rows
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// The columns with their names.
    pub fn columns(&self) -> &[(String, Column)] {
        &self.columns
    }

    /// Writes the frame as CSV with a header; absent values are empty, texts quoted where needed.
    ///
    /// # Errors
    /// The writer's.
    pub fn write_csv<W: Write>(&self, mut out: W) -> io::Result<()> {
        let names: Vec<String> = self.columns.iter().map(|(name, _)| quote(name)).collect();
        writeln!(out, "{}", names.join(","))?;
        for row in 0..self.rows {
            let cells: Vec<String> = self
                .columns
                .iter()
                .map(|(_, column)| column.cell(row))
                .collect();
            writeln!(out, "{}", cells.join(","))?;
        }
        Ok(())
    }

    /// Writes the frame as Parquet: one row group, every column optional.
    ///
    /// # Errors
    /// The writer's.
    pub fn write_parquet<W: Write + Send>(&self, out: W) -> Result<(), FrameError> {
        let schema = Arc::new(self.schema()?);
        let mut file = SerializedFileWriter::new(out, schema, Arc::default())?;
        let mut group = file.next_row_group()?;
        for (_, column) in &self.columns {
            // The schema has one column writer for each of ours.
            if let Some(mut writer) = group.next_column()? {
                column.write(&mut writer)?;
                writer.close()?;
            }
        }
        group.close()?;
        file.close()?;
        Ok(())
    }

    fn schema(&self) -> Result<Type, ParquetError> {
        let field = |(name, column): &(String, Column)| -> Result<TypePtr, ParquetError> {
            let (physical, converted) = match column {
                Column::Integer(_) => (PhysicalType::INT64, ConvertedType::NONE),
                Column::Float(_) => (PhysicalType::DOUBLE, ConvertedType::NONE),
                Column::Text(_) => (PhysicalType::BYTE_ARRAY, ConvertedType::UTF8),
            };
            let field = Type::primitive_type_builder(name, physical)
                .with_repetition(Repetition::OPTIONAL)
                .with_converted_type(converted);
            Ok(Arc::new(field.build()?))
        };
        let fields = self
            .columns
            .iter()
            .map(field)
            .collect::<Result<Vec<_>, _>>()?;
        Type::group_type_builder("results")
            .with_fields(fields)
            .build()
    }
}

fn flatten(row: &Value) -> BTreeMap<String, Value> {
    fn walk(path: &str, value: &Value, flat: &mut BTreeMap<String, Value>) {
        match value {
            Value::Object(map) => {
                for (key, value) in map {
                    let path = if path.is_empty() {
                        key.clone()
                    } else {
                        format!("{path}.{key}")
                    };
                    walk(&path, value, flat);
                }
            }
            Value::Array(_) => {}
            leaf => {
                flat.insert(path.to_string(), leaf.clone());
            }
        }
    }
    let mut flat = BTreeMap::new();
    walk("", row, &mut flat);
    flat
}

fn quote(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_string()
    }
}

impl Column {
    fn of(values: &[&Value]) -> Self {
        let present = || values.iter().filter(|value| !value.is_null());
        if present().all(|value| value.is_i64()) {
            return Self::Integer(values.iter().map(|value| value.as_i64()).collect());
        }
        if present().all(|value| value.is_f64() || value.is_i64()) {
            return Self::Float(values.iter().map(|value| value.as_f64()).collect());
        }
        let text = |value: &&Value| match value {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        };
        Self::Text(values.iter().map(text).collect())
    }

    /// Appends a field of the column's type, or nothing.
    fn push(&mut self, field: &Field) {
        match (self, field) {
            (Self::Integer(values), Field::Long(value)) => values.push(Some(*value)),
            (Self::Float(values), Field::Double(value)) => values.push(Some(*value)),
            (Self::Text(values), Field::Str(value)) => values.push(Some(value.clone())),
            (Self::Integer(values), _) => values.push(None),
            (Self::Float(values), _) => values.push(None),
            (Self::Text(values), _) => values.push(None),
        }
    }

    fn value(&self, row: usize) -> Value {
        match self {
            Self::Integer(values) => values[row].into(),
            Self::Float(values) => values[row].into(),
            Self::Text(values) => values[row].clone().into(),
        }
    }

    fn cell(&self, row: usize) -> String {
        let cell = match self {
            Self::Integer(values) => values[row].map(|value| value.to_string()),
            Self::Float(values) => values[row].map(|value| value.to_string()),
            Self::Text(values) => values[row].as_deref().map(quote),
        };
        cell.unwrap_or_default()
    }

    fn write(&self, writer: &mut SerializedColumnWriter<'_>) -> Result<(), ParquetError> {
        match self {
            Self::Integer(values) => {
                let (present, levels) = split(values, |value| *value);
                writer
                    .typed::<Int64Type>()
                    .write_batch(&present, Some(&levels), None)?;
            }
            Self::Float(values) => {
                let (present, levels) = split(values, |value| *value);
                writer
                    .typed::<DoubleType>()
                    .write_batch(&present, Some(&levels), None)?;
            }
            Self::Text(values) => {
                let (present, levels) = split(values, |text| ByteArray::from(text.as_str()));
                writer
                    .typed::<ByteArrayType>()
                    .write_batch(&present, Some(&levels), None)?;
            }
        }
        Ok(())
    }
}

/// The present values, and for each value whether it is (Parquet's definition levels).
fn split<T, U>(values: &[Option<T>], make: impl Fn(&T) -> U) -> (Vec<U>, Vec<i16>) {
    let levels = values
        .iter()
        .map(|value| i16::from(value.is_some()))
        .collect();
    (values.iter().flatten().map(make).collect(), levels)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn frame() -> Frame {
        Frame::from_rows(
            &["system", "absent"],
            &[
                json!({"system": "plain", "n": 1, "deep": {"x": 0.5, "y": null}, "list": [1], "seed": 7}),
                json!({"system": "a,\"b\"", "n": null, "deep": {"x": 2}, "z": true, "seed": u64::MAX}),
            ],
        )
    }

    #[test]
    fn columns_take_the_type_of_their_values() {
        let frame = frame();
        let column = |name: &str| {
            &frame
                .columns()
                .iter()
                .find(|(known, _)| known == name)
                .unwrap()
                .1
        };
        assert_eq!(column("n"), &Column::Integer(vec![Some(1), None]));
        assert_eq!(column("deep.x"), &Column::Float(vec![Some(0.5), Some(2.0)]));
        let seeds = ["7", "18446744073709551615"].map(|seed| Some(seed.to_string()));
        assert_eq!(column("seed"), &Column::Text(seeds.to_vec()));
        assert!(frame.columns().iter().all(|(name, _)| name != "list"));
    }

    #[test]
    fn csv() {
        let mut text = Vec::new();
        frame().write_csv(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "system,deep.x,deep.y,n,seed,z");
        assert_eq!(lines[1], "plain,0.5,,1,7,");
        assert_eq!(lines[2], "\"a,\"\"b\"\"\",2,,,18446744073709551615,true");
    }

    #[test]
    fn parquet_reads_back() {
        let mut file = tempfile::tempfile().unwrap();
        frame().write_parquet(&mut file).unwrap();
        let read = Frame::read_parquet(file.try_clone().unwrap()).unwrap();
        assert_eq!(read, frame());
        let row = |number: usize| Value::Object(read.row(number));
        assert_eq!(Frame::from_rows(&["system"], &[row(0), row(1)]), frame());
        let reader = SerializedFileReader::new(file).unwrap();
        let rows: Vec<_> = reader
            .get_row_iter(None)
            .unwrap()
            .map(Result::unwrap)
            .collect();
        let value = |row: usize, name: &str| {
            rows[row]
                .get_column_iter()
                .find(|(known, _)| *known == name)
                .unwrap()
                .1
                .clone()
        };
        assert_eq!(rows.len(), 2);
        assert_eq!(value(0, "deep.x"), Field::Double(0.5));
        assert_eq!(value(0, "n"), Field::Long(1));
        assert_eq!(value(1, "n"), Field::Null);
        assert_eq!(value(1, "system"), Field::Str("a,\"b\"".to_string()));
    }
}
