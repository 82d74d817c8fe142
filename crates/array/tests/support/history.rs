//! Operations, and how they are drawn.

use crate::support::draw::Draw;
use crate::support::pages::{Value, draw_value};

/// What a host asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    Write(usize, Value),
    Read(usize),
    Trim(usize),
    Flush,
}

/// So many operations on so many blocks. Phases of reading, of writing everywhere, of writing in few places and of going
/// through them in sequence follow each other.
pub fn operations(draw: &mut Draw, count: usize, blocks: usize) -> Vec<Op> {
    let mut ops = Vec::with_capacity(count);
    while ops.len() < count {
        let length = draw.between(1, 60).min((count - ops.len()) as u64);
        let hot = draw.chance(50);
        let (first, span) = match hot {
            true => (draw.below(blocks as u64), draw.between(1, 6)),
            false => (0, blocks as u64),
        };
        let writes = draw.pick(&[10, 50, 90]);
        let is_sequence = hot && span == 6;
        for number in 0..length {
            // Drawn in any case: named seeds keep their histories.
            let drawn = draw.below(span);
            let offset = if is_sequence { number } else { drawn };
            let block = ((first + offset) % blocks as u64) as usize;
            ops.push(match draw.below(100) {
                0..4 => Op::Flush,
                4..10 => Op::Trim(block),
                _ if draw.chance(writes) => Op::Write(block, draw_value(draw)),
                _ => Op::Read(block),
            });
        }
    }
    ops
}
