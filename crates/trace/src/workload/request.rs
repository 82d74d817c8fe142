//! Requests in mapping units, and where a simulation gets them from.

use crate::error::Result;
use crate::record::{NO_CONTENT, Op};
use crate::workload::Summary;
use crate::workload::translate::{Translator, UnitStep};

/// The most mapping units a workload may span: LPNs stay below it.
pub const MAX_UNITS: u64 = u32::MAX as u64 - 1;

/// One request: 24 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Nanoseconds since the trace began; never decreases.
    pub time_ns: u64,
    /// First mapping unit touched.
    pub lpn: u32,
    /// Number of mapping units touched. 0 for a flush, and under a compact layout for a trim of
    /// units that nothing else touches.
    pub units: u32,
    /// Index of the first unit's value id in the block's `values`, the others following, or
    /// [`NO_CONTENT`]. Those of a read are what the trace says it returned.
    pub first_value: u32,
    /// What is asked.
    pub op: Op,
    /// The first unit is touched from its middle on.
    pub head_partial: bool,
    /// The last unit is touched up to its middle. A request within one unit may have either flag or
    /// both.
    pub tail_partial: bool,
}

const _: () = assert!(size_of::<Request>() == 24);

/// Some thousand consecutive requests.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RequestBlock {
    /// The requests in order.
    pub requests: Vec<Request>,
    /// Value ids, one for each unit of each request with content.
    pub values: Vec<u32>,
    /// R_c beside each value id, in 1/65535, and 0 beside those of reads and where the trace has none;
    /// empty without a [`DeltaModel`](crate::DeltaModel).
    pub delta_ratios: Vec<u16>,
}

impl RequestBlock {
    /// The value ids of a request of this block, one a unit.
    ///
    /// # Panics
    /// When the request is not one of this block.
    #[inline(always)]
    pub fn content(&self, request: &Request) -> Option<&[u32]> {
        let first = request.first_value as usize;
        (request.first_value != NO_CONTENT)
            .then(|| &self.values[first..first + request.units as usize])
    }

    /// R_c of each unit that a request of this block writes, in 1/65535, and 0 only where it is to be
    /// the trace's and that has none; `None` unless it is a write and there is a
    /// [`DeltaModel`](crate::DeltaModel).
    ///
    /// # Panics
    /// When the request is not one of this block.
    #[inline(always)]
    pub fn delta_ratios(&self, request: &Request) -> Option<&[u16]> {
        let first = request.first_value as usize;
        let has = request.op == Op::Write
            && request.first_value != NO_CONTENT
            && !self.delta_ratios.is_empty();
        has.then(|| &self.delta_ratios[first..first + request.units as usize])
    }

    /// Drops all requests, keeps the memory.
    pub fn clear(&mut self) {
        self.requests.clear();
        self.values.clear();
        self.delta_ratios.clear();
    }

    /// Appends the request of the translator's last step, not yet placed, with its values.
    pub(crate) fn push(&mut self, time_ns: u64, step: &UnitStep, translator: &Translator) {
        let first_value = match step.has_content {
            true => self.values.len() as u32,
            false => NO_CONTENT,
        };
        self.values.extend_from_slice(&translator.values);
        if translator.has_ratios() && step.has_content {
            self.delta_ratios
                .extend_from_slice(&translator.delta_ratios);
            self.delta_ratios.resize(self.values.len(), 0);
        }
        self.requests.push(Request {
            time_ns,
            lpn: step.unit as u32,
            units: step.units,
            first_value,
            op: step.op,
            head_partial: step.head_partial,
            tail_partial: step.tail_partial,
        });
    }
}

/// A replayable stream of requests.
pub trait RequestSource {
    /// What is known about the whole before it begins.
    fn summary(&self) -> &Summary;

    /// Back to the first request.
    fn rewind(&mut self) -> Result<()>;

    /// Replaces the contents of `out` with the next requests; false, and no request, at the end.
    fn next_block(&mut self, out: &mut RequestBlock) -> Result<bool>;
}
