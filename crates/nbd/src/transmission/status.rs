//! The extents of one metadata context in a BLOCK_STATUS reply.
//!
//! Whatever is pushed, what is sent keeps the protocol's rules: at least one extent, none empty, none
//! beyond the request, neighbours different, and one alone if the client asked for one.

use super::request::Request;

/// Extents of one context, gathered from the offset of the request on.
#[derive(Clone, Debug)]
pub struct Extents {
    /// Length and flags of each.
    list: Vec<(u32, u32)>,
    left: u32,
    most: usize,
}

impl Extents {
    /// The most extents that a reply has unless told otherwise. The protocol lets a server stop early.
    pub const MOST: usize = 4096;

    /// Extents for a request, at most `most` of them, which is 1 at least.
    pub fn new(request: &Request, most: usize) -> Self {
        Self {
            list: Vec::new(),
            left: request.length,
            most: if request.one_extent() { 1 } else { most.max(1) },
        }
    }

    /// Adds `length` bytes with `flags` behind those before. `false` when no more are needed.
    pub fn push(&mut self, length: u64, flags: u32) -> bool {
        let taken = u32::try_from(length).unwrap_or(u32::MAX).min(self.left);
        if taken == 0 {
            return self.left > 0;
        }
        let full = self.list.len() == self.most;
        match self.list.last_mut() {
            Some((last, same)) if *same == flags => *last += taken,
            // What comes now would not adjoin the last one.
            _ if full => self.left = 0,
            _ => self.list.push((taken, flags)),
        }
        self.left = self.left.saturating_sub(taken);
        self.left > 0
    }

    /// The extents. If none was pushed, all bytes with flags 0, which is always true of them.
    pub fn finish(mut self) -> Vec<(u32, u32)> {
        if self.list.is_empty() {
            self.list.push((self.left, 0));
        }
        self.list
    }
}
