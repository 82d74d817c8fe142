//! The devices of an array: a simulated SSD, and disks.
//!
//! Both count the operations they are asked for. These are fewer than the element's, for neighbours are one.

use flashlore_array::element::{DeviceOperation, OperationKind};
use flashlore_array::hdd::{Completion, Raid0};
use flashlore_array::timed::{TimedDevice, TimedError};
use flashlore_flash::Time;
use flashlore_trace::Op;

use super::contents::Numbers;
use crate::engine::driver::Response;
use crate::engine::ssd::{Ssd, SsdRequest};

/// An SSD that takes operations of an element.
pub struct FastDevice<'a> {
    pub ssd: Ssd<'a>,
    /// The numbers of what it is written, if its system asks for them.
    numbers: Option<Numbers>,
    taken: Vec<u32>,
    heard: Vec<Response>,
    /// Operations so far, syncs aside.
    pub operations: u64,
}

impl<'a> FastDevice<'a> {
    /// An SSD, with the numbers of what it is going to be written if its system asks for them.
    pub fn new(ssd: Ssd<'a>, numbers: Option<Numbers>) -> Self {
        FastDevice {
            ssd,
            numbers,
            taken: Vec::new(),
            heard: Vec::new(),
            operations: 0,
        }
    }
}

impl TimedDevice for FastDevice<'_> {
    fn submit(
        &mut self,
        time: Time,
        id: u64,
        operation: &DeviceOperation,
    ) -> Result<(), TimedError> {
        let &DeviceOperation { offset, bytes, .. } = operation;
        let refused = |error: crate::engine::SsdError| {
            TimedError::Refused(format!("the SSD of the array: {error}"))
        };
        let op = match operation.kind {
            OperationKind::Read => Op::Read,
            OperationKind::Write => Op::Write,
            OperationKind::Sync => Op::Flush,
        };
        let mut request = SsdRequest::of_bytes(op, offset, bytes).map_err(refused)?;
        if op != Op::Flush {
            self.operations += 1;
        }
        if let (Op::Write, Some(numbers)) = (op, &self.numbers) {
            numbers.take(request.lpn.into(), request.units.into(), &mut self.taken);
            request = request.with_values(&self.taken);
        }
        self.ssd.submit(time, id, request).map_err(refused)
    }

    fn next_event(&self) -> Option<Time> {
        self.ssd.next_event()
    }

    fn advance(&mut self, until: Time, done: &mut Vec<Completion>) -> Result<(), TimedError> {
        self.heard.clear();
        let advanced = self.ssd.advance(until, &mut self.heard);
        advanced.map_err(|error| TimedError::Refused(format!("the SSD of the array: {error}")))?;
        done.extend(
            self.heard
                .iter()
                .map(|&Response { id, at }| Completion { id, at }),
        );
        Ok(())
    }
}

/// Disks that take operations of an element.
pub struct SlowDevice {
    pub disks: Raid0,
    /// Reads so far.
    pub reads: u64,
    /// Writes so far.
    pub writes: u64,
}

impl SlowDevice {
    /// Disks that were asked for nothing.
    pub fn new(disks: Raid0) -> Self {
        SlowDevice {
            disks,
            reads: 0,
            writes: 0,
        }
    }
}

impl TimedDevice for SlowDevice {
    fn submit(
        &mut self,
        time: Time,
        id: u64,
        operation: &DeviceOperation,
    ) -> Result<(), TimedError> {
        match operation.kind {
            OperationKind::Read => self.reads += 1,
            OperationKind::Write => self.writes += 1,
            OperationKind::Sync => {}
        }
        TimedDevice::submit(&mut self.disks, time, id, operation)
    }

    fn next_event(&self) -> Option<Time> {
        self.disks.next_event()
    }

    fn advance(&mut self, until: Time, done: &mut Vec<Completion>) -> Result<(), TimedError> {
        TimedDevice::advance(&mut self.disks, until, done)
    }
}
