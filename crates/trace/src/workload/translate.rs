//! A record becomes a step: the units it touches, which of them in part, and their values.
//!
//! Chunks of content are counted from the record's first byte. Where they coincide with a unit, the
//! unit takes the chunk's value. Elsewhere the unit takes a merged value ([`super::merged`]): of the
//! pieces alone when they cover it, else of its old value and the pieces. A partial read changes
//! nothing, so it returns the unit's value; a unit never written is known by the piece read.
//!
//! Under an overlay ([`crate::overlay`]) each unit of a write takes the value that belongs to the
//! number of the page write, a unit written in part as well, and the trace's own content is not looked
//! at. Delta ratios are drawn by the same numbers, or are the trace's own ([`super::ratios`]).

use std::ops::Range;

use super::current::{CurrentValues, NO_VALUE};
use super::merged::{MergedValues, Piece};
use super::options::WorkloadOptions;
use super::ratios::of_units;
use super::request::MAX_UNITS;
use crate::digests::MAX_VALUES;
use crate::error::{Error, Result};
use crate::overlay::{DeltaModel, Overlay, Ratios};
use crate::record::{Op, Record, UNIT_BYTES};

/// What a record does to the units of its device.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UnitStep {
    pub(crate) op: Op,
    /// First unit within the device.
    pub(crate) unit: u64,
    pub(crate) units: u32,
    pub(crate) head_partial: bool,
    pub(crate) tail_partial: bool,
    /// Whether `values` of the translator holds one id a unit.
    pub(crate) has_content: bool,
}

impl UnitStep {
    /// A step over whole units without content.
    fn bare(op: Op, unit: u64, units: u32) -> UnitStep {
        UnitStep {
            op,
            unit,
            units,
            head_partial: false,
            tail_partial: false,
            has_content: false,
        }
    }
}

/// Turns records into steps and follows the content of every unit.
pub(crate) struct Translator {
    overlay: Option<Box<dyn Overlay>>,
    /// What draws ratios.
    drawn: Option<Ratios>,
    /// Whether ratios are the trace's.
    rated: bool,
    /// Page writes so far, which is the number of the next one.
    page_writes: u64,
    /// One more than the largest value id of the overlay.
    overlay_ids: u64,
    follow: bool,
    current: CurrentValues,
    merged: MergedValues,
    /// Values of the last step's units.
    pub(crate) values: Vec<u32>,
    /// What those units held before; empty under an overlay and unless content is followed.
    pub(crate) old: Vec<u32>,
    /// R_c of the last step's units; empty unless it is a write and has it.
    pub(crate) delta_ratios: Vec<u16>,
    /// Units with content that a record covered in part.
    pub(crate) partial_units: u64,
    /// Trims that covered no whole unit.
    pub(crate) trims_ignored: u64,
    /// Units that trims covered in part.
    pub(crate) trim_units_ignored: u64,
}

impl Translator {
    /// Follows the content, which a summary and partial units need. `value_count` is the number of
    /// the trace's values, if it is known before.
    pub(crate) fn new(options: &WorkloadOptions, value_count: Option<u32>) -> Result<Self> {
        let drawn = options.delta.map(|model| model.begin()).transpose()?;
        Ok(Translator {
            overlay: options.content.begin()?,
            drawn: drawn.flatten(),
            rated: options.delta == Some(DeltaModel::FromTrace),
            page_writes: 0,
            overlay_ids: 0,
            follow: true,
            current: CurrentValues::default(),
            merged: MergedValues::after(value_count),
            values: Vec::new(),
            old: Vec::new(),
            delta_ratios: Vec::new(),
            partial_units: 0,
            trims_ignored: 0,
            trim_units_ignored: 0,
        })
    }

    /// As [`Translator::new`], for a trace whose contents are known to be whole units.
    pub(crate) fn without_following(options: &WorkloadOptions) -> Result<Self> {
        Ok(Translator {
            follow: false,
            ..Translator::new(options, None)?
        })
    }

    /// Whether page writes can have an R_c.
    pub(crate) fn has_ratios(&self) -> bool {
        self.rated || self.drawn.is_some()
    }

    /// The number that all value ids of the overlay are below.
    ///
    /// # Errors
    /// When an id is not, or the ids are too many. `None` without an overlay.
    pub(crate) fn overlay_value_ids(&self) -> Result<Option<u32>> {
        let Some(overlay) = &self.overlay else {
            return Ok(None);
        };
        let said = overlay.value_ids();
        if said > MAX_VALUES {
            return Err(Error::Layout(format!(
                "{} pages are written with values of their own, expected at most {MAX_VALUES}",
                self.page_writes
            )));
        }
        if self.overlay_ids > u64::from(said) {
            return Err(Error::Layout(format!(
                "the content model gave the value id {}, expected one below {said}",
                self.overlay_ids - 1
            )));
        }
        Ok(Some(said))
    }

