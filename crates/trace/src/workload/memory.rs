//! A workload held in memory: 24 bytes a request, 4 bytes a page value and 2 bytes a ratio.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use super::join::Inputs;
use super::layout::Layout;
use super::options::WorkloadOptions;
use super::pass::Pass;
use super::request::{Request, RequestBlock, RequestSource};
use super::summary::Summary;
use super::translate::{Translator, UnitStep};
use crate::error::Result;
use crate::reader::TraceReader;

/// A block is closed at this many requests,
pub(super) const BLOCK_REQUESTS: usize = 1 << 14;

/// or at this many units.
pub(super) const BLOCK_UNITS: u64 = 1 << 18;

/// A handle with its own position; clones share the requests and begin where the original stands.
#[derive(Debug, Clone)]
pub struct Workload {
    data: Arc<Data>,
    next_block: usize,
}

#[derive(Debug)]
struct Data {
    summary: Summary,
    blocks: Vec<RequestBlock>,
}

impl Workload {
    /// Reads traces and lays them out.
    pub fn open<P: AsRef<Path>>(paths: &[P], options: &WorkloadOptions) -> Result<Workload> {
        let readers = paths
            .iter()
            .map(|path| TraceReader::open(path, &options.read))
            .collect::<Result<Vec<_>>>()?;
        Self::from_readers(readers, options)
    }

    /// As [`Workload::open`], from open traces none of which has been read from.
    pub fn from_readers(readers: Vec<TraceReader>, options: &WorkloadOptions) -> Result<Workload> {
        let mut inputs = Inputs::new(readers, options.join)?;
        let mut pass = Pass::new(options)?;
        let mut builder = Builder::default();
        inputs.for_each(|record, names| {
            if let Some(slot) = pass.selection.slot(record.device, names) {
                if let Some(step) = pass.step(slot, record)? {
                    builder.push(slot, record.time_ns, &step, &pass.translator);
                }
            } else {
                pass.left_out += 1;
            }
            Ok(())
        })?;
        let resolve = pass.translator.merged().resolver(inputs.value_count())?;
        let (summary, layout) =
            pass.finish(options, inputs.summaries(), inputs.value_count(), &resolve)?;
        let blocks = builder.finish(&layout, resolve);
        Ok(Workload {
            data: Arc::new(Data { summary, blocks }),
            next_block: 0,
        })
    }
}

impl RequestSource for Workload {
    fn summary(&self) -> &Summary {
        &self.data.summary
    }

    fn rewind(&mut self) -> Result<()> {
        self.next_block = 0;
        Ok(())
    }

    fn next_block(&mut self, out: &mut RequestBlock) -> Result<bool> {
        out.clear();
        let Some(block) = self.data.blocks.get(self.next_block) else {
            return Ok(false);
        };
        self.next_block += 1;
        out.requests.extend_from_slice(&block.requests);
        out.values.extend_from_slice(&block.values);
        out.delta_ratios.extend_from_slice(&block.delta_ratios);
        Ok(true)
    }
}

/// Collects requests by blocks until the layout is known.
#[derive(Default)]
struct Builder {
    blocks: Vec<RequestBlock>,
    open: RequestBlock,
    open_units: u64,
    /// For every request, the index of its region.
    request_regions: Vec<u32>,
    /// Device slot and upper half of the unit; a request's `lpn` holds the lower half until then.
    regions: Vec<(u32, u64)>,
    region_index: HashMap<(u32, u64), u32>,
}

impl Builder {
    fn push(&mut self, slot: u32, time_ns: u64, step: &UnitStep, translator: &Translator) {
        self.open.push(time_ns, step, translator);
        let region = self.region(slot, step.unit >> 32);
        self.request_regions.push(region);
        self.open_units += u64::from(step.units);
        if self.open.requests.len() >= BLOCK_REQUESTS || self.open_units >= BLOCK_UNITS {
            self.close();
        }
    }

    fn region(&mut self, slot: u32, high: u64) -> u32 {
        let key = (slot, high);
        if let Some(&last) = self.request_regions.last()
            && self.regions[last as usize] == key
        {
            return last;
        }
        *self.region_index.entry(key).or_insert_with(|| {
            self.regions.push(key);
            self.regions.len() as u32 - 1
        })
    }

    fn close(&mut self) {
        let mut block = std::mem::take(&mut self.open);
        block.requests.shrink_to_fit();
        block.values.shrink_to_fit();
        block.delta_ratios.shrink_to_fit();
        self.blocks.push(block);
        self.open_units = 0;
    }

    fn finish(mut self, layout: &Layout, resolve: impl Fn(u32) -> u32) -> Vec<RequestBlock> {
        if !self.open.requests.is_empty() {
            self.close();
        }
        let mut regions = self.request_regions.iter();
        for block in &mut self.blocks {
            block
                .values
                .iter_mut()
                .for_each(|value| *value = resolve(*value));
            for (request, &region) in block.requests.iter_mut().zip(&mut regions) {
                let (slot, high) = self.regions[region as usize];
                let unit = high << 32 | u64::from(request.lpn);
                place(request, layout, slot, unit);
            }
        }
        self.blocks
    }
}

#[inline]
pub(super) fn place(request: &mut Request, layout: &Layout, slot: u32, unit: u64) {
    if request.op == crate::record::Op::Flush {
        return;
    }
    (request.lpn, request.units) = layout.place(slot, unit, request.units);
}
