//! Keeps panics of the Parquet decoder from users.
//!
//! The decoder panics at some malformed metadata and pages. The seal keeps damage from it, but
//! everybody can forge a seal that fits. So each call of the decoder is made here: a panic becomes an
//! error, and the message of the panic itself is not printed. This needs panics that unwind, which
//! the workspace's profiles must not change.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

thread_local! {
    /// Whether this thread is inside of the decoder.
    static DECODING: Cell<bool> = const { Cell::new(false) };
}

/// Calls the decoder. What it worked on must not be used again after an error.
pub(super) fn guarded<T>(decode: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    silence();
    DECODING.set(true);
    let decoded = panic::catch_unwind(AssertUnwindSafe(decode));
    DECODING.set(false);
    decoded.unwrap_or_else(|_| Err("it is damaged: the Parquet decoder failed".to_owned()))
}

/// Makes the process's hook say nothing about panics of the decoder; it stays as it was for others.
fn silence() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !DECODING.get() {
                before(info);
            }
        }));
    });
}