    /// The merged values so far.
    pub(crate) fn merged(&self) -> &MergedValues {
        &self.merged
    }

    /// Translates a record of the device in `slot`; `None` when nothing is left of a trim.
    ///
    /// # Errors
    /// When a trim covers more units than a workload may have.
    pub(crate) fn step(&mut self, slot: u32, record: &Record<'_>) -> Result<Option<UnitStep>> {
        self.values.clear();
        self.old.clear();
        self.delta_ratios.clear();
        match record.op {
            Op::Flush => Ok(Some(UnitStep::bare(Op::Flush, 0, 0))),
            Op::Trim => self.trim(slot, record),
            Op::Read | Op::Write => Ok(Some(self.transfer(slot, record))),
        }
    }

    fn trim(&mut self, slot: u32, record: &Record<'_>) -> Result<Option<UnitStep>> {
        let (touched, covered) = (record.bytes().touched(), record.bytes().covered());
        let units = covered.end - covered.start;
        self.trim_units_ignored += touched.end - touched.start - units;
        if units == 0 {
            self.trims_ignored += 1;
            return Ok(None);
        }
        if units > MAX_UNITS {
            return Err(Error::Layout(format!(
                "a trim covers {units} mapping units, expected at most {MAX_UNITS}"
            )));
        }
        self.current.forget(slot, covered.start, covered.end);
        Ok(Some(UnitStep::bare(Op::Trim, covered.start, units as u32)))
    }

    fn transfer(&mut self, slot: u32, record: &Record<'_>) -> UnitStep {
        let bytes = record.bytes();
        let Range { start, end } = bytes.touched();
        let has_content = match self.overlay {
            Some(_) => record.op == Op::Write,
            None => record.content.is_some(),
        };
        if record.op == Op::Write {
            self.draw(slot, start, end);
            if let Some(ratios) = record.delta_ratios.filter(|_| self.rated) {
                of_units(record, ratios, &mut self.delta_ratios);
            }
        }
        match record.content {
            _ if self.overlay.is_some() => {}
            Some(content) => self.contents(slot, record, content),
            None if record.op == Op::Write && !self.current.is_empty() => {
                self.current.forget(slot, start, end);
            }
            None => {}
        }
        UnitStep {
            op: record.op,
            unit: start,
            units: (end - start) as u32,
            head_partial: bytes.begins_within(),
            tail_partial: bytes.ends_within(),
            has_content,
        }
    }

    /// Draws what belongs to the numbers of the page writes to the units `from..to`.
    fn draw(&mut self, slot: u32, from: u64, to: u64) {
        let numbers = self.page_writes..self.page_writes + (to - from);
        if let Some(overlay) = &mut self.overlay {
            for (unit, number) in (from..to).zip(numbers.clone()) {
                let value = overlay.write(slot, unit, number);
                self.overlay_ids = self.overlay_ids.max(u64::from(value) + 1);
                self.values.push(value);
            }
        }
        if let Some(ratios) = &self.drawn {
            self.delta_ratios
                .extend(numbers.map(|number| ratios.of(number)));
        }
        self.page_writes += to - from;
    }

    /// Fills `values` and `old` and brings the units' current values up to date.
    fn contents(&mut self, slot: u32, record: &Record<'_>, content: &[u32]) {
        if !self.follow {
            self.values.extend_from_slice(content);
            return;
        }
        for unit in record.bytes().touched() {
            let part = record.bytes().on(unit);
            let is_whole = part.end - part.start == UNIT_BYTES;
            let is_chunk = is_whole && part.start.is_multiple_of(UNIT_BYTES);
            let old = self.current.get(slot, unit);
            self.partial_units += u64::from(!is_chunk);
            let value = match (record.op, is_whole) {
                (_, true) => self.lay(NO_VALUE, unit, part, record, content),
                (Op::Read, false) if old != NO_VALUE => old,
                (_, false) => self.lay(old, unit, part, record, content),
            };
            if record.op == Op::Write || old == NO_VALUE {
                self.current.replace(slot, unit, value);
            }
            self.values.push(value);
            self.old.push(old);
        }
    }

    /// The value of a unit after the record's pieces, its bytes `part`, are laid over `old`.
    fn lay(
        &mut self,
        old: u32,
        unit: u64,
        part: Range<u64>,
        record: &Record<'_>,
        content: &[u32],
    ) -> u32 {
        let mut value = old;
        let mut at = part.start;
        while at < part.end {
            let (chunk, from) = (at / UNIT_BYTES, at % UNIT_BYTES);
            let length = (part.end - at).min(UNIT_BYTES - from);
            let piece = content[chunk as usize];
            if length == UNIT_BYTES {
                return piece;
            }
            value = self.merged.intern(Piece {
                old: value,
                value: piece,
                at: (record.offset + at - unit * UNIT_BYTES) as u16,
                from: from as u16,
                length: length as u16,
            });
            at += length;
        }
        value
    }
}
