//! The seal: a checksum of the whole file, in front.
//!
//! Layout: bytes 0..4 the magic of Parquet, 4..12 [`TAG`], 12..44 the BLAKE3 of bytes 44 to the end.

use std::io::{self, Read, Seek, SeekFrom, Write};

use sha2::{Digest as _, Sha256};

/// Tells a sealed file from any other Parquet file.
pub(super) const TAG: [u8; 8] = *b"FLSEAL01";

/// Where the checksum stands.
const SUM_AT: u64 = 12;

/// Where the sealed bytes begin.
const SEALED_AT: u64 = 44;

/// What stands in place of the checksum until it is known.
pub(super) fn placeholder() -> [u8; 40] {
    let mut seal = [0; 40];
    seal[..8].copy_from_slice(&TAG);
    seal
}

/// Passes bytes on in order and keeps the checksum of those behind the seal.
pub(super) struct Sealing<W> {
    inner: W,
    position: u64,
    hasher: blake3::Hasher,
}

impl<W: Write + Seek> Sealing<W> {
    pub(super) fn new(inner: W) -> Self {
        Sealing {
            inner,
            position: 0,
            hasher: blake3::Hasher::new(),
        }
    }

    /// Writes the checksum into its place.
    pub(super) fn seal(mut self) -> io::Result<W> {
        self.inner.seek(SeekFrom::Start(SUM_AT))?;
        self.inner.write_all(self.hasher.finalize().as_bytes())?;
        self.inner.flush()?;
        Ok(self.inner)
    }
}

impl<W: Write> Write for Sealing<W> {
    fn write(&mut self, buf: &[u8]) -> io::Result<usize> {
        let n = self.inner.write(buf)?;
        let before_seal_end = SEALED_AT.saturating_sub(self.position).min(n as u64) as usize;
        self.hasher.update(&buf[before_seal_end..n]);
        self.position += n as u64;
        Ok(n)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

/// What one pass over a file finds out.
pub(super) struct Verified {
    pub(super) sha256: [u8; 32],
    pub(super) bytes: u64,
}

/// Reads the file once. The outer error is the system's, the inner one says what is wrong.
pub(super) fn verify(mut file: impl Read) -> io::Result<Result<Verified, String>> {
    let mut head = Vec::new();
    file.by_ref().take(SEALED_AT).read_to_end(&mut head)?;
    if head.len() < SEALED_AT as usize || head[4..12] != TAG {
        return Ok(Err(format!(
            "it does not carry the seal of a Flashlore trace; expected the bytes {} at byte 4",
            TAG.escape_ascii()
        )));
    }
    let mut sha256 = Sha256::new_with_prefix(&head);
    let mut hasher = blake3::Hasher::new();
    let mut bytes = SEALED_AT;
    let mut buffer = vec![0; 1 << 18];
    loop {
        let n = match file.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        };
        sha256.update(&buffer[..n]);
        hasher.update(&buffer[..n]);
        bytes += n as u64;
    }
    if hasher.finalize() != blake3::Hash::from_bytes(head[12..44].try_into().unwrap_or([0; 32])) {
        return Ok(Err(format!(
            "the checksum over its {bytes} bytes does not fit; the file was cut or changed after \
             it was written"
        )));
    }
    Ok(Ok(Verified {
        sha256: sha256.finalize().into(),
        bytes,
    }))
}
