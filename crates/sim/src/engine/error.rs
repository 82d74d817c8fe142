//! What can go wrong in a run.

use std::convert::Infallible;

use flashlore_flash::{GeometryError, Lpn};
use flashlore_ftl::FtlError;
use flashlore_ftl::error::OptionsError;

use super::driver::DriveError;
use super::recovery::RecoveryError;
use crate::config::{ConfigError, Share};

/// A run that cannot begin or cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Who asked for the run does not want it any more.
    #[error("interrupted")]
    Interrupted,
    /// The device does not go back to an instant.
    #[error("recovery check: {source}")]
    Recovery {
        /// What is wrong.
        source: RecoveryError,
    },
    /// Neither a map partly in RAM nor its journals are modelled beside a log of parities.
    #[error(
        "device {device:?} keeps the map partly in RAM or in journals, and system {system:?} keeps old versions \
         as parities, whose log that does not model; expected device.map.cache_bytes = \"unlimited\" and \
         device.map.journal_pages = 0"
    )]
    MapOfParities { device: String, system: String },
    /// Reads and writes would be counted in two caches.
    #[error(
        "device.map.cache_bytes of device {device:?} is limited, and so is delta.counted_pages of system \
         {system:?}; reads and writes are counted in the cached map entries then: expected \
         delta.counted_pages = \"unlimited\""
    )]
    CountsApart { device: String, system: String },
    /// The configuration contradicts itself.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The device cannot be built.
    #[error("device {device}: {source}")]
    Geometry {
        /// Its name.
        device: String,
        /// Why.
        source: GeometryError,
    },
    /// The device's settings do not work together.
    #[error("device {device}: {source}{}", remedy(source))]
    Options {
        /// Its name.
        device: String,
        /// Why.
        source: OptionsError,
    },
    /// The trace cannot be read any more.
    #[error(transparent)]
    Trace(#[from] flashlore_trace::Error),
    /// The trace needs more pages than the device exports.
    #[error(
        "device {device} exports {exported} pages of 4 KiB, but the trace touches page {last}; \
         use a larger device, `--device auto` or `--compact`"
    )]
    TooSmall {
        /// Its name.
        device: String,
        /// Pages exported.
        exported: u64,
        /// Highest page of the trace.
        last: u64,
    },
    /// The system looks at content and the trace has none.
    #[error(
        "system {system} needs the content of writes and the trace has none; say what to assume \
         with `--content distinct`"
    )]
    NoContent { system: String },
    /// The system encodes bytes that nobody knows.
    #[error(
        "system {system} needs the bytes of pages, and those of the trace are not known; use a profile with \
         [similarity], a trace with a file of pages, or, if it encodes them, codec.ratio = \"drawn\""
    )]
    NoBytes { system: String },
    /// The array cannot be made, or an operation on it fails.
    #[error("array: {0}")]
    Array(#[from] flashlore_array::ArrayError),
    /// Its devices cannot take what it asks.
    #[error("array: {0}")]
    Timed(#[from] flashlore_array::timed::TimedError),
    /// Its disks cannot be made.
    #[error("array.drive: {0}")]
    Disks(String),
    /// Its SSD is too small.
    #[error(
        "device {device} exports {has} bytes, but the array's SSD holds {needed}; use a larger device, or \
         `--device auto`"
    )]
    SmallSsd {
        device: String,
        /// Bytes needed.
        needed: u64,
        /// Bytes there are.
        has: u64,
    },
    /// The media of the array do not fit the memory of this machine.
    #[error(
        "the media of the array have {bytes} bytes, which this machine has no memory for; use `--compact`, or a \
         smaller scale"
    )]
    Memory {
        /// Bytes of both media.
        bytes: u64,
    },
    /// A request of a run of an array fails.
    #[error("request {request}: {source}")]
    OfArray {
        /// Number of the request in the trace, from 1.
        request: u64,
        /// Why.
        source: Box<RunError>,
    },
    /// An array returned what nobody wrote: a fault of Flashlore.
    #[error(
        "page {lpn} does not hold what was written; this is a fault of Flashlore, please report it"
    )]
    WrongContent {
        /// The page.
        lpn: Lpn,
    },
    /// Some of what is written has no content, and so no bytes.
    #[error(
        "system {system} needs the content of pages, and the trace has no \
         content for {missing} of {writes} page writes"
    )]
    WritesWithoutContent {
        system: String,
        /// Page writes without content.
        missing: u64,
        /// Page writes.
        writes: u64,
    },
    /// The bytes of some values are not in the file of pages.
    #[error(
        "system {system} needs the bytes of pages, and those of value \
         {value} are not known: the values of units that are written in part are in no file of pages; \
         expected requests of whole 4 KiB"
    )]
    UnknownBytes {
        system: String,
        /// The value's number.
        value: u32,
    },
    /// The system takes R_c from a trace that does not have it.
    #[error(
        "system {system} takes the sizes of deltas from the trace (codec.ratio = \"trace\"), and \
         {missing} of {writes} page writes have no R_c; lay one over them with \
         `--delta gaussian:mean=0.35,std=0.05`, use a trace that has it, as \
         `flashlore trace convert --delta` writes it, or say codec.ratio = \"drawn\""
    )]
    NoRatios {
        system: String,
        /// Page writes without R_c.
        missing: u64,
        /// Page writes.
        writes: u64,
    },
    /// The warm-up takes every request.
    #[error(
        "a warm-up of {share} leaves none of the {requests} requests to measure; use a smaller \
         host.warmup or a longer trace"
    )]
    AllWarmup {
        /// Share of the requests that warm up.
        share: Share,
        /// Requests replayed.
        requests: u64,
    },
    /// The request log cannot be written.
    #[error("request log: {source}")]
    Log {
        /// Why.
        source: std::io::Error,
    },
    /// The device cannot be prepared as asked.
    #[error("while the device is prepared: {source}")]
    Prepare {
        /// Why.
        source: FtlError<Infallible>,
    },
    /// So many blocks are worn out that the device takes no more writes.
    #[error(
        "request {request}: device {device} is worn out after {bytes} bytes ({gib:.3} GiB) of host \
         writes, {seconds:.3} s of simulated time: {retired} of its {blocks} blocks are retired and \
         the rest have no room for one more collection; it can only be read",
        gib = *bytes as f64 / f64::from(1u32 << 30)
    )]
    WornOut {
        /// Its name.
        device: String,
        /// Number of the refused request in the trace, from 1.
        request: u64,
        /// Bytes the host has written since the device was prepared.
        bytes: u64,
        /// Simulated time, in seconds.
        seconds: f64,
        /// Retired blocks.
        retired: u32,
        /// Blocks of the device.
        blocks: u32,
    },
    /// A request cannot be served.
    #[error("request {request}: {source}")]
    Request {
        /// Number of the request in the trace, from 1.
        request: u64,
        /// Why.
        source: DriveError,
    },
    /// The out-of-band area cannot hold what the system stores there.
    #[error(
        "device {device} has {found} out-of-band bytes for each 4 KiB, system {system} needs \
         {needed} for the digest"
    )]
    OutOfBand {
        device: String,
        system: String,
        /// Bytes a mapping unit has.
        found: u64,
        /// Bytes it needs.
        needed: u64,
    },
}

/// What would help a device that cannot be kept writable.
fn remedy(source: &OptionsError) -> String {
    match source {
        OptionsError::NoSpare { most, units, .. } => {
            let spare = 100.0 * (1.0 - *most as f64 / *units as f64);
            format!(
                "; expected a spare share of about {:.0} % or more (--set device.space.over_provisioning={:.0}%), or \
                 fewer planes or smaller blocks",
                spare.ceil(),
                spare.ceil()
            )
        }
        _ => String::new(),
    }
}
