//! A rewind to an instant on a large device touches what has changed since, and nothing else: counted, with
//! few pages written and far more changes before the instant than after it. The long form has a device of 1 TiB.

use crate::common;

use common::policies::VERSIONS;
use flashlore_content::delta::{Drawn, Ratio};
use flashlore_content::{DedupOptions, NoCensus, PageTag};
use flashlore_flash::geometry::Counts;
use flashlore_flash::sim::{Concurrency, NandSim, Timing};
use flashlore_flash::{Geometry, Lpn, Tag, When};
use flashlore_ftl::content::parts::Past;
use flashlore_ftl::map_cache::Resident;
use flashlore_ftl::{ContentFtl, FtlOptions, Policies};

type Ftl = ContentFtl<PageTag, NandSim, NoCensus, Resident, Drawn, Past>;

fn device(gib: u32) -> Ftl {
    let geometry = Geometry::new(Counts {
        channels: 8,
        packages_per_channel: 1,
        dies_per_package: 1,
        planes_per_die: 1,
        blocks_per_plane: gib * 32,
        pages_per_block: 1024,
        page_bytes: 4096,
    })
    .unwrap();
    assert_eq!(u64::from(geometry.units()) * 4096, u64::from(gib) << 30);
    let timing = Timing {
        read: 25_000,
        program: vec![200_000],
        erase: 1_500_000,
        transfer: 0,
        shared_channel: false,
        concurrency: Concurrency::Die,
        erase_suspend: false,
    };
    let options = FtlOptions::new(geometry.units() / 100 * 93);
    let ratio = Ratio {
        mean: 0.35,
        deviation: 0.05,
    };
    let policies = Policies {
        dedup: DedupOptions {
            index_entries: Some(1 << 16),
            fingerprint_bits: 128,
            verify: false,
            bypass: None,
            out_of_line: false,
        },
        encoding: None,
        versions: Some(VERSIONS),
        encoder: Drawn::new(ratio, ratio, 7),
    };
    let flash = NandSim::new(geometry, timing);
    let mut ftl = Ftl::with_policies(flash, options, policies, NoCensus, Resident).unwrap();
    ftl.begin_history();
    ftl
}

/// Numbers that stand for everything that a rewind could touch: entries recorded and held, live objects,
/// host writes, programs, copies, reads and erases, bytes of the tables.
fn counts(ftl: &Ftl) -> [u64; 9] {
    let core = ftl.core().counters();
    let versions = ftl.versions().unwrap();
    [
        versions.counters.recorded,
        versions.history.len() as u64,
        u64::from(ftl.objects().live()),
        u64::from(ftl.objects().handles()),
        core.host_writes,
        core.programs(),
        core.page_reads_gc,
        core.erases,
        versions.counters.dropped,
    ]
}

#[test]
fn a_rewind_touches_only_what_changed() {
    rewinds(128);
}

#[test]
#[ignore = "takes gigabytes of memory"]
fn a_rewind_touches_only_what_changed_on_a_tebibyte() {
    rewinds(1024);
}

fn rewinds(gib: u32) {
    const BEFORE: u32 = 50_000;
    let mut ftl = device(gib);
    let exported = ftl.core().options().exported;
    // Written pages lie all over the device.
    let page = |i: u32| (u64::from(i) * 0x9E37_79B1 % u64::from(exported)) as u32;
    let mut value = 0;
    let mut now = 0;
    let mut write = |ftl: &mut Ftl, lpn| {
        value += 1;
        now += 1_000_000;
        ftl.set_instant(now);
        ftl.advance(now).unwrap();
        ftl.write(When::now(now), lpn, PageTag(value), Tag::NONE)
            .unwrap();
        now
    };
    for i in 0..BEFORE {
        write(&mut ftl, Lpn(page(i)));
        write(&mut ftl, Lpn(page(i)));
    }
    for k in [1u32, 100, 10_000] {
        let instant = write(&mut ftl, Lpn(page(0)));
        let was: Vec<_> = (0..BEFORE)
            .map(|i| ftl.content_at_instant(Lpn(page(i)), instant).unwrap())
            .collect();
        // Each page changes twice, every other page of them was never written before.
        let changed = |i: u32| page(i + BEFORE - k / 2);
        for i in (0..k).chain(0..k) {
            write(&mut ftl, Lpn(changed(i)));
        }
        let history = &ftl.versions().unwrap().history;
        assert_eq!(history.changed_since(instant).unwrap().len(), u64::from(k));

        let before = counts(&ftl);
        assert_eq!(ftl.rewind_to(instant).unwrap(), u64::from(k));
        let k = u64::from(k);
        // What the changed pages referred to is kept in an entry each; nothing else is different.
        let mut expected = before;
        expected[0] += k;
        expected[1] += k;
        assert_eq!(counts(&ftl), expected, "after a rewind of {k} pages");
        for (i, &content) in (0..BEFORE).zip(&was) {
            assert_eq!(
                ftl.content_at_instant(Lpn(page(i)), u64::MAX).unwrap(),
                content
            );
        }
    }
}
