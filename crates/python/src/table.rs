//! Columns of equal length for Python: Arrow data, handed over through its C stream interface without a copy.

use std::sync::Arc;

use arrow_array::ffi_stream::{ArrowArrayStreamReader, FFI_ArrowArrayStream};
use arrow_array::{
    ArrayRef, Float64Array, Int64Array, RecordBatch, RecordBatchIterator, RecordBatchReader,
    StringArray,
};
use arrow_schema::{ArrowError, Schema, SchemaRef};
use flashlore_sim::results::{Column, Frame};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::errors::exception;

/// The name of a capsule that holds a stream, as the interface demands it.
const STREAM: &std::ffi::CStr = c"arrow_array_stream";

/// A table; nothing changes it.
#[pyclass(frozen, module = "flashlore._core")]
pub struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

#[pymethods]
impl Table {
    /// The table of anything that offers an Arrow stream.
    #[staticmethod]
    fn from_stream(data: &Bound<'_, PyAny>) -> PyResult<Self> {
        let reader = stream_of(data)?;
        let schema = reader.schema();
        let batches = reader.collect::<Result<Vec<_>, _>>().map_err(refused)?;
        Ok(Table { schema, batches })
    }

    /// Names of the columns in order.
    #[getter]
    fn columns(&self) -> Vec<String> {
        let fields = self.schema.fields().iter();
        fields.map(|field| field.name().clone()).collect()
    }

    fn __len__(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    /// The table as an Arrow stream. The columns keep their types, whatever schema is asked for.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batches = self.batches.clone().into_iter().map(Ok);
        let reader = RecordBatchIterator::new(batches, self.schema.clone());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), STREAM)
    }
}

impl Table {
    /// A table of columns of equal length.
    pub fn of(columns: Vec<(&str, ArrayRef)>) -> Result<Self, ArrowError> {
        let batch = RecordBatch::try_from_iter(columns)?;
        Ok(Table {
            schema: batch.schema(),
            batches: vec![batch],
        })
    }

    /// A frame of results, whose columns keep their order.
    pub fn of_frame(frame: &Frame) -> PyResult<Self> {
        if frame.columns().is_empty() {
            return Ok(Table {
                schema: Arc::new(Schema::empty()),
                batches: Vec::new(),
            });
        }
        let columns = frame.columns().iter();
        let named = columns.map(|(name, column)| (name.as_str(), array(column), true));
        let batch = RecordBatch::try_from_iter_with_nullable(named).map_err(refused)?;
        Ok(Table {
            schema: batch.schema(),
            batches: vec![batch],
        })
    }
}

fn array(column: &Column) -> ArrayRef {
    match column {
        Column::Integer(values) => Arc::new(Int64Array::from(values.clone())),
        Column::Float(values) => Arc::new(Float64Array::from(values.clone())),
        Column::Text(values) => Arc::new(StringArray::from_iter(values)),
    }
}

/// The stream that a Python object offers.
pub fn stream_of(data: &Bound<'_, PyAny>) -> PyResult<ArrowArrayStreamReader> {
    let Ok(method) = data.getattr("__arrow_c_stream__") else {
        let found = data.get_type().name()?;
        return Err(exception(
            "UsageError",
            format!("{found} offers no Arrow data; expected an object with __arrow_c_stream__"),
        ));
    };
    let capsule = method.call0()?.cast_into::<PyCapsule>()?;
    let pointer = capsule.pointer_checked(Some(STREAM))?;
    // SAFETY: a capsule of this name holds a stream by the interface's rules, and taking it leaves a released one
    // behind, which the capsule's destructor passes over.
    let reader = unsafe { ArrowArrayStreamReader::from_raw(pointer.as_ptr().cast()) };
    reader.map_err(refused)
}

fn refused(error: ArrowError) -> PyErr {
    exception("UsageError", error.to_string())
}
