//! The first pass over the records of a workload: it selects devices, translates and scans, and ends
//! in the summary and the layout.

use super::devices::Selection;
use super::layout::Layout;
use super::options::WorkloadOptions;
use super::scan::{Scan, Scanned};
use super::summary::{DeviceSummary, InputSummary, Summary};
use super::translate::{Translator, UnitStep};
use crate::error::{Error, Result};
use crate::record::Record;

pub(crate) struct Pass {
    pub(crate) selection: Selection,
    pub(crate) translator: Translator,
    scan: Scan,
    pub(crate) left_out: u64,
}

impl Pass {
    pub(crate) fn new(options: &WorkloadOptions) -> Result<Pass> {
        Ok(Pass {
            selection: Selection::new(&options.devices),
            translator: Translator::new(options, None)?,
            scan: Scan::default(),
            left_out: 0,
        })
    }

    pub(crate) fn step(&mut self, slot: u32, record: &Record<'_>) -> Result<Option<UnitStep>> {
        let step = self.translator.step(slot, record)?;
        if let Some(step) = &step {
            self.scan.observe(slot, step, &self.translator, record);
        }
        Ok(step)
    }

    /// Ends the pass over a trace of `value_count` values.
    pub(crate) fn finish(
        self,
        options: &WorkloadOptions,
        inputs: Vec<InputSummary>,
        value_count: u32,
        resolve: impl Fn(u32) -> u32,
    ) -> Result<(Summary, Layout)> {
        let kept = self.selection.kept()?;
        if self.scan.requests == 0 {
            return Err(Error::Layout(
                "no request is left of the trace, expected at least one".to_owned(),
            ));
        }
        let overlay_ids = self.translator.overlay_value_ids()?;
        let (rated_pages, lost) = (self.scan.rated, self.scan.rated_without_content);
        let numbers: Vec<u32> = kept.iter().map(|&(number, _)| number).collect();
        let scanned = self.scan.finish(&numbers, options.compact, resolve)?;
        let merged = self.translator.merged().len();
        let Scanned {
            layout,
            counts,
            requests,
            span_ns,
            content,
            prefill,
            prefill_values,
        } = scanned;
        let (has_content, value_ids) = match overlay_ids {
            None => (
                content.pages_written + content.pages_read > 0,
                value_count + merged,
            ),
            Some(ids) => (counts.writes.pages > 0, ids),
        };
        if lost > 0 {
            return Err(Error::Layout(format!(
                "R_c belongs to page writes with content, and {lost} of {} have none; say what \
                 they have, as in the content model 'distinct'",
                rated_pages + lost
            )));
        }
        let summary = Summary {
            inputs,
            requests,
            counts,
            span_ns,
            footprint_units: layout.footprint(),
            lpn_count: layout.total(),
            devices: device_summaries(kept, &layout),
            records_left_out: self.left_out,
            trims_ignored: self.translator.trims_ignored,
            trim_units_ignored: self.translator.trim_units_ignored,
            options: options.clone(),
            has_content,
            value_ids,
            rated_pages,
            content,
            prefill,
            prefill_values,
        };
        Ok((summary, layout))
    }
}

fn device_summaries(kept: &[(u32, String)], layout: &Layout) -> Vec<DeviceSummary> {
    let mut devices: Vec<DeviceSummary> = kept
        .iter()
        .enumerate()
        .map(|(slot, (number, name))| {
            let (first_lpn, lpn_count, footprint_units) = layout.extent(slot);
            DeviceSummary {
                name: name.clone(),
                number: *number,
                first_lpn,
                lpn_count,
                footprint_units,
            }
        })
        .collect();
    devices.sort_unstable_by_key(|device| device.number);
    devices
}
