//! Bytes of memory a logical page, by the tables' own reports. All tables are in proportion to the device, so a
//! small one says what a large one takes; `cargo bench -p flashlore-sim --bench replay` allocates those of 1 TiB.

use crate::common;

use common::Random;
use flashlore_content::delta::{Drawn, Ratio};
use flashlore_content::history::HistoryOptions;
use flashlore_content::{DedupOptions, NoCensus, PageTag};
use flashlore_flash::sim::NandSim;
use flashlore_flash::{Geometry, Lpn, Tag, When};
use flashlore_ftl::content::parts::Past;
use flashlore_ftl::map_cache::Resident;
use flashlore_ftl::mapping::packs::MOST_BYTES;
use flashlore_ftl::policies::history::{OnPressure, VersionsOptions};
use flashlore_ftl::policies::options::{EncodingOptions, HeatOptions, NEVER, ViabilityOptions};
use flashlore_ftl::{ContentFtl, FtlOptions, Policies};

type Ftl = ContentFtl<PageTag, NandSim, NoCensus, Resident, Drawn, Past>;

/// 256 MiB, 7 % spare, an index of a quarter of the pages and a third of an entry of history a page.
fn device() -> Ftl {
    let geometry = Geometry::single_plane(256, 256, 4096).unwrap();
    let exported = geometry.units() / 100 * 93;
    let ratio = |mean| Ratio {
        mean,
        deviation: 0.05,
    };
    let most_bytes = MOST_BYTES as u16;
    let policies = Policies {
        dedup: DedupOptions {
            index_entries: Some(exported / 4),
            fingerprint_bits: 128,
            verify: false,
            bypass: None,
            out_of_line: false,
        },
        encoding: Some(EncodingOptions {
            deltas: true,
            compress: false,
            hot_writes: 2,
            hot_reads: NEVER,
            most_bytes,
            viability: ViabilityOptions {
                most_bytes,
                window: 1024,
                probe: 64,
            },
            heat: HeatOptions {
                entries: None,
                protected: 0,
            },
            lambda: 0,
            most_pinned: exported,
            similar: None,
        }),
        versions: Some(VersionsOptions {
            history: HistoryOptions {
                max_entries: Some(exported / 3),
                schedule: None,
            },
            least_window: 0,
            on_pressure: OnPressure::Shrink,
            reserve: 0,
            entries_in_ram: None,
        }),
        encoder: Drawn::new(ratio(0.35), ratio(1.0), 7),
    };
    let flash = NandSim::new(geometry, common::slc());
    let options = FtlOptions::new(exported);
    Ftl::with_policies(flash, options, policies, NoCensus, Resident).unwrap()
}

/// Bytes of each group of tables for a logical page.
fn bytes(ftl: &Ftl) -> [(&'static str, f64); 7] {
    let pages = f64::from(ftl.core().options().exported);
    let (delta, packing) = (ftl.delta().unwrap(), ftl.packing().unwrap());
    let parts = [
        ("blocks and owners", ftl.core().heap_bytes()),
        ("map and objects", ftl.objects().heap_bytes()),
        ("index", ftl.dedup().index.heap_bytes()),
        ("history", ftl.versions().unwrap().history.heap_bytes()),
        ("heat", delta.heat.heap_bytes()),
        ("packed pages", packing.packs.heap_bytes()),
        ("all", ftl.heap_bytes()),
    ];
    parts.map(|(name, bytes)| (name, bytes as f64 / pages))
}

#[test]
fn memory_a_page_is_bounded_and_flat_in_the_number_of_requests() {
    let mut ftl = device();
    let exported = ftl.core().options().exported;
    let mut random = Random::new(7);
    let (mut value, mut now) = (0, 0);
    // 40 % of the writes repeat a recent value; half go to a 64th of the pages.
    let mut run = |ftl: &mut Ftl, writes: u32| {
        for _ in 0..writes {
            now += 200_000;
            let hot = random.below(2) == 0;
            let lpn = random.below(if hot { exported / 64 } else { exported });
            let repeats = value > exported / 32 && random.below(100) < 40;
            let content = if repeats {
                value - random.below(exported / 32)
            } else {
                value += 1;
                value
            };
            ftl.set_instant(now);
            ftl.write(When::now(now), Lpn(lpn), PageTag(content), Tag::NONE)
                .unwrap();
        }
    };
    for lpn in 0..exported {
        ftl.write(When::now(0), Lpn(lpn), PageTag(u32::MAX - lpn), Tag::NONE)
            .unwrap();
    }
    ftl.begin_history();
    run(&mut ftl, 2 * exported);
    let early = report(&ftl);
    run(&mut ftl, 3 * exported);
    let late = report(&ftl);
    ftl.check().unwrap();
    assert!(late < early + 1.0, "{early} bytes a page, later {late}");
    assert!(late < MOST, "{late} bytes a page");
}

/// Bytes for a logical page that are enough with about 1.1 objects, a fifth of them packed.
const MOST: f64 = 57.0;

/// Prints what there is of everything for a logical page; answers the bytes of all tables.
fn report(ftl: &Ftl) -> f64 {
    let pages = f64::from(ftl.core().options().exported);
    let share = |count: f64| count / pages;
    let objects = share(f64::from(ftl.objects().live()));
    let packed = share(f64::from(ftl.packing().unwrap().packed));
    let entries = share(ftl.versions().unwrap().history.len() as f64);
    let indexed = share(f64::from(ftl.dedup().index.len()));
    assert!(
        (1.0..1.2).contains(&objects) && packed > 0.15,
        "{objects} {packed}"
    );
    assert!(entries > 0.3 && indexed > 0.2, "{entries} {indexed}");
    let bytes = bytes(ftl);
    println!(
        "a page has {objects:.2} objects, {packed:.2} packed ones, {entries:.2} entries, {indexed:.2} indexed \
         values: {bytes:.2?}"
    );
    bytes[6].1
}
