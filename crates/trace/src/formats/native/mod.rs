//! The native format: a trace as columns in a Parquet file.
//!
//! ```text
//! message flashlore_trace {
//!   required int64 time_ns (INTEGER(64,false));   since the first record, never decreasing
//!   required int32 device  (INTEGER(32,false));
//!   required int32 op      (INTEGER(32,false));   0 read, 1 write, 2 trim, 3 flush
//!   required int64 offset  (INTEGER(64,false));   bytes
//!   required int64 length  (INTEGER(64,false));   bytes
//!   optional group content (LIST) {               value ids, one a chunk of 4 KiB; null: unknown
//!     repeated group list { required int32 element (INTEGER(32,false)); }
//!   }
//!   optional group delta_ratio (LIST) {           R_c of a write, one a chunk, in 1/65535, never 0;
//!     repeated group list { required int32 element (INTEGER(16,false)); }      null: unknown
//!   }
//! }
//! ```
//!
//! Key-value metadata, all required: `flashlore.trace.version` (`2`), `flashlore.trace.records`,
//! `flashlore.trace.values` (all value ids are below it; the column `content` is not read where it is
//! 0), `flashlore.trace.ratios` (how many ratios there are; `delta_ratio` likewise),
//! `flashlore.trace.origin_ns` (the first
//! record's time on the trace's own clock), `flashlore.trace.device_style` (`number`, `major_minor`,
//! `host_disk` or `file`) and `flashlore.trace.hosts` (hosts or files, one a line).
//!
//! A seal stands between the leading `PAR1` and the first row group, where other readers of Parquet
//! do not look: the eight bytes `FLSEAL01` and the BLAKE3 of everything after the seal. It is checked
//! before anything else is parsed, so a damaged file is an error and not a guess. What
//! passes may still be forged: panics of the Parquet decoder become errors (`guard`). Both reading and writing hold one row group at most.

mod file;
mod guard;
mod lists;
mod reader;
mod seal;
mod writer;

use std::sync::Arc;

use parquet::schema::parser::parse_message_type;
use parquet::schema::types::Type;

pub use file::NativeFile;
pub(crate) use reader::{NativeReader, NativeSourceBytes};
pub use writer::NativeWriter;

/// The first bytes of a native file.
pub const MAGIC: [u8; 4] = *b"PAR1";

/// The version of the layout this program reads and writes.
pub const VERSION: &str = "2";

const KEY_VERSION: &str = "flashlore.trace.version";
const KEY_RECORDS: &str = "flashlore.trace.records";
const KEY_VALUES: &str = "flashlore.trace.values";
const KEY_RATIOS: &str = "flashlore.trace.ratios";
const KEY_ORIGIN: &str = "flashlore.trace.origin_ns";
const KEY_STYLE: &str = "flashlore.trace.device_style";
const KEY_HOSTS: &str = "flashlore.trace.hosts";

/// Definition level of an element of a list; 0 is a record without the list.
const PRESENT: i16 = 2;

const SCHEMA: &str = "
message flashlore_trace {
  required int64 time_ns (INTEGER(64,false));
  required int32 device (INTEGER(32,false));
  required int32 op (INTEGER(32,false));
  required int64 offset (INTEGER(64,false));
  required int64 length (INTEGER(64,false));
  optional group content (LIST) {
    repeated group list {
      required int32 element (INTEGER(32,false));
    }
  }
  optional group delta_ratio (LIST) {
    repeated group list {
      required int32 element (INTEGER(16,false));
    }
  }
}";

fn schema() -> Arc<Type> {
    Arc::new(parse_message_type(SCHEMA).expect("the schema above is well formed"))
}
