//! Literals and copies, in one window: the base, if there is one, and the page behind it.
//!
//! A body is a list of steps until the page is complete. A step is
//!
//! | part | content |
//! |---|---|
//! | token | bits 7–5 literals, 7 for 7 and more; bits 4–3 distance: 0–2 one of the recent ones, 3 a new one; bits 2–0 length of the copy less 2, 7 for 7 and more |
//! | number | literals less 7, if the token has 7 |
//! | literals | the bytes |
//! | number | the distance, if it is new |
//! | number | length of the copy less 9, if the token has 7 |
//!
//! and ends after the literals when they complete the page. A *number* is 7 bits, or 14 in two bytes,
//! the lower ones first; the high bit of a byte says that another follows. A *distance* says how far
//! before its target in the window a copy begins; source and target may overlap. The recent distances
//! are 4096, 1 and 4 at first; the one in use moves to the front, and a new one drops the last.
//!
//! 4096 is the same place in the base: after a change in place, going on costs no distance. After an
//! insertion the new distance takes its role.

use crate::decode::DecodeError;
use crate::{PAGE_BYTES, Page};

/// Base and page.
const WINDOW: usize = 2 * PAGE_BYTES;

/// Recent distances at first.
const RECENT: [usize; 3] = [PAGE_BYTES, 1, 4];

/// The number in a token that says a new distance follows.
const NEW: u8 = 3;

/// The shortest copy that can be written.
const SHORTEST: usize = 2;

/// The largest number in three bits, which says that more follows.
const MORE: usize = 7;

/// Bytes that are hashed to find copies.
const HASHED: usize = 4;

/// Places of hashes, as a power of two.
const TABLE_BITS: u32 = 13;

/// The longest step but for its literals: a token and three numbers.
pub(crate) const STEP_BYTES: usize = 7;

/// One in so many places of the base is entered into the table; copies grow backwards to the others.
const BASE_STEP: usize = 4;

/// After 2 to the power of this many places without a copy, the search goes faster.
const PATIENCE: u32 = 5;

/// Finds copies.
pub(crate) struct Matcher {
    /// The base and the page.
    window: Box<[u8; WINDOW]>,
    /// By hash, 1 + the last place of the window that has it; 0 for none.
    table: Box<[u16; 1 << TABLE_BITS]>,
}

/// Bytes that can be copied.
#[derive(Clone, Copy)]
struct Copy {
    distance: usize,
    length: usize,
    /// Bytes that it saves, about.
    gain: usize,
}

impl Matcher {
    pub fn new() -> Self {
        Self {
            window: Box::new([0; WINDOW]),
            table: Box::new([0; 1 << TABLE_BITS]),
        }
    }

    /// Appends the body, unless `into` would become longer than `limit`.
    pub fn encode(
        &mut self,
        base: Option<&Page>,
        page: &Page,
        limit: usize,
        into: &mut Vec<u8>,
    ) -> Option<()> {
        let low = self.load(base, page);
        let mut recent = RECENT;
        let (mut literals, mut at, mut misses) = (PAGE_BYTES, PAGE_BYTES, 0_usize);
        while at < WINDOW {
            let Some(copy) = self.best(at, low, &recent) else {
                at += 1 + (misses >> PATIENCE);
                misses += 1;
                continue;
            };
            let copy = self.extend_back(copy, &mut at, literals, low);
            let kind = recall(&mut recent, copy.distance);
            write_step(into, &self.window[literals..at], kind, copy);
            if into.len() > limit {
                return None;
            }
            self.enter(at + copy.length - 2);
            at += copy.length;
            (literals, misses) = (at, 0);
        }
        if literals < WINDOW {
            write_literals(into, &self.window[literals..], 0);
        }
        (into.len() <= limit).then_some(())
    }

    /// Fills window and table; where the window begins.
    fn load(&mut self, base: Option<&Page>, page: &Page) -> usize {
        self.window[PAGE_BYTES..].copy_from_slice(page);
        self.table.fill(0);
        let Some(base) = base else {
            return PAGE_BYTES;
        };
        self.window[..PAGE_BYTES].copy_from_slice(base);
        for at in (0..=PAGE_BYTES - HASHED).step_by(BASE_STEP) {
            let slot = slot(self.bytes(at));
            self.table[slot] = at as u16 + 1;
        }
        0
    }

