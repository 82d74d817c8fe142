//! The superblock: what a volume is, and the epochs since its last checkpoint. Two copies of 4096
//! bytes at the start of the medium.
//!
//! | offset | bytes | field |
//! |---:|---:|---|
//! | 0 | 8 | magic `FLSHLORE` |
//! | 8 | 4 | format version |
//! | 12 | 4 | features a reader must know: 1 deduplication, 2 digests are trusted, 4 history, 8 (with 4) the least window is protected, 16 deltas, 32 compression |
//! | 16 | 16 | volume identity |
//! | 32 | 32 | key of digests and checksums |
//! | 64 | 8 | creation time, nanoseconds since 1970 |
//! | 72 | 4 | exported pages |
//! | 76 | 4 | blocks |
//! | 80 | 4 | flash pages in a block |
//! | 84 | 4 | units in a flash page |
//! | 88 | 4 | alignment of every structure, bytes |
//! | 92 | 4 | entries of the fingerprint index |
//! | 96 | 8 | bytes of a journal segment |
//! | 104 | 8 | write number of this copy; the higher valid one counts |
//! | 112 | 4 | current epoch |
//! | 116 | 4 | entries of the epoch table |
//! | 120 | 4 | most entries of the history |
//! | 124 | 4 | 1 while the volume is in use, 0 once it is closed; volumes that an older program left have 0 either way |
//! | 128 | 8 | least window, nanoseconds |
//! | 136 | 8 | where the metadata begin, bytes |
//! | 144 | 16 each | epoch (4), zero (4), last sequence number before it (8) |
//! | 4088 | 8 | keyed checksum of bytes 0 to 4087 |

use flashlore_content::VolumeKey;

use super::cursor::{Reader, Writer};
use super::name::Naming;

/// Bytes of a copy.
pub const SUPERBLOCK_BYTES: usize = 4096;
/// The version of the volumes that this program makes and opens.
pub const VERSION: u32 = 9;
/// The first version whose tables lie in a store of pages; [`super::old`] has what was before.
pub const FIRST_WITH_STORE: u32 = 5;
/// The first version in whose store the translation layer has its tables.
pub const FIRST_WITH_LIVE_ROWS: u32 = 6;
/// The first version that says what else was counted: which units are valid, and what [`super::root`] tells.
pub const FIRST_WITH_TALLIES: u32 = 7;
/// The first version whose packed pages the translation layer has in its own table.
pub const FIRST_WITH_LIVE_PACKS: u32 = 8;
/// The first version whose history the translation layer has in tables of its own.
pub const FIRST_WITH_LIVE_HISTORY: u32 = 9;
/// The oldest version that it reads, to bring the volume to the present one ([`crate::Growth::upgrade`]).
pub const OLDEST_VERSION: u32 = 3;
/// The most epochs the table holds.
pub const MOST_EPOCHS: usize = (SUPERBLOCK_BYTES - 8 - TABLE) / 16;

const TABLE: usize = 144;
const MAGIC: [u8; 8] = *b"FLSHLORE";
const FEATURE_DEDUP: u32 = 1;
const FEATURE_TRUST: u32 = 2;
const FEATURE_HISTORY: u32 = 4;
const FEATURE_PROTECT: u32 = 8;
const FEATURE_DELTAS: u32 = 16;
const FEATURE_COMPRESSION: u32 = 32;
const ALL_FEATURES: u32 = 63;

/// How the content of pages is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Policy {
    /// Not at all.
    Plain,
    /// Equal pages are stored once; bytes are compared before a page is shared.
    Dedup,
    /// Equal pages are stored once; pages with equal digests of 128 bits are taken for equal.
    DedupTrusted,
}

/// Which values are stored in fewer bytes than a page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Encoding {
    /// Updates of pages that are written often, as deltas from what they replace.
    pub deltas: bool,
    /// Any value that is shorter so, compressed by itself.
    pub compression: bool,
}

impl Encoding {
    /// Whether anything is encoded.
    pub fn is_on(self) -> bool {
        self.deltas || self.compression
    }
}

