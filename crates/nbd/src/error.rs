//! Errors: the numbers a reply may carry, and the reasons for which a connection ends.

use thiserror::Error;

/// An error number of the protocol. They are fixed by it, whatever the system's own are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
#[repr(u32)]
pub enum Errno {
    /// EPERM: the export is read-only.
    #[error("operation not permitted")]
    NotPermitted = 1,
    /// EIO: the medium failed.
    #[error("input/output error")]
    Io = 5,
    /// ENOMEM: no memory.
    #[error("cannot allocate memory")]
    NoMemory = 12,
    /// EINVAL: the request makes no sense.
    #[error("invalid argument")]
    Invalid = 22,
    /// ENOSPC: beyond the end of the export, or the volume is full.
    #[error("no space left on device")]
    NoSpace = 28,
    /// EOVERFLOW: too long to be answered in one piece.
    #[error("value too large")]
    Overflow = 75,
    /// ENOTSUP: it cannot be done as fast as was demanded.
    #[error("operation not supported")]
    NotSupported = 95,
    /// ESHUTDOWN: the server is shutting down.
    #[error("server is shutting down")]
    Shutdown = 108,
}

impl Errno {
    pub const ALL: [Self; 8] = [
        Self::NotPermitted,
        Self::Io,
        Self::NoMemory,
        Self::Invalid,
        Self::NoSpace,
        Self::Overflow,
        Self::NotSupported,
        Self::Shutdown,
    ];

    pub const fn code(self) -> u32 {
        self as u32
    }

    /// The error of a number. One that the protocol does not have counts as EINVAL, as it demands.
    pub fn from_code(code: u32) -> Self {
        Self::ALL
            .into_iter()
            .find(|errno| errno.code() == code)
            .unwrap_or(Self::Invalid)
    }
}

/// Why a connection cannot go on. Each is final: the machine that gave it takes no more input.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ProtocolError {
    #[error("a {message} begins with {found:#x}, expected {expected:#x}")]
    Magic {
        message: &'static str,
        found: u64,
        expected: u64,
    },
    #[error("the client's flags are {0:#x}, expected none but 0x1 and 0x2")]
    ClientFlags(u32),
    /// A client without the fixed newstyle may only choose an export by name.
    #[error("option {0} from a client that did not announce the fixed newstyle negotiation")]
    NotFixed(u32),
    /// EXPORT_NAME has no error reply, so the connection ends.
    #[error("EXPORT_NAME cannot be granted: {0}")]
    ExportName(String),
    #[error("the negotiation has more than {0} options")]
    TooManyOptions(u32),
    #[error("option {option} has {length} bytes of data, the negotiation may have {left} more")]
    TooManyBytes { option: u32, length: u32, left: u64 },
    /// A write whose payload is too long even to be passed over.
    #[error("a write of {length} bytes, expected at most {limit}")]
    PayloadTooLong { length: u32, limit: u32 },
    #[error("the export cannot be served: {0}")]
    Export(#[from] crate::export::InvalidExport),
    /// Input after an error or an end.
    #[error("the connection has ended, nothing more is taken")]
    Ended,
}
