//! What a request asks of devices and processor, in order, as heard from an element.

use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};

use crate::element::{DeviceOperation, Observer, OperationKind, Work};
use crate::hdd::Time;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TimedStep {
    Device(DeviceOperation),
    Work(Work),
    /// The host has its answer; what follows goes on in the background.
    Background,
    /// What follows waits for all chains that began before.
    Barrier,
}

/// How long the processor works, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Costs {
    /// A block is encoded. The paper says only that it overlaps with input and output.
    pub encode: Time,
    pub decode: Time,
    pub signature: Time,
    pub fingerprint: Time,
}

impl Costs {
    /// Decoding takes what the paper says, about 10 us; encoding and a fingerprint are assumed to take as long; a
    /// signature, which sums 32 bytes, nothing.
    pub const PAPER: Costs = Costs {
        encode: 10_000,
        decode: 10_000,
        signature: 0,
        fingerprint: 10_000,
    };

    /// Nanoseconds of a piece of work.
    pub fn of(&self, work: Work) -> Time {
        match work {
            Work::Encode => self.encode,
            Work::Decode => self.decode,
            Work::Signature => self.signature,
            Work::Fingerprint => self.fingerprint,
        }
    }
}

/// Writes down what an element does. Its clones write into the same list, so that one of them can be given to the
/// element. Reads and writes that go on where the last one ended become one operation.
#[derive(Debug, Clone, Default)]
pub struct Listener(Arc<Mutex<Vec<TimedStep>>>);

impl Listener {
    fn steps(&self) -> MutexGuard<'_, Vec<TimedStep>> {
        self.0.lock()
    }

    /// Moves what was heard since the last call to `steps`, which is emptied before.
    pub fn take(&self, steps: &mut Vec<TimedStep>) {
        steps.clear();
        steps.append(&mut self.steps());
    }
}

impl Observer for Listener {
    fn device(&mut self, operation: DeviceOperation) {
        push(&mut self.steps(), TimedStep::Device(operation));
    }

    fn work(&mut self, work: Work, _bytes: usize) {
        self.steps().push(TimedStep::Work(work));
    }

    fn begin_background(&mut self) {
        self.steps().push(TimedStep::Background);
    }

    fn wait_for_answered(&mut self) {
        self.steps().push(TimedStep::Barrier);
    }
}

/// Appends a step; a read or write that goes on where the last step ended becomes one operation with it.
pub fn push(steps: &mut Vec<TimedStep>, step: TimedStep) {
    match (steps.last_mut(), step) {
        (Some(TimedStep::Device(last)), TimedStep::Device(next)) if goes_on(last, &next) => {
            last.bytes += next.bytes;
        }
        _ => steps.push(step),
    }
}

fn goes_on(last: &DeviceOperation, next: &DeviceOperation) -> bool {
    last.device == next.device
        && last.kind == next.kind
        && last.kind != OperationKind::Sync
        && last.offset + last.bytes == next.offset
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::element::Device;

    #[test]
    fn what_goes_on_is_one_operation() {
        let operation = |kind, offset| DeviceOperation {
            device: Device::Slow,
            kind,
            offset,
            bytes: 4096,
        };
        let listener = Listener::default();
        let mut heard = listener.clone();
        for (kind, block) in [
            (OperationKind::Read, 0),
            (OperationKind::Read, 1),
            (OperationKind::Write, 2),
            (OperationKind::Write, 4),
        ] {
            heard.device(operation(kind, block * 4096));
        }
        heard.begin_background();
        heard.device(operation(OperationKind::Write, 5 * 4096));
        let mut steps = vec![TimedStep::Background];
        listener.take(&mut steps);
        let both = DeviceOperation {
            bytes: 8192,
            ..operation(OperationKind::Read, 0)
        };
        let expected = [
            TimedStep::Device(both),
            TimedStep::Device(operation(OperationKind::Write, 2 * 4096)),
            TimedStep::Device(operation(OperationKind::Write, 4 * 4096)),
            TimedStep::Background,
            TimedStep::Device(operation(OperationKind::Write, 5 * 4096)),
        ];
        assert_eq!(steps, expected);
        listener.take(&mut steps);
        assert_eq!(steps, []);
    }
}
