//! Several traces as one stream of records: one clock, one set of value ids and device numbers.
//!
//! A trace that comes alone keeps its value ids. Several share an interner, so that a digest is one
//! value wherever it occurs; native traces keep ids without digests and can carry content only alone.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::options::Join;
use super::summary::InputSummary;
use crate::devices::{DeviceNames, NameStyle};
use crate::digests::Values;
use crate::error::{Error, Fault, Result};
use crate::formats::Format;
use crate::input::hex;
use crate::reader::TraceReader;
use crate::record::{Batch, Record};

/// The traces of a workload.
pub(crate) struct Inputs {
    inputs: Vec<OpenInput>,
    join: Join,
    shared: Option<Shared>,
}

struct OpenInput {
    reader: TraceReader,
    batch: Batch,
    /// The next record of the batch.
    next: usize,
    /// Shared ids by the trace's own.
    ids: Vec<u32>,
}

/// What several traces have in common.
struct Shared {
    names: DeviceNames,
    values: Values,
    scratch: Vec<u32>,
}

impl Inputs {
    /// Takes open traces, none of which has been read from.
    ///
    /// # Errors
    /// When there is none, or when they cannot be told apart or compared.
    pub(crate) fn new(readers: Vec<TraceReader>, join: Join) -> Result<Inputs> {
        let Some(first) = readers.first() else {
            return Err(Error::Layout(
                "no trace was given, expected at least one".to_owned(),
            ));
        };
        let shared = if readers.len() == 1 {
            None
        } else {
            Some(Shared::among(first, &readers)?)
        };
        let inputs = readers
            .into_iter()
            .map(|reader| OpenInput {
                reader,
                batch: Batch::default(),
                next: 0,
                ids: Vec::new(),
            })
            .collect();
        Ok(Inputs {
            inputs,
            join,
            shared,
        })
    }

    /// Number of value ids of all traces, as far as they were read.
    pub(crate) fn value_count(&self) -> u32 {
        match &self.shared {
            Some(shared) => shared.values.len(),
            None => self.inputs[0].reader.value_count(),
        }
    }

    pub(crate) fn summaries(&self) -> Vec<InputSummary> {
        self.inputs
            .iter()
            .map(|input| summary_of(&input.reader))
            .collect()
    }

