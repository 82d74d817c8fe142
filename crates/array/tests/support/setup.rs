//! Small arrays of all kinds.

use std::sync::Arc;

use flashlore_array::Element;
use flashlore_array::error::ArrayError;
use flashlore_array::icash::{
    Compression, Fill, ICash, Kept, Machine, Mode, Options, Shape, Similarity, TooBig,
    bytes_needed, create, lba,
};
use flashlore_medium::{Medium, MemoryMedium};

use crate::support::attended::{Attendance, Attended, Steps};
use crate::support::draw::Draw;
use crate::support::history::Op;
use crate::support::pages::{Value, page};

/// An array and how it is opened.
#[derive(Debug, Clone)]
pub struct Setup {
    pub shape: Shape,
    pub options: Options,
    pub attendance: Attendance,
}

impl Setup {
    /// A small one, with budgets so tight that everything has to be replaced all the time.
    pub fn draw(draw: &mut Draw) -> Setup {
        let numbers = [3, 0, 255, 7];
        let machines = numbers[..draw.between(1, 4) as usize].iter();
        let machines: Vec<Machine> = machines
            .map(|&number| Machine {
                number,
                blocks: draw.between(4, 40) as u32,
            })
            .collect();
        // Of some arrays one budget is ample, so that the others bind.
        let slots = draw.pick(&[8, 8, 40]);
        let slots = draw.between(4, slots) as u32;
        let (more_virtual, segments) =
            draw.pick(&[(24, 260), (24, 260), (100, 200), (24, 2000), (100, 2000)]);
        let mut options = Options::new(
            slots + draw.between(4, more_virtual) as u32,
            draw.between(128, segments) as u32,
        );
        options.scan_every = draw.between(4, 30);
        options.scan_blocks = draw.between(6, 40) as usize;
        // Long groups need the room in the log that is reserved for them.
        let most = draw.pick(&[4, 4, 4, 30]);
        options.flush_blocks = draw.between(1, most) as u32;
        options.write_back_batch = draw.between(1, 12) as usize;
        options.unpack_all = draw.chance(80);
        // From what was drawn already: named seeds keep their histories.
        options.fill = match options.scan_blocks % 5 {
            0 => Fill::SecondRead,
            1 => Fill::Never,
            _ => Fill::Read,
        };
        options.ram_blocks = [0, 3, 9][options.scan_blocks % 3];
        // There is a page of blocks, and one of frozen places.
        options.table_pages = [1, u32::MAX][options.scan_every as usize % 2];
        options.tried = 1 + options.scan_blocks % 4;
        options.similar_positions = [4, 1][options.scan_blocks % 2];
        options.sequential_cutoff = [0, 1, 3][options.scan_every as usize % 3];
        let attendance = Attendance {
            steps: match options.scan_blocks % 7 {
                0 => Steps::AtMost(0),
                1 | 2 => Steps::AtMost(1),
                3 => Steps::AtMost(2),
                _ => Steps::All,
            },
            is_ahead: options.scan_every % 5 < 2,
        };
        // A few frozen places, so that they do not suffice, or as many as slots, or none.
        let frozen_blocks = match options.scan_every % 4 {
            0 => 0,
            1 => slots,
            _ => 1 + options.scan_every as u32 % 5,
        };
        options.virtual_blocks += frozen_blocks;
        options.halve_heatmap = draw.chance(20);
        if draw.chance(30) {
            options.too_big = TooBig::Log;
        }
        if draw.chance(25) {
            options.similarity = Similarity::SuperFeatures;
        }
        if draw.chance(25) {
            options.compression = Compression::IfShorter;
            if draw.chance(30) {
                options.similarity = Similarity::Nothing;
            }
        }
        if options.scan_every % 7 < 2 {
            (options.mode, options.too_big) = (Mode::WriteThrough, TooBig::Log);
        }
        let segment_blocks = draw.between(3, 12) as u32;
        let journal_blocks = if draw.chance(25) {
            draw.between(8, 40) as u32
        } else {
            0
        };
        let shape = Shape {
            machines,
            slots,
            log_segments: options.least_log_segments(segment_blocks, journal_blocks)
                + draw.below(6) as u32,
            segment_blocks,
            journal_blocks,
            frozen_blocks,
        };
        Setup {
            shape,
            options,
            attendance,
        }
    }