    /// The best copy to `at`, which becomes known.
    #[inline]
    fn best(&mut self, at: usize, low: usize, recent: &[usize; 3]) -> Option<Copy> {
        if at + HASHED > WINDOW {
            return self.best_recent(at, low, recent, |_, _| true);
        }
        let here = self.bytes(at);
        // Most places are no copies: three bytes tell, and the length is counted for the others.
        let mut best = self.best_recent(at, low, recent, |matcher, from| {
            (matcher.bytes(from) ^ here).trailing_zeros() >= 24
        });
        let slot = slot(here);
        let candidate = usize::from(self.table[slot]);
        self.table[slot] = at as u16 + 1;
        if candidate > low && self.bytes(candidate - 1) == here {
            let distance = at + 1 - candidate;
            let length = self.matching(candidate - 1, at);
            let gain = length.saturating_sub(2 + usize::from(distance >= 128));
            if best.is_none_or(|best| gain > best.gain) {
                best = Some(Copy {
                    distance,
                    length,
                    gain,
                });
            }
        }
        best
    }

    /// The best copy to `at` from a recent distance, of those whose source `looks_equal`.
    #[inline]
    fn best_recent(
        &self,
        at: usize,
        low: usize,
        recent: &[usize; 3],
        looks_equal: impl Fn(&Self, usize) -> bool,
    ) -> Option<Copy> {
        let mut best: Option<Copy> = None;
        for &distance in recent {
            if distance > at - low || !looks_equal(self, at - distance) {
                continue;
            }
            let length = self.matching(at - distance, at);
            // It costs its token.
            let gain = length.saturating_sub(1);
            if length > SHORTEST && best.is_none_or(|best| gain > best.gain) {
                best = Some(Copy {
                    distance,
                    length,
                    gain,
                });
            }
        }
        best
    }

    /// Lets a copy begin before `at`, with bytes that would be literals.
    fn extend_back(&self, copy: Copy, at: &mut usize, literals: usize, low: usize) -> Copy {
        let window = &self.window;
        let begin = *at;
        while *at > literals
            && *at - copy.distance > low
            && window[*at - 1] == window[*at - 1 - copy.distance]
        {
            *at -= 1;
        }
        Copy {
            length: copy.length + begin - *at,
            ..copy
        }
    }

    /// Makes a place of the page known.
    fn enter(&mut self, at: usize) {
        if at + HASHED <= WINDOW {
            let slot = slot(self.bytes(at));
            self.table[slot] = at as u16 + 1;
        }
    }

    /// The bytes at `at` that are hashed.
    #[inline]
    fn bytes(&self, at: usize) -> u32 {
        u32::from_le_bytes(self.window[at..at + HASHED].try_into().expect("four bytes"))
    }

    /// How many bytes at `from` and at `to`, which is behind it, are equal.
    #[inline]
    fn matching(&self, from: usize, to: usize) -> usize {
        let (a, b) = (&self.window[from..], &self.window[to..]);
        let (eights_a, eights_b) = (a.as_chunks::<8>().0, b.as_chunks::<8>().0);
        let mut length = 0;
        for (a, b) in eights_a.iter().zip(eights_b) {
            let differ = u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b);
            if differ != 0 {
                return length + (differ.trailing_zeros() / 8) as usize;
            }
            length += 8;
        }
        let rest = a[length..].iter().zip(&b[length..]);
        length + rest.take_while(|(a, b)| a == b).count()
    }
}

/// The place of these bytes in the table.
#[inline]
fn slot(bytes: u32) -> usize {
    (bytes.wrapping_mul(0x9E37_79B1) >> (u32::BITS - TABLE_BITS)) as usize
}

/// Moves a distance to the front; the number it has in a token.
fn recall(recent: &mut [usize; 3], distance: usize) -> u8 {
    let known = recent.iter().position(|recent| *recent == distance);
    use_recent(recent, known.unwrap_or(NEW.into()), distance);
    known.map_or(NEW, |known| known as u8)
}

/// Puts a distance in front, which was at `index` or is new.
fn use_recent(recent: &mut [usize; 3], index: usize, distance: usize) {
    let last = index.min(recent.len() - 1);
    recent.copy_within(..last, 1);
    recent[0] = distance;
}

