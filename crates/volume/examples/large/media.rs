//! The files of a volume whose data are elided: records and metadata in one, what stands for data in the other.

use std::path::Path;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use flashlore_flash::PageId;
use flashlore_medium::{Elided, FileMedium, Mode, PageParts, Parted};
use flashlore_volume::format::{Areas, Identity};
use flashlore_volume::options::{CreateOptions, default_capacity};
use flashlore_volume::{Encoding, HistoryIdentity, Policy, create, load};

use crate::Result;

/// A medium on which data take eight bytes a page.
pub type Medium = Parted<Elided<FileMedium>>;

const SECTOR: u64 = 512;
const UNIT: u64 = 4096;
const RECORD: u64 = 64;

/// Makes an empty volume; what was there is lost.
pub fn make(directory: &Path, size: u64, system: &str) -> Result<()> {
    let id = identity(size, system)?;
    let areas = Areas::new(&id)?;
    std::fs::create_dir_all(directory)?;
    let (file, table) = (directory.join("file"), directory.join("elided"));
    for old in [&file, &table] {
        match std::fs::remove_file(old) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
    }
    let medium = FileMedium::create(&file, areas.len, Mode::Buffered)?;
    let medium = Parted::new(Elided::create(medium, &table)?, &parts(&id, &areas))?;
    create(&medium, &id)?;
    Ok(())
}

/// The medium of a volume that was made.
pub fn open(directory: &Path) -> Result<Medium> {
    let medium = FileMedium::open(directory.join("file"), Mode::Buffered)?;
    // Superblocks lie where they always do.
    let superblock = load::superblock(&medium)?;
    let areas = Areas::at(&superblock.identity, superblock.metadata)?;
    let elided = Elided::open(medium, directory.join("elided"))?;
    Ok(Parted::new(elided, &parts(&superblock.identity, &areas))?)
}

/// The medium of its index, of so many bytes.
pub fn index(directory: &Path, bytes: u64) -> Result<Option<Arc<dyn flashlore_medium::Medium>>> {
    if bytes == 0 {
        return Ok(None);
    }
    let file = directory.join("index");
    if !file.exists() {
        FileMedium::create(&file, 0, Mode::Buffered)?;
    }
    let medium = FileMedium::open(&file, Mode::Buffered)?;
    medium.shorten(bytes)?;
    medium.extend(bytes)?;
    Ok(Some(Arc::new(medium)))
}

/// How the flash pages of a volume lie below: all data, all records, all that stays zero.
fn parts(id: &Identity, areas: &Areas) -> PageParts {
    let (first, second) = (areas.page(PageId(0)), areas.page(PageId(1)));
    let units = u64::from(id.units_per_page);
    let data = units * UNIT;
    let records = (units * RECORD).next_multiple_of(SECTOR);
    let rest = second - first - data - records;
    PageParts {
        at: first,
        pages: u64::from(id.blocks) * u64::from(id.pages_per_block),
        parts: [data, records, rest]
            .into_iter()
            .filter(|&part| part > 0)
            .collect(),
    }
}

fn identity(size: u64, system: &str) -> Result<Identity> {
    let (policy, history, encoding) = match system {
        "plain" => (Policy::Plain, false, false),
        "ca-ssd" => (Policy::Dedup, false, false),
        "combined" => (Policy::Dedup, true, true),
        other => return Err(format!("system {other}, expected plain, ca-ssd or combined").into()),
    };
    let options = CreateOptions {
        policy,
        history: history.then_some(HistoryIdentity {
            entries: 0,
            least_window: 0,
            protected: false,
        }),
        encoding: Encoding {
            deltas: encoding,
            compression: encoding,
        },
        size,
        capacity: default_capacity(size, history),
        now: SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos() as u64,
        seed: [7; 48],
    };
    Ok(options.identity()?)
}
