//! What an element asked of its media in a request.

use std::sync::Arc;

use flashlore_array::Observer;
use flashlore_array::element::{Device, DeviceOperation, OperationKind, Work};
use parking_lot::Mutex;

/// Operations before or after the answer. Which slot is used is the element's own affair.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Phase {
    pub fast_reads: u64,
    pub fast_writes: u64,
    pub fast_syncs: u64,
    /// OperationKind, first block and blocks, in order.
    pub slow: Vec<(OperationKind, u64, u64)>,
    pub hashes: u64,
}

impl Phase {
    fn add(&mut self, operation: &DeviceOperation) {
        let blocks = operation.bytes / 4096;
        assert_eq!(operation.bytes % 4096 + operation.offset % 4096, 0);
        match (operation.device, operation.kind) {
            (Device::Slow, kind) => self.slow.push((kind, operation.offset / 4096, blocks)),
            (Device::Fast, OperationKind::Read) => self.fast_reads += blocks,
            (Device::Fast, OperationKind::Write) => self.fast_writes += blocks,
            (Device::Fast, OperationKind::Sync) => self.fast_syncs += 1,
        }
    }
}

/// A request.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Step {
    pub foreground: Phase,
    pub background: Phase,
}

/// Listens, and is asked after each request.
#[derive(Clone, Default)]
pub struct Ear(Arc<Mutex<(bool, Step)>>);

impl Ear {
    /// What was heard since this was asked last.
    pub fn step(&self) -> Step {
        std::mem::take(&mut *self.0.lock()).1
    }

    fn phase(&self, change: impl Fn(&mut Phase)) {
        let (is_background, step) = &mut *self.0.lock();
        change(match is_background {
            true => &mut step.background,
            false => &mut step.foreground,
        });
    }
}

impl Observer for Ear {
    fn device(&mut self, operation: DeviceOperation) {
        self.phase(|phase| phase.add(&operation));
    }

    fn work(&mut self, work: Work, bytes: usize) {
        assert_eq!((work, bytes), (Work::Fingerprint, 4096));
        self.phase(|phase| phase.hashes += 1);
    }

    fn begin_background(&mut self) {
        self.0.lock().0 = true;
    }
}
