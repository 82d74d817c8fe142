//! The numbers of the NBD protocol, as they go over the wire (big endian).
//!
//! Names are those of the protocol's own text without the `NBD_` prefix.

/// First eight bytes of a server: "NBDMAGIC".
pub const MAGIC: u64 = 0x4e42_444d_4147_4943;
/// Second eight bytes of a newstyle server, and the start of every option: "IHAVEOPT".
pub const OPTION_MAGIC: u64 = 0x4948_4156_454f_5054;
/// Start of every reply to an option.
pub const OPTION_REPLY_MAGIC: u64 = 0x0003_e889_0455_65a9;
pub const REQUEST_MAGIC: u32 = 0x2560_9513;
pub const SIMPLE_REPLY_MAGIC: u32 = 0x6744_6698;
/// Start of a chunk of a structured reply.
pub const STRUCTURED_REPLY_MAGIC: u32 = 0x668e_33ef;

/// Longest string of the protocol in bytes.
pub const MAX_STRING: usize = 4096;
/// Bytes of the server's greeting.
pub const GREETING_BYTES: usize = 18;
/// Bytes before the data of an option.
pub const OPTION_HEADER_BYTES: usize = 16;
/// Bytes before the data of a reply to an option.
pub const OPTION_REPLY_HEADER_BYTES: usize = 20;
/// Bytes of a request without its payload.
pub const REQUEST_BYTES: usize = 28;
/// Bytes of a simple reply without its data.
pub const SIMPLE_REPLY_BYTES: usize = 16;
/// Bytes of the head of a structured reply's chunk.
pub const CHUNK_HEADER_BYTES: usize = 20;

/// Flags of the server and the client before the options.
pub mod handshake_flags {
    /// The fixed form of newstyle: unknown options get an answer.
    pub const FIXED_NEWSTYLE: u16 = 1 << 0;
    /// The answer to EXPORT_NAME has no padding.
    pub const NO_ZEROES: u16 = 1 << 1;
}

pub mod option {
    /// Choose an export and begin transmission; there is no error reply.
    pub const EXPORT_NAME: u32 = 1;
    pub const ABORT: u32 = 2;
    /// Ask for the names of the exports.
    pub const LIST: u32 = 3;
    pub const STARTTLS: u32 = 5;
    /// Ask about an export.
    pub const INFO: u32 = 6;
    /// Ask about an export and begin transmission.
    pub const GO: u32 = 7;
    /// Allow structured replies.
    pub const STRUCTURED_REPLY: u32 = 8;
    pub const LIST_META_CONTEXT: u32 = 9;
    pub const SET_META_CONTEXT: u32 = 10;
}

/// Types of replies to options.
pub mod option_reply {
    /// The option was carried out.
    pub const ACK: u32 = 1;
    /// The name of one export.
    pub const SERVER: u32 = 2;
    /// One piece of information on an export.
    pub const INFO: u32 = 3;
    /// One metadata context.
    pub const META_CONTEXT: u32 = 4;
    /// Set in every type that is an error.
    pub const ERROR_BIT: u32 = 1 << 31;
    /// The option is not known.
    pub const ERR_UNSUP: u32 = ERROR_BIT + 1;
    /// The server's settings forbid it.
    pub const ERR_POLICY: u32 = ERROR_BIT + 2;
    /// The option's data make no sense.
    pub const ERR_INVALID: u32 = ERROR_BIT + 3;
    /// TLS must be started first.
    pub const ERR_TLS_REQD: u32 = ERROR_BIT + 5;
    pub const ERR_UNKNOWN: u32 = ERROR_BIT + 6;
    pub const ERR_SHUTDOWN: u32 = ERROR_BIT + 7;
    /// The client must ask for block sizes.
    pub const ERR_BLOCK_SIZE_REQD: u32 = ERROR_BIT + 8;
    /// The option is too long.
    pub const ERR_TOO_BIG: u32 = ERROR_BIT + 9;
}

pub mod info {
    pub const EXPORT: u16 = 0;
    /// The name by which the server knows the export.
    pub const NAME: u16 = 1;
    pub const DESCRIPTION: u16 = 2;
    /// Minimum, preferred and maximum block size.
    pub const BLOCK_SIZE: u16 = 3;
}

/// Transmission flags: what an export can do.
pub mod export_flags {
    pub const HAS_FLAGS: u16 = 1 << 0;
    pub const READ_ONLY: u16 = 1 << 1;
    pub const SEND_FLUSH: u16 = 1 << 2;
    pub const SEND_FUA: u16 = 1 << 3;
    pub const SEND_TRIM: u16 = 1 << 5;
    pub const SEND_WRITE_ZEROES: u16 = 1 << 6;
    pub const SEND_DF: u16 = 1 << 7;
    /// Several connections see one consistent disk.
    pub const CAN_MULTI_CONN: u16 = 1 << 8;
    pub const SEND_CACHE: u16 = 1 << 10;
    pub const SEND_FAST_ZERO: u16 = 1 << 11;
}

pub mod command {
    pub const READ: u16 = 0;
    pub const WRITE: u16 = 1;
    pub const DISC: u16 = 2;
    /// Make durable what was acknowledged.
    pub const FLUSH: u16 = 3;
    /// Forget bytes.
    pub const TRIM: u16 = 4;
    pub const CACHE: u16 = 5;
    pub const WRITE_ZEROES: u16 = 6;
    /// Ask for metadata of bytes.
    pub const BLOCK_STATUS: u16 = 7;
}

pub mod command_flags {
    /// Durable before the reply.
    pub const FUA: u16 = 1 << 0;
    /// WRITE_ZEROES must allocate.
    pub const NO_HOLE: u16 = 1 << 1;
    /// READ is answered in one piece.
    pub const DF: u16 = 1 << 2;
    /// BLOCK_STATUS wants one extent a context.
    pub const REQ_ONE: u16 = 1 << 3;
    /// WRITE_ZEROES fails rather than being as slow as a write.
    pub const FAST_ZERO: u16 = 1 << 4;
}

/// The flag of a chunk that ends its reply.
pub const REPLY_FLAG_DONE: u16 = 1 << 0;

/// Types of the chunks of a structured reply.
pub mod chunk {
    /// Nothing but the end.
    pub const NONE: u16 = 0;
    /// Bytes that were read.
    pub const OFFSET_DATA: u16 = 1;
    /// A run of bytes that read as zero.
    pub const OFFSET_HOLE: u16 = 2;
    /// Extents of one metadata context.
    pub const BLOCK_STATUS: u16 = 5;
    /// Set in every type that is an error.
    pub const ERROR_BIT: u16 = 1 << 15;
    pub const ERROR: u16 = ERROR_BIT + 1;
    pub const ERROR_OFFSET: u16 = ERROR_BIT + 2;
}

/// The context that every server knows, and its flags.
pub mod base_allocation {
    pub const NAME: &str = "base:allocation";
    /// Nothing is stored.
    pub const HOLE: u32 = 1 << 0;
    /// Reads as zero.
    pub const ZERO: u32 = 1 << 1;
}
