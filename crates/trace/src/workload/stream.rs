//! A workload streamed from a native file: memory does not grow with the number of requests.
//!
//! Opening reads the file once for the summary and the layout; each replay reads it again. The
//! requests are those that [`super::Workload`] gives for the same file.

use std::path::Path;

use super::devices::Selection;
use super::join::summary_of;
use super::layout::Layout;
use super::memory::{BLOCK_REQUESTS, BLOCK_UNITS, place};
use super::options::WorkloadOptions;
use super::pass::Pass;
use super::request::{RequestBlock, RequestSource};
use super::summary::Summary;
use super::translate::Translator;
use crate::error::{Error, Result};
use crate::formats::Format;
use crate::reader::TraceReader;
use crate::record::Batch;

/// A native trace as a source of requests.
pub struct NativeSource {
    reader: TraceReader,
    options: WorkloadOptions,
    summary: Summary,
    layout: Layout,
    selection: Selection,
    translator: Translator,
    /// Whether units with content are touched in part, so that replays must follow the content.
    follow: bool,
    batch: Batch,
    next: usize,
}

impl NativeSource {
    /// Opens a native file and scans it. `options.join` says nothing here: there is one trace.
    ///
    /// # Errors
    /// When the file is no native trace, is damaged, or cannot be laid out as asked.
    pub fn open(path: impl AsRef<Path>, options: &WorkloadOptions) -> Result<Self> {
        Self::from_reader(TraceReader::open(path, &options.read)?, options)
    }

    /// As [`NativeSource::open`], from an open trace that has not been read from.
    ///
    /// # Errors
    /// As [`NativeSource::open`].
    pub fn from_reader(mut reader: TraceReader, options: &WorkloadOptions) -> Result<Self> {
        if reader.format() != Format::Native {
            return Err(Error::Native {
                path: reader.path().to_owned(),
                what: format!(
                    "only native traces can be streamed and this one is {}; convert it first",
                    reader.format()
                ),
            });
        }
        let mut pass = Pass::new(options)?;
        let mut batch = Batch::default();
        while reader.next_batch(&mut batch)? {
            for record in batch.iter() {
                match pass.selection.slot(record.device, reader.device_names()) {
                    Some(slot) => drop(pass.step(slot, &record)?),
                    None => pass.left_out += 1,
                }
            }
        }
        let follow = pass.translator.partial_units > 0;
        let resolve = pass.translator.merged().resolver(reader.value_count())?;
        let inputs = vec![summary_of(&reader)];
        let (summary, layout) = pass.finish(options, inputs, reader.value_count(), resolve)?;
        let mut source = NativeSource {
            reader,
            options: options.clone(),
            summary,
            layout,
            selection: Selection::new(&options.devices),
            translator: Translator::without_following(options)?,
            follow,
            batch,
            next: 0,
        };
        source.rewind()?;
        Ok(source)
    }

    /// Makes sure that the batch has a next record; false at the end.
    fn advance(&mut self) -> Result<bool> {
        if self.next < self.batch.len() {
            return Ok(true);
        }
        self.next = 0;
        self.reader.next_batch(&mut self.batch)
    }
}

impl RequestSource for NativeSource {
    fn summary(&self) -> &Summary {
        &self.summary
    }

    fn rewind(&mut self) -> Result<()> {
        self.reader.rewind();
        self.translator = match self.follow {
            true => Translator::new(&self.options, Some(self.reader.value_count()))?,
            false => Translator::without_following(&self.options)?,
        };
        // Slots are given again in the same order, which the layout relies on.
        self.selection = Selection::new(&self.options.devices);
        self.batch.clear();
        self.next = 0;
        Ok(())
    }

    fn next_block(&mut self, out: &mut RequestBlock) -> Result<bool> {
        out.clear();
        let mut units = 0;
        while out.requests.len() < BLOCK_REQUESTS && units < BLOCK_UNITS && self.advance()? {
            let record = self.batch.get(self.next);
            self.next += 1;
            let names = self.reader.device_names();
            let Some(slot) = self.selection.slot(record.device, names) else {
                continue;
            };
            let Some(step) = self.translator.step(slot, &record)? else {
                continue;
            };
            out.push(record.time_ns, &step, &self.translator);
            let request = out.requests.last_mut().expect("just pushed");
            place(request, &self.layout, slot, step.unit);
            units += u64::from(step.units);
        }
        Ok(!out.requests.is_empty())
    }
}