    /// The same array, to be opened with other options; none if its log is too short for them.
    pub fn with_other_options(&self, draw: &mut Draw) -> Option<Setup> {
        let mut options = Setup::draw(draw).options;
        options.virtual_blocks = self.shape.data_blocks() as u32 + draw.between(4, 40) as u32;
        let shape = &self.shape;
        let least = options.least_log_segments(shape.segment_blocks, shape.journal_blocks);
        (least <= shape.log_segments).then(|| Setup {
            shape: shape.clone(),
            options,
            attendance: self.attendance,
        })
    }

    /// Blocks of all machines.
    pub fn blocks(&self) -> usize {
        self.shape.blocks() as usize
    }

    /// The address of a block, counted through all machines.
    pub fn lba(&self, block: usize) -> u64 {
        let mut left = block as u32;
        for machine in &self.shape.machines {
            if left < machine.blocks {
                return lba(machine.number, left.into());
            }
            left -= machine.blocks;
        }
        panic!("there is no block {block}");
    }

    /// Whether an element says of each block rightly that it holds nothing: those that were given up or never written.
    /// With ordered write-back what was given up goes home as zeros, and may be more than nothing then.
    pub fn has_right_holes(&self, element: &ICash, is_hole: impl Fn(usize) -> bool) -> bool {
        let is_ordered = self.shape.journal_blocks > 0;
        (0..self.blocks()).all(|block| {
            let found = element.kept(self.lba(block)).unwrap() == Kept::Nothing;
            found == is_hole(block) || is_ordered && !found
        })
    }

    /// Carries out an operation, which does not fail, and notes what the blocks hold; a read finds that.
    pub fn apply(&self, element: &mut impl Element, op: Op, state: &mut [Value]) {
        match op {
            Op::Write(block, value) => {
                element.write(self.lba(block), &page(value)).unwrap();
                state[block] = value;
            }
            Op::Trim(block) => {
                element.trim(self.lba(block)).unwrap();
                state[block] = 0;
            }
            Op::Read(block) => {
                let mut found = [1; 4096];
                element.read(self.lba(block), &mut found).unwrap();
                assert!(found == page(state[block]), "block {block}");
            }
            Op::Flush => element.flush().unwrap(),
        }
    }

    /// Bytes of the fast and the slow medium.
    pub fn sizes(&self) -> (usize, usize) {
        let (fast, slow) = bytes_needed(&self.shape).unwrap();
        (fast as usize, slow as usize)
    }

    /// The media of a new array.
    pub fn images(&self) -> (Vec<u8>, Vec<u8>) {
        let (fast, slow) = self.sizes();
        // What a medium holds before is not zeros.
        let fast = Arc::new(MemoryMedium::from_bytes(vec![0xE5; fast]));
        let slow = Arc::new(MemoryMedium::from_bytes(vec![0xE5; slow]));
        create(
            fast.clone(),
            slow.clone(),
            *b"identity of one.",
            &self.shape,
        )
        .unwrap();
        let bytes = |medium: Arc<MemoryMedium>| Arc::into_inner(medium).unwrap().into_bytes();
        (bytes(fast), bytes(slow))
    }

    /// Opens it.
    pub fn open(
        &self,
        fast: Arc<dyn Medium>,
        slow: Arc<dyn Medium>,
    ) -> Result<Attended, ArrayError> {
        let element = ICash::open(fast, slow, self.options.clone())?;
        Ok(Attended::new(element, self.attendance))
    }
}