fn write_step(into: &mut Vec<u8>, literals: &[u8], kind: u8, copy: Copy) {
    let length = copy.length - SHORTEST;
    write_literals(into, literals, kind << 3 | length.min(MORE) as u8);
    if kind == NEW {
        write_number(into, copy.distance);
    }
    if length >= MORE {
        write_number(into, length - MORE);
    }
}

/// A token with `copy` in its lower five bits, and literals.
fn write_literals(into: &mut Vec<u8>, literals: &[u8], copy: u8) {
    into.push((literals.len().min(MORE) as u8) << 5 | copy);
    if literals.len() >= MORE {
        write_number(into, literals.len() - MORE);
    }
    into.extend_from_slice(literals);
}

fn write_number(into: &mut Vec<u8>, number: usize) {
    debug_assert!(number < 1 << 14, "{number}");
    if number < 128 {
        into.push(number as u8);
    } else {
        into.extend_from_slice(&[number as u8 | 128, (number >> 7) as u8]);
    }
}

pub(crate) fn decode(body: &[u8], base: Option<&Page>, page: &mut Page) -> Result<(), DecodeError> {
    let base = base.map_or(&[][..], |base| &base[..]);
    let mut input = Input { body, at: 0 };
    let (mut recent, mut filled) = (RECENT, 0);
    while filled < PAGE_BYTES {
        let token = input.byte(filled)?;
        let literals = input.length(usize::from(token >> 5), filled)?;
        fits(filled, literals)?;
        page[filled..filled + literals].copy_from_slice(input.take(literals, filled)?);
        filled += literals;
        if filled == PAGE_BYTES {
            break;
        }
        let kind = token >> 3 & 3;
        let distance = match kind {
            NEW => input.number(filled)?,
            known => recent[usize::from(known)],
        };
        let length = SHORTEST + input.length(usize::from(token & 7), filled)?;
        fits(filled, length)?;
        let reach = base.len() + filled;
        if distance == 0 || distance > reach {
            return Err(DecodeError::Distance {
                filled,
                distance,
                reach,
            });
        }
        use_recent(&mut recent, kind.into(), distance);
        copy(base, page, filled, distance, length);
        filled += length;
    }
    match body.len() - input.at {
        0 => Ok(()),
        left => Err(DecodeError::LeftOver { left }),
    }
}

fn fits(filled: usize, length: usize) -> Result<(), DecodeError> {
    let left = PAGE_BYTES - filled;
    if length > left {
        return Err(DecodeError::Beyond {
            filled,
            length,
            left,
        });
    }
    Ok(())
}

/// Copies within the window to byte `filled` of the page; all bounds are checked.
fn copy(base: &[u8], page: &mut Page, filled: usize, distance: usize, length: usize) {
    let end = filled + length;
    // What comes from the base.
    let mut at = filled;
    if distance > filled {
        let from = base.len() + filled - distance;
        let part = length.min(base.len() - from);
        page[at..at + part].copy_from_slice(&base[from..from + part]);
        at += part;
    }
    // What comes from the page: with an overlap, pieces that double.
    let from = at.saturating_sub(distance);
    while at < end {
        let part = (end - at).min(at - from);
        page.copy_within(from..from + part, at);
        at += part;
    }
}

/// A body that is read.
struct Input<'a> {
    body: &'a [u8],
    at: usize,
}

impl<'a> Input<'a> {
    fn take(&mut self, bytes: usize, filled: usize) -> Result<&'a [u8], DecodeError> {
        let rest = &self.body[self.at..];
        let taken = rest.get(..bytes).ok_or(DecodeError::Ends { filled })?;
        self.at += bytes;
        Ok(taken)
    }

    fn byte(&mut self, filled: usize) -> Result<u8, DecodeError> {
        Ok(self.take(1, filled)?[0])
    }

    fn number(&mut self, filled: usize) -> Result<usize, DecodeError> {
        let low = self.byte(filled)?;
        if low < 128 {
            return Ok(low.into());
        }
        let high = self.byte(filled)?;
        if high >= 128 {
            return Err(DecodeError::Number { at: self.at - 1 });
        }
        Ok(usize::from(low & 127) | usize::from(high) << 7)
    }

    /// What three bits of a token say, and the number behind them.
    fn length(&mut self, bits: usize, filled: usize) -> Result<usize, DecodeError> {
        match bits {
            MORE => Ok(MORE + self.number(filled)?),
            bits => Ok(bits),
        }
    }
}
