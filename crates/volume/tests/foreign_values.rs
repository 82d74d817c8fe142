//! A volume that encodes nothing and says that it holds encoded values: only a wrong program can have written that,
//! as checksums hold.

use std::sync::Arc;

use flashlore_content::{PAGE_BYTES, VolumeKey};
use flashlore_flash::{Lpn, ObjectId};
use flashlore_medium::{Medium, MemoryMedium, SECTOR};
use flashlore_volume::format::journal::JournalValue;
use flashlore_volume::format::packed::Head;
use flashlore_volume::format::superblock::{VERSION, first_event};
use flashlore_volume::format::{Areas, Batch, HistoryIdentity};
use flashlore_volume::{
    Encoding, Identity, Policy, Volume, VolumeError, bytes_needed, check, create, load, probe,
};

const KEY: VolumeKey = VolumeKey([9; 32]);

fn identity(history: bool) -> Identity {
    Identity {
        version: VERSION,
        policy: Policy::Dedup,
        history: history.then_some(HistoryIdentity {
            entries: 64,
            least_window: 0,
            protected: false,
        }),
        encoding: Encoding::default(),
        uuid: [1; 16],
        key: KEY,
        created: 5,
        exported: 32,
        blocks: 16,
        pages_per_block: 4,
        units_per_page: 2,
        alignment: SECTOR as u32,
        index_entries: 8,
        journal_bytes: 64 << 10,
    }
}

/// A journal that goes on with a value, as a write of the session that is open.
fn with_value(id: &Identity) -> Arc<MemoryMedium> {
    let medium = Arc::new(MemoryMedium::new(bytes_needed(id).unwrap() as usize));
    create(&*medium, id).unwrap();
    drop(Volume::open(Arc::clone(&medium)).unwrap());
    let areas = Areas::new(id).unwrap();
    let root = load::root(&*medium, id, &areas).unwrap();
    let tail = load::journal(&*medium, id, &areas, &root).unwrap();
    assert!(tail.batches.is_empty(), "{tail:?}");
    let page = [3; PAGE_BYTES];
    let batch = Batch {
        segment: root.checkpoint,
        durable: 0,
        chain: 0,
        epoch: 1,
        after: 0,
        entries: Vec::new(),
        values: vec![JournalValue {
            head: Head {
                lpn: Lpn(3),
                length: 16,
                lost: false,
                write_seq: first_event(1),
                base: None,
                stamp: 10,
                digest: KEY.digest(&page),
                object: ObjectId(0),
            },
            bytes: [7; 16].into(),
        }],
        naming: id.naming(),
    };
    let mut bytes = vec![0; Batch::bytes(0, batch.value_bytes(), SECTOR)];
    batch.encode(&KEY, 0, &mut bytes);
    let at = areas.journal(root.checkpoint);
    medium.write(at, &bytes).unwrap();
    medium
}

#[test]
fn encoded_values_of_a_volume_that_encodes_nothing_are_an_error() {
    for history in [false, true] {
        let medium = with_value(&identity(history));
        let refused = |error: VolumeError| match error {
            VolumeError::Damaged(why) => assert!(why.contains("encodes nothing"), "{why}"),
            other => panic!("{other}"),
        };
        refused(probe(&*medium).unwrap_err());
        refused(check(Arc::clone(&medium), true).unwrap_err());
        refused(Volume::open(medium).map(drop).unwrap_err());
    }
}
