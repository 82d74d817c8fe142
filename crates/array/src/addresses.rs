//! Addresses of the host to numbers of blocks, and back.
//!
//! An address has the number of the virtual machine in its highest byte (paper). Inside, the blocks of all machines
//! are counted through in the order in which the machines are named.

use std::ops::Range;

use crate::error::{ArrayError, ContentError};
use crate::index::{Address, ArrayBlock};

const MACHINE_SHIFT: u32 = 56;

/// Virtual machines, at most: one for each value of a byte.
pub(crate) const MOST_MACHINES: usize = 256;

/// A virtual machine, whose blocks have its number in the highest byte of their addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine {
    pub number: u8,
    pub blocks: u32,
}

pub(crate) fn validate_machines(machines: &[Machine]) -> Result<(), ArrayError> {
    let blocks: u64 = machines.iter().map(|m| u64::from(m.blocks)).sum();
    refuse_outside(&[
        (
            "virtual machines",
            machines.len() as u64,
            1,
            MOST_MACHINES as u64,
        ),
        ("blocks", blocks, 1, u64::from(u32::MAX - 1)),
    ])?;
    for (index, machine) in machines.iter().enumerate() {
        let twice = machines[..index].iter().any(|m| m.number == machine.number);
        if twice || machine.blocks == 0 {
            return Err(ArrayError::Shape(format!(
                "virtual machine {} has no blocks or is named twice",
                machine.number
            )));
        }
    }
    Ok(())
}

/// Refuses sizes outside their ranges: what, how many were found, the least and the most.
pub(crate) fn refuse_outside(rules: &[(&str, u64, u64, u64)]) -> Result<(), ArrayError> {
    for &(what, found, least, most) in rules {
        if !(least..=most).contains(&found) {
            return Err(ArrayError::Shape(format!(
                "an array cannot have {found} {what}, expected {least} to {most}"
            )));
        }
    }
    Ok(())
}

pub fn lba(machine: u8, address: u64) -> u64 {
    u64::from(machine) << MACHINE_SHIFT | address
}

fn split(lba: u64) -> (u8, u64) {
    let machine = (lba >> MACHINE_SHIFT) as u8;
    (machine, lba & ((1 << MACHINE_SHIFT) - 1))
}

#[derive(Debug)]
pub struct Addresses {
    machines: Vec<Machine>,
    /// First block of each machine.
    first: Vec<ArrayBlock>,
    /// Position in `machines` by number.
    of_number: [Option<u8>; 256],
}

impl Addresses {
    /// Those of these machines, whose blocks together are fewer than 2^32.
    pub fn new(machines: &[Machine]) -> Self {
        let mut next = ArrayBlock(0);
        let mut addresses = Addresses {
            machines: machines.to_vec(),
            first: Vec::new(),
            of_number: [None; 256],
        };
        for (position, machine) in machines.iter().enumerate() {
            addresses.first.push(next);
            addresses.of_number[usize::from(machine.number)] = Some(position as u8);
            next += machine.blocks;
        }
        addresses
    }

    /// The machines, in the order in which their blocks are counted.
    pub fn machines(&self) -> &[Machine] {
        &self.machines
    }

    /// The block with this address.
    pub fn block(&self, lba: u64) -> Result<ArrayBlock, ArrayError> {
        let (number, address) = split(lba);
        let position = self.of_number[usize::from(number)].map(usize::from);
        let blocks = position.map_or(0, |p| self.machines[p].blocks);
        match position {
            Some(position) if address < blocks.into() => Ok(self.first[position] + address as u32),
            _ => Err(ArrayError::OutOfRange {
                machine: number,
                address,
                blocks: blocks.into(),
            }),
        }
    }

    pub fn lba(&self, block: ArrayBlock) -> u64 {
        let (position, address) = self.place(block);
        lba(self.machines[position].number, address.into())
    }

    /// The blocks with the same address in the other machines.
    pub fn counterparts(&self, block: ArrayBlock) -> impl Iterator<Item = ArrayBlock> + '_ {
        let (own, address) = self.place(block);
        let others = self.machines.iter().zip(&self.first).enumerate();
        others
            .filter(move |(position, (machine, _))| *position != own && address.0 < machine.blocks)
            .map(move |(_, (_, &first))| first + address.0)
    }

    /// The block with the same address in another machine, if it has one.
    pub fn counterpart_in(&self, block: ArrayBlock, machine: u8) -> Option<ArrayBlock> {
        let address = self.place(block).1;
        self.block(lba(machine, address.into())).ok()
    }

    /// The blocks of a machine.
    pub fn blocks_of(&self, machine: u8) -> Result<Range<ArrayBlock>, ArrayError> {
        let first = self.block(lba(machine, 0))?;
        let (position, _) = self.place(first);
        Ok(first..first + self.machines[position].blocks)
    }

    pub fn unreadable(&self, block: ArrayBlock, source: ContentError) -> ArrayError {
        let (machine, address) = split(self.lba(block));
        ArrayError::Unreadable {
            machine,
            address,
            source,
        }
    }

    /// The position of a block's machine, and its address there.
    fn place(&self, block: ArrayBlock) -> (usize, Address) {
        let position = self.first.partition_point(|&first| first <= block) - 1;
        (position, Address(block - self.first[position]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn three() -> Addresses {
        let machine = |number, blocks| Machine { number, blocks };
        Addresses::new(&[machine(5, 10), machine(0, 3), machine(255, 7)])
    }

    #[test]
    fn every_address_has_its_block_and_comes_back() {
        let addresses = three();
        let mut seen = Vec::new();
        for (machine, blocks) in [(5u8, 10u64), (0, 3), (255, 7)] {
            for address in 0..blocks {
                let block = addresses.block(lba(machine, address)).unwrap();
                assert_eq!(addresses.lba(block), lba(machine, address));
                seen.push(block);
            }
            assert!(addresses.block(lba(machine, blocks)).is_err());
        }
        assert!(seen.into_iter().eq(ArrayBlock::first(20)));
        assert!(addresses.block(lba(1, 0)).is_err());
        assert!(addresses.block(u64::MAX).is_err());
    }

    #[test]
    fn counterparts_have_the_same_address_in_other_machines() {
        let addresses = three();
        let counterparts = |block| {
            let found = addresses.counterparts(ArrayBlock(block));
            found.map(|other| other.0).collect::<Vec<_>>()
        };
        assert_eq!(counterparts(1), [11, 14]);
        assert_eq!(counterparts(11), [1, 14]);
        assert_eq!(counterparts(5), [18]);
        assert_eq!(counterparts(9), []);
    }
}
