//! How a reader of traces is told that nobody wants the rest.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A request to stop. Clones are one request; it is looked at between batches of records.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    pub fn ask(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    pub fn is_asked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
