//! Identities of new volumes and of those that grow, from the sizes that are asked for.

use std::sync::Arc;

use flashlore_medium::MemoryMedium;
use flashlore_volume::format::Areas;
use flashlore_volume::options::{SizeError, capacity, grown};
use flashlore_volume::{
    CreateOptions, Encoding, HistoryIdentity, Identity, Policy, Volume, bytes_needed, create,
};

fn identity(size: u64, capacity: u64) -> Result<Identity, SizeError> {
    CreateOptions {
        policy: Policy::Dedup,
        history: None,
        encoding: Encoding::default(),
        size,
        capacity,
        now: 0,
        seed: [0; 48],
    }
    .identity()
}

#[test]
fn what_is_asked_for_fits() {
    for mib in [1, 3, 64, 1000, 100 << 10] {
        let id = identity(mib << 20, mib << 20).unwrap();
        let units = u64::from(id.blocks - 6) * u64::from(id.pages_per_block * 16);
        assert!(
            units >= u64::from(id.exported) * 11 / 10,
            "{mib} MiB: {id:?}"
        );
        Areas::new(&id).unwrap();
        if mib <= 3 {
            let medium = Arc::new(MemoryMedium::new(bytes_needed(&id).unwrap() as usize));
            create(&medium, &id).unwrap();
            let (volume, _) = Volume::open(medium).unwrap();
            let most = volume.status().most;
            assert!(most >= u64::from(id.exported), "{mib} MiB: {most} fit");
        }
    }
}

#[test]
fn growth_is_what_a_larger_volume_would_have_had() {
    let mib = 1u64 << 20;
    let id = identity(100 * mib, 100 * mib).unwrap();
    assert_eq!(capacity(&id), 100 * mib);
    let larger = grown(&id, Some(120 * mib), None).unwrap();
    assert_eq!(larger, identity(120 * mib, 120 * mib).unwrap());
    let room = grown(&id, None, Some(120 * mib)).unwrap();
    assert_eq!((room.exported, capacity(&room)), (id.exported, 120 * mib));
    assert!(room.blocks > id.blocks);
    let mut kept = id.clone();
    kept.history = Some(HistoryIdentity {
        entries: 1000,
        least_window: 0,
        protected: false,
    });
    let larger = grown(&kept, Some(200 * mib), None).unwrap();
    assert_eq!(capacity(&larger), 250 * mib);
    let entries = larger.history.unwrap().entries;
    assert_eq!(entries, 1000 + (150 * mib / 4096) as u32);
}

#[test]
fn growth_to_less_or_to_the_same_is_refused() {
    let mib = 1u64 << 20;
    let id = identity(100 * mib, 40 * mib).unwrap();
    let refused = |size, capacity| grown(&id, size, capacity).unwrap_err();
    let shrinks = |what, found, present| SizeError::Shrinks {
        what,
        found,
        present,
    };
    assert_eq!(
        refused(Some(99 * mib), None),
        shrinks("the size", 99 * mib, 100 * mib)
    );
    assert_eq!(
        refused(Some(101 * mib), Some(39 * mib)),
        shrinks("the capacity", 39 * mib, 40 * mib)
    );
    let same = SizeError::NothingGrows {
        size: 100 * mib,
        capacity: 40 * mib,
    };
    assert_eq!(refused(Some(100 * mib), None), same);
    assert_eq!(refused(None, None), same);
    assert!(matches!(
        refused(Some((100 * mib) + 1), None),
        SizeError::NotPages { .. }
    ));
    assert!(matches!(
        refused(Some(u64::MAX / 4096 * 4096), None),
        SizeError::TooLarge { .. }
    ));
}

#[test]
fn odd_and_huge_sizes_are_refused() {
    assert!(matches!(
        identity(5000, 1 << 20),
        Err(SizeError::NotPages { .. })
    ));
    assert!(matches!(
        identity(1 << 20, 4096),
        Err(SizeError::NotPages { .. })
    ));
    assert!(matches!(
        identity(1 << 60, 1 << 20),
        Err(SizeError::TooLarge { .. })
    ));
}