/// How old versions are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryIdentity {
    /// The most entries: changes of pages that are remembered.
    pub entries: u32,
    /// The window that is kept if possible, in nanoseconds.
    pub least_window: u64,
    /// Whether writes are refused rather than that the window becomes shorter than that.
    pub protected: bool,
}

/// What a volume is. Only growth and an upgrade change it: exported pages, blocks, and the entries of index and history
/// may become more, and the journal longer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The format of its bytes.
    pub version: u32,
    /// What the content is used for.
    pub policy: Policy,
    /// Whether old versions are kept, and how.
    pub history: Option<HistoryIdentity>,
    pub encoding: Encoding,
    /// Drawn at creation.
    pub uuid: [u8; 16],
    /// Key of digests and checksums.
    pub key: VolumeKey,
    /// When it was created, in nanoseconds since 1970.
    pub created: u64,
    /// Logical pages of 4 KiB.
    pub exported: u32,
    /// Erase blocks.
    pub blocks: u32,
    /// Flash pages in a block.
    pub pages_per_block: u32,
    /// Units in a flash page.
    pub units_per_page: u32,
    /// What offsets and lengths of all structures are multiples of, in bytes.
    pub alignment: u32,
    /// Entries of the fingerprint index.
    pub index_entries: u32,
    /// Bytes of a journal segment.
    pub journal_bytes: u64,
}

impl Identity {
    /// Whether pages refer to objects, not to units.
    pub fn has_objects(&self) -> bool {
        self.policy != Policy::Plain || self.history.is_some() || self.encoding.is_on()
    }

    /// Whether pages with equal digests are taken for equal.
    pub fn trusts_digests(&self) -> bool {
        self.policy == Policy::DedupTrusted
    }

    /// How its journal names objects.
    pub fn naming(&self) -> Naming {
        match self.version < FIRST_WITH_LIVE_ROWS {
            true => Naming::ByWrite,
            false => Naming::ByHandle,
        }
    }

    fn features(&self) -> u32 {
        let dedup = match self.policy {
            Policy::Plain => 0,
            Policy::Dedup => FEATURE_DEDUP,
            Policy::DedupTrusted => FEATURE_DEDUP | FEATURE_TRUST,
        };
        let deltas = u32::from(self.encoding.deltas) * FEATURE_DELTAS;
        let compression = u32::from(self.encoding.compression) * FEATURE_COMPRESSION;
        dedup
            | deltas
            | compression
            | match self.history {
                None => 0,
                Some(history) if history.protected => FEATURE_HISTORY | FEATURE_PROTECT,
                Some(_) => FEATURE_HISTORY,
            }
    }
}

fn policy_of(features: u32) -> Option<Policy> {
    match features & (FEATURE_DEDUP | FEATURE_TRUST) {
        0 => Some(Policy::Plain),
        FEATURE_DEDUP => Some(Policy::Dedup),
        FEATURE_TRUST => None,
        _ => Some(Policy::DedupTrusted),
    }
}

/// A mount after which sequence numbers go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EpochStart {
    /// Its number.
    pub epoch: u32,
    /// The last sequence number before it that counts.
    pub after: u64,
}

/// Numbers of an epoch: its events and block generations begin at `epoch << EPOCH_SHIFT`, so none is used twice.
pub const EPOCH_SHIFT: u32 = 40;

/// The number of an epoch's first event.
pub fn first_event(epoch: u32) -> u64 {
    (u64::from(epoch) << EPOCH_SHIFT) + 1
}

/// A copy of the superblock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Superblock {
    /// What the volume is.
    pub identity: Identity,
    /// Where the metadata begin, in bytes: [`super::Areas`].
    pub metadata: u64,
    /// Which writing of a superblock this is.
    pub write: u64,
    /// The current epoch.
    pub epoch: u32,
    /// Whether somebody uses the volume, or did and never closed it. Durable before an opening changes anything else;
    /// an orderly close takes it away last.
    pub in_use: bool,
    /// The epochs since the last checkpoint, oldest first.
    pub epochs: Vec<EpochStart>,
}

