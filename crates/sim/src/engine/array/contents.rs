//! What pages hold: the bytes of values, and the numbers of bytes on the SSD.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

use flashlore_array::element::{Device, OperationKind};
use flashlore_array::timed::TimedStep;
use flashlore_delta::Page;
use flashlore_flash::Lpn;
use flashlore_medium::Medium;
use flashlore_trace::{ByteRange, PageSource};
use rustc_hash::FxHashMap;

use crate::config::UNIT_BYTES;
use crate::engine::error::RunError;

/// What a page holds, as a run knows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeldContent {
    /// Zeros: it was never written, or trimmed.
    Nothing,
    /// A value of the trace.
    Value(u32),
    /// Something that the trace does not tell. It is equal to nothing else.
    Unknown,
}

/// The bytes of values.
pub struct Contents<'a> {
    system: &'a str,
    pages: Option<&'a dyn PageSource>,
    /// Whether made-up bytes will not do.
    needs_bytes: bool,
}

impl<'a> Contents<'a> {
    /// Those of the pages of a trace; made up for a system that does not need them where they are not known.
    pub fn new(system: &'a str, pages: Option<&'a dyn PageSource>, needs_bytes: bool) -> Self {
        Contents {
            system,
            pages,
            needs_bytes,
        }
    }

    /// Fills a page with what the page at `lpn` holds.
    ///
    /// # Errors
    /// The bytes of the value are needed and not known.
    pub fn fill(&self, lpn: Lpn, held: HeldContent, page: &mut Page) -> Result<(), RunError> {
        match held {
            HeldContent::Nothing => page.fill(0),
            HeldContent::Unknown => noise(0, lpn.0, page),
            HeldContent::Value(value) => match self.pages {
                Some(pages) if pages.fill(value, page) => {}
                _ if self.needs_bytes => {
                    let system = self.system.to_owned();
                    return Err(RunError::UnknownBytes { system, value });
                }
                _ => noise(1, value, page),
            },
        }
        Ok(())
    }
}

/// Bytes that nothing compresses and that are equal for equal numbers alone.
fn noise(kind: u8, number: u32, page: &mut Page) {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&[kind]);
    hasher.update(&number.to_le_bytes());
    hasher.finalize_xof().fill(page);
}

/// Numbers of the contents that were written to the SSD, for systems there that ask which are equal.
///
/// A write is heard when the element makes it and reaches the SSD later. Its numbers wait for it here, by mapping
/// unit, in order.
#[derive(Clone)]
pub struct Numbers {
    medium: Arc<dyn Medium>,
    state: Rc<RefCell<NumbersState>>,
}

#[derive(Default)]
struct NumbersState {
    of_content: FxHashMap<[u8; 16], u32>,
    waiting: FxHashMap<u64, VecDeque<u32>>,
}

impl Numbers {
    /// None so far, of writes to this medium.
    pub fn new(medium: Arc<dyn Medium>) -> Self {
        let state = Rc::default();
        Numbers { medium, state }
    }

    /// The number of a content.
    pub fn number(&self, page: &[u8]) -> u32 {
        let mut digest = [0; 16];
        digest.copy_from_slice(&blake3::hash(page).as_bytes()[..16]);
        let of_content = &mut self.state.borrow_mut().of_content;
        let next = of_content.len() as u32;
        *of_content.entry(digest).or_insert(next)
    }

    /// Numbers what was written by these steps, which the element has just made.
    ///
    /// # Errors
    /// The medium cannot be read.
    pub fn hear(&self, steps: &[TimedStep]) -> Result<(), RunError> {
        for step in steps {
            let TimedStep::Device(operation) = step else {
                continue;
            };
            if (operation.device, operation.kind) != (Device::Fast, OperationKind::Write) {
                continue;
            }
            for unit in ByteRange::new(operation.offset, operation.bytes).touched() {
                let mut page = [0; UNIT_BYTES as usize];
                let read = self.medium.read(unit * UNIT_BYTES, &mut page);
                read.map_err(|error| RunError::Array(error.into()))?;
                let number = self.number(&page);
                let waiting = &mut self.state.borrow_mut().waiting;
                waiting.entry(unit).or_default().push_back(number);
            }
        }
        Ok(())
    }

    /// The numbers of a write of so many units, which reaches the SSD now.
    pub fn take(&self, unit: u64, units: u64, numbers: &mut Vec<u32>) {
        numbers.clear();
        let waiting = &mut self.state.borrow_mut().waiting;
        for unit in unit..unit + units {
            let number = waiting.get_mut(&unit).and_then(VecDeque::pop_front);
            // Every write was heard before.
            numbers.push(number.unwrap_or(0));
        }
    }
}

#[cfg(test)]
mod tests {
    use flashlore_array::element::DeviceOperation;
    use flashlore_medium::MemoryMedium;

    use super::*;

    #[test]
    fn made_up_bytes_are_equal_for_equal_values_alone() {
        let contents = Contents::new("raid0", None, false);
        let page = |lpn, held| {
            let mut page = [0; 4096];
            contents.fill(lpn, held, &mut page).unwrap();
            page
        };
        assert!(page(Lpn(1), HeldContent::Value(7)) == page(Lpn(2), HeldContent::Value(7)));
        assert!(page(Lpn(1), HeldContent::Value(7)) != page(Lpn(1), HeldContent::Value(8)));
        assert!(page(Lpn(7), HeldContent::Unknown) != page(Lpn(7), HeldContent::Value(7)));
        assert!(page(Lpn(1), HeldContent::Unknown) != page(Lpn(2), HeldContent::Unknown));
        assert!(page(Lpn(1), HeldContent::Nothing) == [0; 4096]);
        let needed = Contents::new("i-cash", None, true);
        let refused = needed.fill(Lpn(1), HeldContent::Value(3), &mut [0; 4096]);
        assert!(matches!(
            refused,
            Err(RunError::UnknownBytes { value: 3, .. })
        ));
    }

    #[test]
    fn numbers_wait_for_their_writes_in_order() {
        let medium = Arc::new(MemoryMedium::new(8 * 4096));
        let numbers = Numbers::new(medium.clone());
        let write = |unit: u64, byte: u8| {
            medium.write(unit * 4096, &[byte; 4096]).unwrap();
            let operation = DeviceOperation {
                device: Device::Fast,
                kind: OperationKind::Write,
                offset: unit * 4096,
                bytes: 4096,
            };
            numbers.hear(&[TimedStep::Device(operation)]).unwrap();
        };
        for (unit, byte) in [(2, 5), (3, 6), (2, 6), (2, 5)] {
            write(unit, byte);
        }
        let take = |unit, units| {
            let mut taken = Vec::new();
            numbers.take(unit, units, &mut taken);
            taken
        };
        assert_eq!(take(2, 2), [0, 1]);
        assert_eq!(take(2, 1), [1]);
        assert_eq!(take(2, 1), [0]);
    }
}
