//! What was deleted is gone: a secret that was written, replaced and trimmed is in no byte of the medium once it
//! has been purged and erased, wherever it lay: whole, compressed, as a delta, in the journal.

use crate::support;
use flashlore_flash::Lpn;

use std::path::PathBuf;
use std::sync::Arc;

use flashlore_content::{PAGE_BYTES, PageBytes};
use flashlore_medium::{FileMedium, Mode};
use flashlore_volume::{
    Encoding, HistoryIdentity, Identity, Policy, Volume, VolumeError, bytes_needed, check, create,
};
use support::{Draw, POLICIES, Shape, page};

const SHAPE: Shape = Shape {
    exported: 40,
    blocks: 24,
    pages_per_block: 4,
    units_per_page: 2,
    alignment: 512,
    index_entries: 16,
    journal_bytes: 64 << 10,
};

/// What nobody may find: no codec makes it shorter, so every form of a page has it as it is.
const SECRET: [u8; 48] = *b"q7Zp0-Xr4Lm9_Vd2Ks8=Tn1Hb6+Yc3Wf5/Gj0Ae4Ou7Ri9Mx";

/// A page that compresses well but for the secret, which stands in the middle.
fn secret_page(number: u8) -> PageBytes {
    let mut page = [number; PAGE_BYTES];
    page[2000..2000 + SECRET.len()].copy_from_slice(&SECRET);
    page
}

struct World {
    volume: Volume,
    medium: Arc<FileMedium>,
    path: PathBuf,
    now: u64,
}

impl World {
    fn new(id: &Identity, name: &str) -> World {
        let path = std::env::temp_dir().join(format!("flashlore-{}-{name}", std::process::id()));
        let _ = std::fs::remove_file(&path);
        let medium = FileMedium::create(&path, bytes_needed(id).unwrap(), Mode::Buffered).unwrap();
        let medium = Arc::new(medium);
        create(&*medium, id).unwrap();
        let (volume, _) = Volume::open(Arc::clone(&medium)).unwrap();
        World {
            volume,
            medium,
            path,
            now: 0,
        }
    }

    fn write(&mut self, lpn: Lpn, page: &PageBytes) {
        self.now += 1;
        self.volume.write(self.now, lpn, page).unwrap();
    }

    /// How often the secret stands in the file.
    fn found(&self) -> usize {
        let bytes = std::fs::read(&self.path).unwrap();
        let windows = bytes.windows(SECRET.len());
        windows.filter(|&window| window == SECRET).count()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

fn kinds() -> impl Iterator<Item = (Policy, bool)> {
    let kinds = POLICIES
        .into_iter()
        .flat_map(|policy| [(policy, false), (policy, true)]);
    kinds.filter(|&(policy, _)| policy != Policy::Plain)
}

#[test]
fn a_secret_that_was_purged_and_erased_is_in_no_byte_of_the_file() {
    let (mut in_file, mut kept) = (0, 0);
    for (policy, encodes) in kinds() {
        let id = Identity {
            history: Some(HistoryIdentity {
                entries: 4000,
                least_window: 0,
                protected: false,
            }),
            encoding: Encoding {
                deltas: encodes,
                compression: encodes,
            },
            ..SHAPE.identity(policy)
        };
        let mut world = World::new(&id, &format!("{policy:?}-{encodes}"));
        let mut draw = Draw::new(7);
        for round in 0..6u8 {
            for _ in 0..20 {
                let (lpn, value) = (10 + draw.below(30), draw.below(1000));
                world.write(Lpn(lpn), &page(value + 1));
            }
            // Versions of two pages, most of them deltas of each other where anything is encoded.
            for lpn in [3, 7] {
                world.write(Lpn(lpn), &secret_page(round));
            }
            // What waits to be packed goes to the journal.
            world.volume.flush().unwrap();
            if round == 2 {
                world.volume.checkpoint().unwrap();
            }
        }
        world.write(Lpn(3), &page(1));
        world.volume.trim(world.now, Lpn(7)).unwrap();
        world.volume.flush().unwrap();
        assert!(world.found() > 0, "{policy:?}: nothing to be erased");
        in_file += world.found();
        // A purge alone leaves it where it is until its blocks are collected.
        world.volume.purge(world.now, Lpn(3)..Lpn(4)).unwrap();
        world.volume.flush().unwrap();
        kept += world.found();
        let erased = world
            .volume
            .purge_and_erase(world.now, Lpn(3)..Lpn(8))
            .unwrap();
        assert!(
            erased.erased.is_some_and(|erased| erased.blocks > 0),
            "{erased:?}"
        );
        assert_eq!(
            world.found(),
            0,
            "{policy:?}, encoding {encodes}: {erased:?}"
        );
        world.volume.check().unwrap();
        let mut held = [0; PAGE_BYTES];
        world.volume.read(Lpn(3), &mut held).unwrap();
        assert_eq!(held, page(1));
        for lpn in 3..8 {
            let oldest = world.volume.history_status().unwrap().oldest;
            // What was never written is known; what was purged is an error, and not zeros.
            let read = world.volume.read_at(oldest, Lpn(lpn), &mut held);
            match [3, 7].contains(&lpn) {
                true => assert!(
                    matches!(read, Err(VolumeError::Purged { .. })),
                    "page {lpn}"
                ),
                false => assert_eq!((read.is_ok(), held), (true, [0; PAGE_BYTES]), "page {lpn}"),
            }
        }
        // The volume goes on, and opens again.
        for _ in 0..40 {
            let (lpn, value) = (10 + draw.below(30), draw.below(1000));
            world.write(Lpn(lpn), &page(value + 1));
        }
        world.volume.checkpoint().unwrap();
        world.volume.flush().unwrap();
        let report = check(Arc::clone(&world.medium), true).unwrap();
        assert!(report.errors.is_empty(), "{:?}", report.errors);
        assert!(report.findings.is_empty(), "{:?}", report.findings);
        assert_eq!(world.found(), 0);
    }
    assert!(kept > 0 && kept <= in_file, "{kept} of {in_file}");
}
