//! What a client may make the server hold or pass over.

/// Limits of one connection. They bound memory, not time: time-outs are the listener's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest data of an option that is held, in bytes; longer data are passed over and answered
    /// with an error.
    pub option_bytes: u32,
    pub options: u32,
    /// Bytes of data of all options of one negotiation, passed over or not.
    pub negotiation_bytes: u32,
    /// Metadata contexts of one session.
    pub contexts: usize,
    /// The longest read or write, in bytes.
    pub payload_bytes: u32,
    /// The longest payload of a refused write that is passed over, in bytes; after a longer one the
    /// connection ends.
    pub skipped_bytes: u32,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            option_bytes: 64 << 10,
            options: 1024,
            negotiation_bytes: 1 << 20,
            contexts: 16,
            payload_bytes: 32 << 20,
            skipped_bytes: 64 << 20,
        }
    }
}