    /// Calls `each` with every record in order, and with the names known by then.
    pub(crate) fn for_each(
        &mut self,
        mut each: impl FnMut(&Record<'_>, &DeviceNames) -> Result<()>,
    ) -> Result<()> {
        let Some(shared) = &mut self.shared else {
            return alone(&mut self.inputs[0], each);
        };
        match self.join {
            Join::Sequence => sequence(&mut self.inputs, shared, &mut each),
            Join::Timeline => timeline(&mut self.inputs, shared, &mut each),
        }
    }
}

/// What a summary says about a trace that was read to its end.
pub(crate) fn summary_of(reader: &TraceReader) -> InputSummary {
    InputSummary {
        path: reader.path().to_owned(),
        format: reader.format(),
        compression: reader.compression(),
        stored_bytes: reader.stored_bytes(),
        sha256: hex(&reader.sha256()),
        read: reader.stats().clone(),
    }
}

fn alone(
    input: &mut OpenInput,
    mut each: impl FnMut(&Record<'_>, &DeviceNames) -> Result<()>,
) -> Result<()> {
    while input.reader.next_batch(&mut input.batch)? {
        for record in input.batch.iter() {
            each(&record, input.reader.device_names())?;
        }
    }
    Ok(())
}

fn sequence(
    inputs: &mut [OpenInput],
    shared: &mut Shared,
    each: &mut impl FnMut(&Record<'_>, &DeviceNames) -> Result<()>,
) -> Result<()> {
    let mut begin_ns = 0u64;
    for input in inputs {
        let mut end_ns = begin_ns;
        while input.advance()? {
            end_ns = later(begin_ns, input.batch.time_ns[input.next])?;
            shared.pass(input, end_ns, each)?;
        }
        begin_ns = end_ns;
    }
    Ok(())
}

fn timeline(
    inputs: &mut [OpenInput],
    shared: &mut Shared,
    each: &mut impl FnMut(&Record<'_>, &DeviceNames) -> Result<()>,
) -> Result<()> {
    let mut heads = BinaryHeap::new();
    for (index, input) in inputs.iter_mut().enumerate() {
        if input.advance()? {
            heads.push(Reverse((input.absolute_ns(), index)));
        }
    }
    let origin_ns = heads.peek().map_or(0, |Reverse((time_ns, _))| *time_ns);
    while let Some(Reverse((time_ns, index))) = heads.pop() {
        let input = &mut inputs[index];
        shared.pass(input, time_ns - origin_ns, each)?;
        if input.advance()? {
            heads.push(Reverse((input.absolute_ns(), index)));
        }
    }
    Ok(())
}

fn later(begin_ns: u64, time_ns: u64) -> Result<u64> {
    begin_ns.checked_add(time_ns).ok_or_else(|| {
        Error::Layout("the traces together last longer than 2^64 nanoseconds".to_owned())
    })
}

impl OpenInput {
    /// Makes sure that the batch has a next record; false at the end.
    fn advance(&mut self) -> Result<bool> {
        if self.next < self.batch.len() {
            return Ok(true);
        }
        self.next = 0;
        self.reader.next_batch(&mut self.batch)
    }

    /// Time of the next record on the trace's own clock.
    fn absolute_ns(&self) -> u64 {
        self.reader
            .origin_ns()
            .saturating_add(self.batch.time_ns[self.next])
    }
}

impl Shared {
    fn among(first: &TraceReader, readers: &[TraceReader]) -> Result<Shared> {
        let style = first.device_names().style();
        for reader in readers {
            if reader.device_names().style() != style {
                return Err(Error::Layout(format!(
                    "{} ({}) and {} ({}) name their devices in different ways; convert them to \
                     one format first",
                    first.path(),
                    first.format(),
                    reader.path(),
                    reader.format()
                )));
            }
            if reader.format() == Format::Native && reader.value_count() > 0 {
                return Err(Error::Layout(format!(
                    "{}: a native trace keeps value ids without digests, which cannot be compared \
                     with another trace's; join the original traces",
                    reader.path()
                )));
            }
        }
        Ok(Shared {
            names: DeviceNames::new(style),
            values: Values::default(),
            scratch: Vec::new(),
        })
    }

    /// The number that the device of an input has among all of them.
    fn device(&mut self, device: u32, names: &DeviceNames) -> std::result::Result<u32, Fault> {
        match self.names.style() {
            NameStyle::Number | NameStyle::MajorMinor => Ok(device),
            NameStyle::HostDisk => match names.host_disk(device) {
                Some((host, disk)) => self.names.intern_host(host.as_bytes(), disk as u16),
                None => Ok(device),
            },
            NameStyle::File => self.names.intern_file(names.name(device).as_bytes()),
        }
    }

    /// Hands on the next record of an input.
    fn pass(
        &mut self,
        input: &mut OpenInput,
        time_ns: u64,
        each: &mut impl FnMut(&Record<'_>, &DeviceNames) -> Result<()>,
    ) -> Result<()> {
        let OpenInput {
            reader,
            batch,
            next,
            ids,
        } = input;
        let record = batch.get(*next);
        *next += 1;
        let malformed = |fault| Error::Layout(format!("{}: {fault}", reader.path()));
        let device = self
            .device(record.device, reader.device_names())
            .map_err(malformed)?;
        self.scratch.clear();
        for &value in record.content.unwrap_or_default() {
            while ids.len() <= value as usize {
                let digest = reader.digest(ids.len() as u32);
                ids.push(self.values.intern(digest).map_err(malformed)?);
            }
            self.scratch.push(ids[value as usize]);
        }
        let content = record.content.map(|_| &self.scratch[..]);
        each(
            &Record {
                time_ns,
                device,
                content,
                ..record
            },
            &self.names,
        )
    }
}
