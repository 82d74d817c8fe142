//! The memory the process has, as the kernel counts it.

use std::fs;
use std::io;

use crate::region::page_size;

/// Bytes of memory of this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Usage {
    /// All that is mapped and in memory.
    pub resident: u64,
    /// Of it pages of files: the program, and what is mapped of the scratch file.
    pub of_files: u64,
}

pub(crate) fn usage() -> io::Result<Usage> {
    let text = fs::read_to_string("/proc/self/statm")?;
    let mut fields = text.split_ascii_whitespace().skip(1);
    let mut bytes = || {
        let field = fields.next().and_then(|field| field.parse::<u64>().ok());
        field.map(|pages| pages * page_size() as u64)
    };
    let found = bytes().zip(bytes());
    let (resident, of_files) = found.ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("/proc/self/statm holds {text:?}, expected numbers of pages"),
        )
    })?;
    Ok(Usage { resident, of_files })
}
