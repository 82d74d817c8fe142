//! Opens an input and decompresses it on the fly.

use std::fmt;
use std::io::{self, Read};
use std::sync::Arc;

use parking_lot::Mutex;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use crate::error::{Error, Result};

/// The path that means standard input.
pub(crate) const STDIN: &str = "-";

/// The largest zstd window accepted: 2^30 bytes.
const ZSTD_WINDOW_LOG_MAX: u32 = 30;

/// The most memory an xz stream may ask for, in bytes.
const XZ_MEMORY_BYTES: u64 = 1 << 30;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Compression {
    None,
    /// gzip, one or several members.
    Gzip,
    /// xz, one or several streams.
    Xz,
    /// Zstandard, windows up to 1 GiB.
    Zstd,
}

impl Compression {
    /// The compression whose magic bytes begin `head`.
    pub fn detect(head: &[u8]) -> Compression {
        match head {
            [0x1f, 0x8b, ..] => Compression::Gzip,
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Compression::Xz,
            [0x28, 0xb5, 0x2f, 0xfd, ..] => Compression::Zstd,
            _ => Compression::None,
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Compression::None => "none",
            Compression::Gzip => "gzip",
            Compression::Xz => "xz",
            Compression::Zstd => "zstd",
        })
    }
}

/// What has been taken from the stored file so far.
#[derive(Default)]
struct Tally {
    bytes: u64,
    sha256: Sha256,
}

/// Counts and hashes what passes.
struct Tallied<R> {
    inner: R,
    tally: Arc<Mutex<Tally>>,
}

impl<R: Read> Read for Tallied<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buf)?;
        let mut tally = self.tally.lock();
        tally.bytes += n as u64;
        tally.sha256.update(&buf[..n]);
        Ok(n)
    }
}

/// A decompressed stream of bytes with the name of its origin.
pub(crate) struct Input {
    path: String,
    compression: Compression,
    stream: Box<dyn Read + Send>,
    tally: Arc<Mutex<Tally>>,
}

impl Input {
    /// Wraps `raw`, whose first bytes decide the compression.
    pub(crate) fn new(path: String, raw: impl Read + Send + 'static) -> Result<Input> {
        Self::packed(path, raw, Compression::detect, ZSTD_WINDOW_LOG_MAX)
    }

    /// As [`Input::new`], where `detect` decides the compression by the first bytes and zstd windows
    /// have at most 2^`window_log_max` bytes.
    pub(crate) fn packed(
        path: String,
        mut raw: impl Read + Send + 'static,
        detect: fn(&[u8]) -> Compression,
        window_log_max: u32,
    ) -> Result<Input> {
        let mut head = Vec::new();
        raw.by_ref()
            .take(6)
            .read_to_end(&mut head)
            .map_err(|source| Error::Read {
                path: path.clone(),
                byte: 0,
                source,
            })?;
        let compression = detect(&head);
        let tally = Arc::new(Mutex::new(Tally::default()));
        let whole = Tallied {
            inner: io::Cursor::new(head).chain(raw),
            tally: tally.clone(),
        };
        let stream =
            decompress(compression, whole, window_log_max).map_err(|source| Error::Compressed {
                path: path.clone(),
                compression,
                byte: 0,
                source,
            })?;
        Ok(Input {
            path,
            compression,
            stream,
            tally,
        })
    }

    /// The next decompressed bytes; 0 at the end.
    pub(crate) fn read(&mut self, buf: &mut [u8]) -> Result<usize> {
        loop {
            match self.stream.read(buf) {
                Ok(n) => return Ok(n),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(self.failed(source)),
            }
        }
    }

    fn failed(&self, source: io::Error) -> Error {
        let (path, compression, byte) = (self.path.clone(), self.compression, self.stored_bytes());
        match compression {
            Compression::None => Error::Read { path, byte, source },
            _ => Error::Compressed {
                path,
                compression,
                byte,
                source,
            },
        }
    }

    pub(crate) fn path(&self) -> &str {
        &self.path
    }

    pub(crate) fn compression(&self) -> Compression {
        self.compression
    }

    /// Bytes taken from the stored file so far.
    pub(crate) fn stored_bytes(&self) -> u64 {
        self.tally.lock().bytes
    }

    /// SHA-256 of what was taken from the stored file so far.
    pub(crate) fn sha256(&self) -> [u8; 32] {
        let tally = self.tally.lock();
        tally.sha256.clone().finalize().into()
    }
}

fn decompress(
    compression: Compression,
    raw: impl Read + Send + 'static,
    window_log_max: u32,
) -> io::Result<Box<dyn Read + Send>> {
    Ok(match compression {
        Compression::None => Box::new(raw),
        Compression::Gzip => Box::new(flate2::read::MultiGzDecoder::new(raw)),
        Compression::Xz => {
            let stream = liblzma::stream::Stream::new_stream_decoder(
                XZ_MEMORY_BYTES,
                liblzma::stream::CONCATENATED,
            )?;
            Box::new(liblzma::read::XzDecoder::new_stream(raw, stream))
        }
        Compression::Zstd => {
            let mut decoder = zstd::Decoder::new(raw)?;
            decoder.window_log_max(window_log_max)?;
            Box::new(decoder)
        }
    })
}

/// Bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
