//! A request, and the rules by which an export accepts one.

use crate::error::Errno;
use crate::export::ExportInfo;
use crate::handshake::Session;
use crate::limits::Limits;
use crate::wire::{command, command_flags as flag, export_flags as export};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub enum Command {
    Read = command::READ,
    /// Write bytes, which follow the request.
    Write = command::WRITE,
    /// Make durable what was acknowledged on any connection.
    Flush = command::FLUSH,
    Trim = command::TRIM,
    Cache = command::CACHE,
    WriteZeroes = command::WRITE_ZEROES,
    /// Tell the extents of the chosen contexts.
    BlockStatus = command::BLOCK_STATUS,
}

impl Command {
    /// The command of a number. A disconnection is none.
    pub const fn from_code(code: u16) -> Option<Self> {
        Some(match code {
            command::READ => Self::Read,
            command::WRITE => Self::Write,
            command::FLUSH => Self::Flush,
            command::TRIM => Self::Trim,
            command::CACHE => Self::Cache,
            command::WRITE_ZEROES => Self::WriteZeroes,
            command::BLOCK_STATUS => Self::BlockStatus,
            _ => return None,
        })
    }

    pub const fn code(self) -> u16 {
        self as u16
    }
}

/// A request that may be carried out: within the export, aligned, allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The client's number for it; the reply repeats it.
    pub cookie: u64,
    pub command: Command,
    /// First byte.
    pub offset: u64,
    /// Bytes, which may be 0 for all but BLOCK_STATUS.
    pub length: u32,
    pub flags: u16,
}

impl Request {
    /// Durable before the reply.
    pub const fn fua(&self) -> bool {
        self.flags & flag::FUA != 0
    }

    /// Zeroes have to be allocated.
    pub const fn no_hole(&self) -> bool {
        self.flags & flag::NO_HOLE != 0
    }

    /// Fail rather than being as slow as a write.
    pub const fn fast_zero(&self) -> bool {
        self.flags & flag::FAST_ZERO != 0
    }

    /// The data of a read come in one piece.
    pub const fn unfragmented(&self) -> bool {
        self.flags & flag::DF != 0
    }

    /// One extent a context is enough.
    pub const fn one_extent(&self) -> bool {
        self.flags & flag::REQ_ONE != 0
    }
}

/// A request that may not be carried out. The error has to be sent as the reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Refused {
    pub cookie: u64,
    pub errno: Errno,
    /// What is wrong, for a person.
    pub why: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    size: u64,
    flags: u16,
    alignment: u32,
    payload_bytes: u32,
    contexts: bool,
}

impl Rules {
    pub fn new<E>(session: &Session<E>, limits: &Limits) -> Self {
        let has_contexts = !session.contexts.is_empty();
        Self::of(&session.info, session.structured, has_contexts, limits)
    }

    /// The rules of an export: `contexts` says whether any were chosen.
    pub fn of(info: &ExportInfo, structured: bool, contexts: bool, limits: &Limits) -> Self {
        Self {
            size: info.size,
            flags: info.flags(structured),
            alignment: info.block_sizes.minimum.max(1),
            payload_bytes: crate::handshake::longest_payload(info, limits),
            contexts: contexts && structured,
        }
    }

    /// The request that these fields make.
    pub fn check(
        &self,
        cookie: u64,
        code: u16,
        flags: u16,
        offset: u64,
        length: u32,
    ) -> Result<Request, Refused> {
        let refuse = |(errno, why)| Refused { cookie, errno, why };
        let command = Command::from_code(code)
            .ok_or((Errno::Invalid, "unknown command"))
            .map_err(refuse)?;
        self.check_allowed(command).map_err(refuse)?;
        self.check_flags(command, flags).map_err(refuse)?;
        self.check_range(command, flags, offset, length)
            .map_err(refuse)?;
        Ok(Request {
            cookie,
            command,
            offset,
            length,
            flags,
        })
    }

    fn check_allowed(&self, command: Command) -> Result<(), (Errno, &'static str)> {
        let writes = matches!(
            command,
            Command::Write | Command::Trim | Command::WriteZeroes
        );
        if writes && self.flags & export::READ_ONLY != 0 {
            return Err((Errno::NotPermitted, "the export is read-only"));
        }
        let offered = match command {
            Command::Read | Command::Write => true,
            Command::Flush => self.flags & export::SEND_FLUSH != 0,
            Command::Trim => self.flags & export::SEND_TRIM != 0,
            Command::Cache => self.flags & export::SEND_CACHE != 0,
            Command::WriteZeroes => self.flags & export::SEND_WRITE_ZEROES != 0,
            Command::BlockStatus => self.contexts,
        };
        if offered {
            Ok(())
        } else if command == Command::BlockStatus {
            Err((Errno::Invalid, "no metadata context was negotiated"))
        } else {
            Err((Errno::Invalid, "a command that the export does not offer"))
        }
    }

    fn check_flags(&self, command: Command, flags: u16) -> Result<(), (Errno, &'static str)> {
        let offered = |export: u16, flag: u16| if self.flags & export != 0 { flag } else { 0 };
        // Where FUA is offered every command takes it.
        let mut known = offered(export::SEND_FUA, flag::FUA);
        known |= match command {
            Command::Read => offered(export::SEND_DF, flag::DF),
            Command::WriteZeroes => {
                flag::NO_HOLE | offered(export::SEND_FAST_ZERO, flag::FAST_ZERO)
            }
            Command::BlockStatus => flag::REQ_ONE,
            _ => 0,
        };
        if flags & !known == 0 {
            Ok(())
        } else {
            Err((Errno::Invalid, "a flag that the command does not know"))
        }
    }

    fn check_range(
        &self,
        command: Command,
        flags: u16,
        offset: u64,
        length: u32,
    ) -> Result<(), (Errno, &'static str)> {
        if command == Command::Flush {
            return if offset == 0 && length == 0 {
                Ok(())
            } else {
                Err((Errno::Invalid, "a flush with an offset or a length"))
            };
        }
        let payload = matches!(command, Command::Read | Command::Write);
        if payload && length > self.payload_bytes {
            let errno = if flags & flag::DF != 0 {
                Errno::Overflow
            } else {
                Errno::Invalid
            };
            return Err((errno, "longer than the maximum block size"));
        }
        if command == Command::BlockStatus && length == 0 {
            return Err((Errno::Invalid, "block status of no bytes"));
        }
        let alignment = u64::from(self.alignment);
        if !offset.is_multiple_of(alignment) || !u64::from(length).is_multiple_of(alignment) {
            return Err((Errno::Invalid, "not aligned to the minimum block size"));
        }
        let inside = offset
            .checked_add(u64::from(length))
            .is_some_and(|end| end <= self.size);
        match command {
            _ if inside => Ok(()),
            Command::Write | Command::WriteZeroes => {
                Err((Errno::NoSpace, "beyond the end of the export"))
            }
            _ => Err((Errno::Invalid, "beyond the end of the export")),
        }
    }
}
