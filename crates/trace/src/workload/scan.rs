//! What one pass over the steps of a workload finds out, for its summary and its layout.
//!
//! Memory grows with the units touched and the values seen, not with the number of requests, except
//! for the prefill, which grows with the reads of units never touched before.

use super::current::NO_VALUE;
use super::layout::{DeviceExtent, Layout};
use super::summary::{ContentCounts, OpCounts, PrefillRun};
use super::translate::{Translator, UnitStep};
use super::units::{UnitSet, masks};
use crate::error::Result;
use crate::record::{NO_CONTENT, Op, Record};

#[derive(Debug, Default)]
pub(crate) struct Scan {
    devices: Vec<DeviceScan>,
    pub(crate) counts: OpCounts,
    pub(crate) requests: u64,
    pub(crate) span_ns: u64,
    /// Pages written with content and an R_c.
    pub(crate) rated: u64,
    /// Pages written with an R_c and without content.
    pub(crate) rated_without_content: u64,
    content: ContentCounts,
    seen: IdSet,
    written: IdSet,
    prefill: Vec<FirstRead>,
    prefill_values: Vec<u32>,
}

#[derive(Debug, Default)]
struct DeviceScan {
    touched: UnitSet,
    trimmed: UnitSet,
    end: u64,
}

/// Units whose first access is a read, within one device.
#[derive(Debug)]
struct FirstRead {
    slot: u32,
    unit: u64,
    units: u32,
    first_value: u32,
}

/// What a scan leaves behind once the addresses are laid out.
pub(crate) struct Scanned {
    pub(crate) layout: Layout,
    pub(crate) counts: OpCounts,
    pub(crate) requests: u64,
    pub(crate) span_ns: u64,
    pub(crate) content: ContentCounts,
    pub(crate) prefill: Vec<PrefillRun>,
    pub(crate) prefill_values: Vec<u32>,
}

impl Scan {
    /// Takes in a step of the device in `slot`; `translator` still holds the step's values.
    pub(crate) fn observe(
        &mut self,
        slot: u32,
        step: &UnitStep,
        translator: &Translator,
        record: &Record<'_>,
    ) {
        while self.devices.len() <= slot as usize {
            self.devices.push(DeviceScan::default());
        }
        self.requests += 1;
        self.span_ns = record.time_ns;
        self.counts
            .of(step.op)
            .add(u64::from(step.units), record.length);
        let end = step.unit + u64::from(step.units);
        match step.op {
            Op::Flush => return,
            Op::Read => self.first_reads(slot, step, translator),
            Op::Write | Op::Trim => {}
        }
        let device = &mut self.devices[slot as usize];
        device.end = device.end.max(end);
        match step.op {
            Op::Trim => device.trimmed.insert(step.unit, end),
            _ => device.touched.insert(step.unit, end),
        }
        let rated = translator.delta_ratios.len() as u64;
        match step.has_content {
            true => self.rated += rated,
            false => self.rated_without_content += rated,
        }
        if step.has_content {
            self.contents(step.op, translator);
        }
    }

    /// Counts the values of a step. An overlay's are not counted: beside them there are no old ones.
    fn contents(&mut self, op: Op, translator: &Translator) {
        for (&value, &old) in translator.values.iter().zip(&translator.old) {
            self.content.distinct_values += u64::from(self.seen.insert(value));
            if op == Op::Read {
                self.content.pages_read += 1;
                self.content.reads_differing += u64::from(old != NO_VALUE && old != value);
            } else {
                self.content.pages_written += 1;
                self.content.distinct_written += u64::from(self.written.insert(value));
                self.content.silent += u64::from(old == value);
            }
        }
    }

    /// Notes the units of a read that no operation has touched before.
    fn first_reads(&mut self, slot: u32, step: &UnitStep, translator: &Translator) {
        let device = &mut self.devices[slot as usize];
        for (word, mask) in masks(step.unit, step.unit + u64::from(step.units)) {
            let mut missing = mask & !device.touched.word(word);
            if missing != 0 && !device.trimmed.is_empty() {
                missing &= !device.trimmed.word(word);
            }
            while missing != 0 {
                let from = missing.trailing_zeros();
                let units = (missing >> from).trailing_ones();
                missing &= !(u64::MAX >> (64 - units) << from);
                let unit = word * 64 + u64::from(from);
                let first = (unit - step.unit) as usize;
                let first_value = if step.has_content {
                    let at = self.prefill_values.len() as u32;
                    let run = &translator.values[first..first + units as usize];
                    self.prefill_values.extend_from_slice(run);
                    at
                } else {
                    NO_CONTENT
                };
                push_run(
                    &mut self.prefill,
                    FirstRead {
                        slot,
                        unit,
                        units,
                        first_value,
                    },
                );
            }
        }
    }

    /// Lays the addresses out and turns first reads into the prefill. `devices` are the numbers of
    /// the devices by slot; `resolve` makes provisional value ids final.
    pub(crate) fn finish(
        mut self,
        devices: &[u32],
        compact: bool,
        resolve: impl Fn(u32) -> u32,
    ) -> Result<Scanned> {
        self.devices.resize_with(devices.len(), DeviceScan::default);
        let extents = self
            .devices
            .into_iter()
            .zip(devices)
            .map(|(scan, &device)| DeviceExtent {
                device,
                touched: scan.touched,
                end: scan.end,
            })
            .collect();
        let layout = Layout::new(extents, compact)?;
        let mut prefill: Vec<PrefillRun> = self
            .prefill
            .iter()
            .map(|run| {
                let (lpn, units) = layout.place(run.slot, run.unit, run.units);
                PrefillRun {
                    lpn,
                    units,
                    first_value: run.first_value,
                }
            })
            .collect();
        prefill.sort_unstable_by_key(|run| run.lpn);
        self.prefill_values
            .iter_mut()
            .for_each(|value| *value = resolve(*value));
        Ok(Scanned {
            layout,
            counts: self.counts,
            requests: self.requests,
            span_ns: self.span_ns,
            content: self.content,
            prefill,
            prefill_values: self.prefill_values,
        })
    }
}

/// Appends a run, joined with the last one where it goes on.
fn push_run(runs: &mut Vec<FirstRead>, run: FirstRead) {
    if let Some(last) = runs.last_mut()
        && last.slot == run.slot
        && last.unit + u64::from(last.units) == run.unit
        && goes_on(last, &run)
    {
        last.units += run.units;
        return;
    }
    runs.push(run);
}

fn goes_on(last: &FirstRead, run: &FirstRead) -> bool {
    match (last.first_value, run.first_value) {
        (NO_CONTENT, NO_CONTENT) => true,
        (NO_CONTENT, _) | (_, NO_CONTENT) => false,
        (last_value, run_value) => last_value + last.units == run_value,
    }
}

/// A set of value ids, which are dense from 0 up and from the top down.
#[derive(Debug, Default)]
struct IdSet {
    low: Vec<u64>,
    high: Vec<u64>,
}

impl IdSet {
    /// Adds an id; whether it is new.
    #[inline]
    fn insert(&mut self, id: u32) -> bool {
        let (bits, at) = match id <= u32::MAX / 2 {
            true => (&mut self.low, id),
            false => (&mut self.high, u32::MAX - id),
        };
        let (word, mask) = ((at / 64) as usize, 1u64 << (at % 64));
        if bits.len() <= word {
            bits.resize((word + 1).max(bits.len() * 2), 0);
        }
        let new = bits[word] & mask == 0;
        bits[word] |= mask;
        new
    }
}
