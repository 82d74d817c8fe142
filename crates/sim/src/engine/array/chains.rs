//! A request becomes chains of steps.
//!
//! Each page is a chain of its own: its steps up to the answer, and those behind it. Pages next to each other that
//! ask nothing but one operation of a device before their answers, each going on where the other ended, are one
//! chain with one operation.

use flashlore_array::timed::{TimedStep, steps};

/// The chains of one request, reused from request to request.
#[derive(Debug, Default)]
pub struct Chains {
    chains: Vec<Chain>,
    used: usize,
    joined: Vec<TimedStep>,
}

#[derive(Debug, Default)]
struct Chain {
    /// Up to the answer.
    front: Vec<TimedStep>,
    /// Behind it.
    back: Vec<TimedStep>,
}

impl Chains {
    /// Forgets the request before.
    pub fn clear(&mut self) {
        self.used = 0;
    }

    /// Begins the chain of the next page.
    pub fn next_page(&mut self) {
        self.join_last();
        if self.used == self.chains.len() {
            self.chains.push(Chain::default());
        }
        let chain = &mut self.chains[self.used];
        chain.front.clear();
        chain.back.clear();
        self.used += 1;
    }

    /// Appends what an element did for the page, once or several times.
    pub fn hear(&mut self, heard: &[TimedStep]) {
        let Some(chain) = self.chains[..self.used].last_mut() else {
            return;
        };
        let mut is_answered = false;
        for &step in heard {
            match step {
                TimedStep::Background => is_answered = true,
                _ if is_answered => steps::push(&mut chain.back, step),
                _ => steps::push(&mut chain.front, step),
            }
        }
    }

    /// The chains, each with the mark of its answer.
    pub fn all(&mut self) -> impl Iterator<Item = &[TimedStep]> {
        self.join_last();
        for chain in &mut self.chains[..self.used] {
            if !chain.back.is_empty() {
                chain.front.push(TimedStep::Background);
                chain.front.append(&mut chain.back);
            }
        }
        self.chains[..self.used]
            .iter()
            .map(|chain| chain.front.as_slice())
    }

    /// Makes the last two chains one if they can be.
    fn join_last(&mut self) {
        let [.., before, last] = &mut self.chains[..self.used] else {
            return;
        };
        if !last.front.is_empty() {
            let ([TimedStep::Device(_)], &[step @ TimedStep::Device(_)]) =
                (&before.front[..], &last.front[..])
            else {
                return;
            };
            self.joined.clone_from(&before.front);
            steps::push(&mut self.joined, step);
            if self.joined.len() > 1 {
                return;
            }
            before.front.clone_from(&self.joined);
        }
        for step in last.back.drain(..) {
            steps::push(&mut before.back, step);
        }
        self.used -= 1;
    }
}

#[cfg(test)]
mod tests {
    use flashlore_array::element::{Device, DeviceOperation, OperationKind, Work};

    use super::*;

    fn operation(device: Device, kind: OperationKind, block: u64, blocks: u64) -> TimedStep {
        TimedStep::Device(DeviceOperation {
            device,
            kind,
            offset: block * 4096,
            bytes: blocks * 4096,
        })
    }

    fn chains(pages: &[&[TimedStep]]) -> Vec<Vec<TimedStep>> {
        let mut chains = Chains::default();
        for page in pages {
            chains.next_page();
            chains.hear(page);
        }
        chains.all().map(<[TimedStep]>::to_vec).collect()
    }

    #[test]
    fn neighbours_with_one_operation_are_one_chain() {
        let home = |block| operation(Device::Slow, OperationKind::Read, block, 1);
        let fill = |slot| operation(Device::Fast, OperationKind::Write, slot, 1);
        let found = chains(&[
            &[home(5), TimedStep::Background, fill(0)],
            &[home(6), TimedStep::Background, fill(1)],
            &[home(9), TimedStep::Background, fill(2)],
        ]);
        let expected = [
            vec![
                operation(Device::Slow, OperationKind::Read, 5, 2),
                TimedStep::Background,
                operation(Device::Fast, OperationKind::Write, 0, 2),
            ],
            vec![home(9), TimedStep::Background, fill(2)],
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn pages_with_more_to_do_are_chains_of_their_own() {
        let slot = |block| operation(Device::Fast, OperationKind::Read, block, 1);
        let decode = TimedStep::Work(Work::Decode);
        let found = chains(&[&[slot(1), decode], &[slot(2), decode], &[slot(3)], &[]]);
        let expected = [vec![slot(1), decode], vec![slot(2), decode], vec![slot(3)]];
        assert_eq!(found, expected);
        assert_eq!(chains(&[&[]]), [vec![]]);
        assert_eq!(chains(&[]), Vec::<Vec<TimedStep>>::new());
    }

    #[test]
    fn what_was_done_in_two_calls_is_answered_after_both() {
        let read = operation(Device::Slow, OperationKind::Read, 1, 1);
        let write = operation(Device::Fast, OperationKind::Write, 8, 1);
        let fill = operation(Device::Fast, OperationKind::Write, 4, 1);
        let mut chains = Chains::default();
        chains.next_page();
        chains.hear(&[read, TimedStep::Background, fill]);
        chains.hear(&[write, TimedStep::Background]);
        let found: Vec<_> = chains.all().map(<[TimedStep]>::to_vec).collect();
        assert_eq!(found, [vec![read, write, TimedStep::Background, fill]]);
    }
}
