//! A trace as accesses: one request after the other in mapping units, placed within its own device.
//!
//! This is what statistics of a trace read. Nothing is laid out and nothing is kept, so one pass is
//! enough and memory does not grow with the number of requests.

use super::devices::Selection;
use super::join::Inputs;
use super::options::{Join, WorkloadOptions};
use super::summary::InputSummary;
use super::translate::Translator;
use crate::error::Result;
use crate::reader::TraceReader;
use crate::record::{Op, Record};

/// One request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access<'a> {
    /// Nanoseconds since the trace began; never decreases.
    pub time_ns: u64,
    pub op: Op,
    /// The device, numbered from 0 in order of first appearance.
    pub device: u32,
    /// First byte within the device, as the trace gives it.
    pub offset: u64,
    /// Number of bytes, as the trace gives it.
    pub length: u64,
    /// First mapping unit touched, within the device. Trims touch whole units only.
    pub unit: u64,
    /// Number of mapping units touched; 0 for a flush.
    pub units: u32,
    /// Value ids, one a unit, when the content is known: what is written, or what a read returns.
    /// Ids below [`AccessSummary::value_count`] are the trace's own, in order of first appearance;
    /// those of units touched in part count down from `u32::MAX - 1`. Under an overlay all are the
    /// overlay's.
    pub values: Option<&'a [u32]>,
    /// R_c of each unit written, in 1/65535 and never 0, when a [`DeltaModel`](crate::DeltaModel) or,
    /// as that says, the trace has it.
    pub delta_ratios: Option<&'a [u16]>,
}

/// What a whole pass found besides the accesses.
#[derive(Debug, Clone, PartialEq)]
pub struct AccessSummary {
    /// The traces, in the order given.
    pub inputs: Vec<InputSummary>,
    /// Names of the devices by their numbers in the accesses.
    pub devices: Vec<String>,
    /// Records of devices that were not selected.
    pub records_left_out: u64,
    /// Trims that covered no whole unit and were dropped.
    pub trims_ignored: u64,
    /// Number of value ids of the trace's own, or under an overlay of the overlay's.
    pub value_count: u32,
}

/// Calls `each` with every record of some traces that are one, none of which has been read from.
pub fn for_each_record(
    readers: Vec<TraceReader>,
    join: Join,
    mut each: impl FnMut(&Record<'_>) -> Result<()>,
) -> Result<()> {
    Inputs::new(readers, join)?.for_each(|record, _| each(record))
}

/// Calls `each` with every access of some traces, none of which has been read from.
/// `options.compact` says nothing here.
///
/// # Errors
/// When a trace cannot be read, a device asked for does not occur, a model of the options does not
/// work, or `each` fails.
pub fn for_each_access(
    readers: Vec<TraceReader>,
    options: &WorkloadOptions,
    mut each: impl FnMut(&Access<'_>) -> Result<()>,
) -> Result<AccessSummary> {
    let mut inputs = Inputs::new(readers, options.join)?;
    let mut selection = Selection::new(&options.devices);
    let mut translator = Translator::new(options, None)?;
    let mut left_out = 0;
    inputs.for_each(|record, names| {
        let Some(device) = selection.slot(record.device, names) else {
            left_out += 1;
            return Ok(());
        };
        let Some(step) = translator.step(device, record)? else {
            return Ok(());
        };
        each(&Access {
            time_ns: record.time_ns,
            op: step.op,
            device,
            offset: record.offset,
            length: record.length,
            unit: step.unit,
            units: step.units,
            values: step.has_content.then_some(&translator.values[..]),
            delta_ratios: Some(&translator.delta_ratios[..]).filter(|ratios| !ratios.is_empty()),
        })
    })?;
    let kept = selection.kept()?;
    let overlay_ids = translator.overlay_value_ids()?;
    Ok(AccessSummary {
        inputs: inputs.summaries(),
        devices: kept.iter().map(|(_, name)| name.clone()).collect(),
        records_left_out: left_out,
        trims_ignored: translator.trims_ignored,
        value_count: overlay_ids.unwrap_or_else(|| inputs.value_count()),
    })
}
