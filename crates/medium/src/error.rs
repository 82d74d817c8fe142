//! What failed on a medium: the operation, the place, and the cause.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    Create,
    Open,
    Extend,
    Shorten,
    Read,
    Write,
    Discard,
    /// Flipping a bit, in a test.
    Flip,
    Sync,
}

#[derive(Debug, thiserror::Error)]
pub enum Cause {
    #[error("{0}")]
    Io(#[source] io::Error),
    #[error("input/output error (injected)")]
    Eio,
    #[error("no space left on the device (injected)")]
    NoSpace,
    #[error("the power was cut")]
    PowerCut,
    #[error("the medium has {medium_len} bytes")]
    OutOfRange { medium_len: u64 },
    #[error("offset and length must be multiples of {alignment} bytes")]
    Misaligned { alignment: u32 },
    #[error("its size of {len} bytes is not a multiple of {alignment}")]
    BadSize { len: u64, alignment: u32 },
    #[error("it is in use by another process or another opener in this one")]
    InUse,
    #[error("its file system has no direct I/O; use buffered mode")]
    NoDirectIo,
    #[error("it is neither a regular file nor a block device")]
    NotAMedium,
    /// A medium that is too coarse for what lies on it.
    #[error("its alignment is {alignment} bytes, expected at most {most}")]
    TooCoarse { alignment: u32, most: u32 },
    /// The file of a side table ([`crate::Elided`]) holds something else: what, as a sentence.
    #[error("{0}")]
    SideTable(String),
}

/// A failed call: what was tried, where, and why.
#[derive(Debug, thiserror::Error)]
pub struct MediumError {
    pub operation: Operation,
    /// First byte of the range; 0 where the operation has none.
    pub offset: u64,
    /// Bytes of the range, or of the whole medium when it is created or opened; 0 where unknown.
    pub length: u64,
    /// The file, where the medium is one.
    pub path: Option<PathBuf>,
    #[source]
    pub cause: Cause,
}

impl MediumError {
    pub(crate) fn at(operation: Operation, offset: u64, length: u64, cause: Cause) -> Self {
        MediumError {
            operation,
            offset,
            length,
            path: None,
            cause,
        }
    }

    pub fn with_path(mut self, path: &Path) -> Self {
        self.path = Some(path.to_owned());
        self
    }

    pub fn is_no_space(&self) -> bool {
        match &self.cause {
            Cause::NoSpace => true,
            Cause::Io(error) => matches!(
                error.kind(),
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
            ),
            _ => false,
        }
    }

    pub fn is_power_cut(&self) -> bool {
        matches!(self.cause, Cause::PowerCut)
    }
}

impl fmt::Display for MediumError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let MediumError { offset, length, .. } = self;
        match self.operation {
            Operation::Create => write!(f, "cannot create a medium of {length} bytes")?,
            Operation::Open => write!(f, "cannot open the medium")?,
            Operation::Extend => write!(f, "cannot make the medium {length} bytes long")?,
            Operation::Shorten => write!(f, "cannot make the medium {offset} bytes short")?,
            Operation::Read => write!(f, "cannot read {length} bytes at offset {offset}")?,
            Operation::Write => write!(f, "cannot write {length} bytes at offset {offset}")?,
            Operation::Discard => write!(f, "cannot discard {length} bytes at offset {offset}")?,
            Operation::Flip => write!(f, "cannot flip a bit at offset {offset}")?,
            Operation::Sync => write!(f, "cannot make writes durable")?,
        }
        if let Some(path) = &self.path {
            let preposition = match self.operation {
                Operation::Create | Operation::Open => "at",
                _ => "of",
            };
            write!(f, " {preposition} {}", path.display())?;
        }
        write!(f, ": {}", self.cause)
    }
}
