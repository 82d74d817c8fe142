//! A workload streamed from a native file, or from records in memory: it takes no memory that grows with the number
//! of requests.
//!
//! Opening reads the records once for the summary and the layout; each replay reads them again. The
//! requests are those that [`super::Workload`] gives for the same trace.

use std::sync::Arc;

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
use crate::reader::TraceReader;
use crate::record::Batch;

/// A native trace, or one in memory, as a source of requests.
pub struct NativeSource {
    reader: TraceReader,
    first: Arc<FirstPass>,
    selection: Selection,
    translator: Translator,
    batch: Batch,
    next: usize,
}

/// What reading the records once has found, which is all that replays of the same records need.
pub struct FirstPass {
    options: WorkloadOptions,
    summary: Summary,
    layout: Layout,
    /// Whether units with content are touched in part, so that replays must follow the content.
    follow: bool,
}

impl FirstPass {
    pub fn summary(&self) -> &Summary {
        &self.summary
    }
}

impl NativeSource {
    /// Scans a native file, open and not read from yet. `options.join` says nothing here: there is one trace.
    ///
    /// # Errors
    /// When the file is no native trace, is damaged, or cannot be laid out as asked.
    pub fn from_reader(mut reader: TraceReader, options: &WorkloadOptions) -> Result<Self> {
        if !reader.can_rewind() {
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
        let first = FirstPass {
            options: options.clone(),
            summary,
            layout,
            follow,
        };
        Self::after(reader, Arc::new(first))
    }

    /// The source of the same records again, without looking at them first.
    pub fn after(reader: TraceReader, first: Arc<FirstPass>) -> Result<Self> {
        let mut source = NativeSource {
            selection: Selection::new(&first.options.devices),
            translator: Translator::without_following(&first.options)?,
            reader,
            first,
            batch: Batch::default(),
            next: 0,
        };
        source.rewind()?;
        Ok(source)
    }

    pub fn first_pass(&self) -> Arc<FirstPass> {
        self.first.clone()
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
        &self.first.summary
    }

    fn rewind(&mut self) -> Result<()> {
        self.reader.rewind();
        let options = &self.first.options;
        self.translator = match self.first.follow {
            true => Translator::new(options, Some(self.reader.value_count()))?,
            false => Translator::without_following(options)?,
        };
        // Slots are given again in the same order, which the layout relies on.
        self.selection = Selection::new(&options.devices);
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
            place(request, &self.first.layout, slot, step.unit);
            units += u64::from(step.units);
        }
        Ok(!out.requests.is_empty())
    }
}