/// Why a copy cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unusable {
    /// The magic is missing.
    NotAVolume,
    /// The checksum or a field does not hold.
    Broken,
    /// Written by a version this program does not know.
    Version(u32),
    /// With features this program does not know.
    Features(u32),
}

impl Superblock {
    /// The bytes of a copy.
    pub fn encode(&self) -> [u8; SUPERBLOCK_BYTES] {
        let mut bytes = [0; SUPERBLOCK_BYTES];
        let id = &self.identity;
        let mut out = Writer::new(&mut bytes);
        out.put(&MAGIC).u32(id.version).u32(id.features());
        out.put(&id.uuid).put(&id.key.0).u64(id.created);
        out.u32(id.exported).u32(id.blocks);
        out.u32(id.pages_per_block).u32(id.units_per_page);
        out.u32(id.alignment).u32(id.index_entries);
        out.u64(id.journal_bytes).u64(self.write);
        out.u32(self.epoch).u32(self.epochs.len() as u32);
        out.u32(id.history.map_or(0, |h| h.entries));
        out.u32(self.in_use.into());
        out.u64(id.history.map_or(0, |h| h.least_window));
        out.u64(self.metadata);
        for start in &self.epochs {
            out.u32(start.epoch).u32(0).u64(start.after);
        }
        let check = id.key.checksum(0, &[&bytes[..SUPERBLOCK_BYTES - 8]]);
        bytes[SUPERBLOCK_BYTES - 8..].copy_from_slice(&check.to_le_bytes());
        bytes
    }

    /// Reads a copy.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub fn decode(bytes: &[u8; SUPERBLOCK_BYTES]) -> Result<Superblock, Unusable> {
        let mut fields = Reader::new(bytes);
        if fields.take::<8>() != MAGIC {
            return Err(Unusable::NotAVolume);
        }
        let (version, features) = (fields.u32(), fields.u32());
        let uuid = fields.take();
        let key = VolumeKey(fields.take());
        let check = Reader::new(&bytes[SUPERBLOCK_BYTES - 8..]).u64();
        if check != key.checksum(0, &[&bytes[..SUPERBLOCK_BYTES - 8]]) {
            return Err(Unusable::Broken);
        }
        if !(OLDEST_VERSION..=VERSION).contains(&version) {
            return Err(Unusable::Version(version));
        }
        let has_history = features & FEATURE_HISTORY != 0;
        let protected = features & FEATURE_PROTECT != 0;
        let policy = policy_of(features)
            .filter(|_| features & !ALL_FEATURES == 0 && (has_history || !protected));
        let Some(policy) = policy else {
            return Err(Unusable::Features(features));
        };
        let mut identity = Identity {
            version,
            policy,
            history: None,
            encoding: Encoding {
                deltas: features & FEATURE_DELTAS != 0,
                compression: features & FEATURE_COMPRESSION != 0,
            },
            uuid,
            key,
            created: fields.u64(),
            exported: fields.u32(),
            blocks: fields.u32(),
            pages_per_block: fields.u32(),
            units_per_page: fields.u32(),
            alignment: fields.u32(),
            index_entries: fields.u32(),
            journal_bytes: fields.u64(),
        };
        let (write, epoch, count) = (fields.u64(), fields.u32(), fields.u32() as usize);
        if count > MOST_EPOCHS {
            return Err(Unusable::Broken);
        }
        let (entries, in_use, least_window) = (fields.u32(), fields.u32(), fields.u64());
        let metadata = fields.u64();
        identity.history = has_history.then_some(HistoryIdentity {
            entries,
            least_window,
            protected,
        });
        let mut start = || {
            let epoch = fields.u32();
            fields.u32();
            EpochStart {
                epoch,
                after: fields.u64(),
            }
        };
        let epochs = (0..count).map(|_| start()).collect();
        Ok(Superblock {
            identity,
            metadata,
            write,
            epoch,
            in_use: in_use != 0,
            epochs,
        })
    }
}
