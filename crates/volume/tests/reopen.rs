//! What was written is there again, after a clean end and after a plain stop.

use std::sync::Arc;

use flashlore_content::{PAGE_BYTES, PageBytes, VolumeKey};
use flashlore_medium::MemoryMedium;
use flashlore_volume::{Encoding, Identity, Policy, Volume, bytes_needed, create};

fn identity(policy: Policy) -> Identity {
    Identity {
        policy,
        history: None,
        encoding: Encoding::default(),
        uuid: [1; 16],
        key: VolumeKey([9; 32]),
        created: 5,
        exported: 64,
        blocks: 24,
        pages_per_block: 4,
        units_per_page: 2,
        alignment: 512,
        index_entries: 16,
        journal_bytes: 64 << 10,
    }
}

fn page(value: u32) -> PageBytes {
    let mut page = [0; PAGE_BYTES];
    for (i, chunk) in page.chunks_exact_mut(4).enumerate() {
        chunk.copy_from_slice(&(value.wrapping_mul(31) ^ i as u32).to_le_bytes());
    }
    page
}

#[test]
fn contents_survive_many_openings() {
    for policy in [Policy::Plain, Policy::Dedup, Policy::DedupTrusted] {
        let id = identity(policy);
        let medium = Arc::new(MemoryMedium::new(bytes_needed(&id).unwrap() as usize));
        create(&medium, &id).unwrap();
        let mut model = vec![None; 64];
        let mut x = 12345u32;
        let mut next = || {
            x ^= x << 13;
            x ^= x >> 17;
            x ^= x << 5;
            x
        };
        for round in 0..40 {
            let (mut volume, recovery) = Volume::open(Arc::clone(&medium)).unwrap();
            assert_eq!(recovery.epoch, round + 1);
            volume.check().unwrap();
            for lpn in 0..64 {
                let mut got = [1; PAGE_BYTES];
                volume.read(lpn, &mut got).unwrap();
                let expected = model[lpn as usize].map_or([0; PAGE_BYTES], page);
                assert_eq!(got, expected, "{policy:?} round {round} page {lpn}");
            }
            for _ in 0..100 {
                let (lpn, value) = (next() % 64, next() % 40);
                if next() % 8 == 0 {
                    volume.trim(0, lpn).unwrap();
                    model[lpn as usize] = None;
                } else {
                    volume.write(u64::from(round), lpn, &page(value)).unwrap();
                    model[lpn as usize] = Some(value);
                }
            }
            if round % 3 == 0 {
                volume.close().unwrap();
            } else {
                volume.flush().unwrap();
            }
        }
    }
}
