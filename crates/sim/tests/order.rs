//! Changes to one page are committed in order of arrival, however long each fetches: with partial
//! writes, verified duplicates, trims and a busy hash unit, private and shared channels.

use std::collections::BTreeMap;

use flashlore_content::{DedupOptions, NoCensus};
use flashlore_flash::Geometry;
use flashlore_flash::geometry::Counts;
use flashlore_flash::sim::{Concurrency, NandSim, Timing};
use flashlore_ftl::FtlOptions;
use flashlore_sim::config::Load;
use flashlore_sim::engine::Measured;
use flashlore_sim::engine::driver::{Driver, Host};
use flashlore_sim::engine::system::Deduplicating;
use flashlore_trace::{NO_CONTENT, Op, Request, RequestBlock};
use proptest::prelude::*;

const PAGES: u32 = 6;

fn device(shared: bool, verify: bool) -> Deduplicating<NoCensus> {
    let geometry = Geometry::new(Counts {
        channels: 1,
        packages_per_channel: 1,
        dies_per_package: 2,
        planes_per_die: 1,
        blocks_per_plane: 8,
        pages_per_block: 8,
        page_bytes: 4096,
    })
    .unwrap();
    let timing = Timing {
        read: 25,
        program: vec![200],
        erase: 1500,
        transfer: 40,
        shared_channel: shared,
        concurrency: Concurrency::Die,
        erase_suspend: false,
    };
    let options = FtlOptions::new(PAGES);
    let dedup = DedupOptions {
        index_entries: None,
        fingerprint_bits: 128,
        verify,
        bypass: None,
    };
    Deduplicating::new(NandSim::new(geometry, timing), options, dedup, NoCensus).unwrap()
}

fn requests() -> impl Strategy<Value = Vec<(u64, u32, u32, u8, bool)>> {
    prop::collection::vec(
        (0u64..80, 0..PAGES, 0u32..4, 0u8..12, any::<bool>()),
        1..300,
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn the_last_change_to_arrive_is_the_one_that_stays(
        requests in requests(),
        shared in any::<bool>(),
        verify in any::<bool>(),
    ) {
        let mut system = device(shared, verify);
        let mut block = RequestBlock::default();
        let mut expected: BTreeMap<u32, u32> = BTreeMap::new();
        let mut now = 0;
        for (gap, lpn, value, kind, partial) in requests {
            now += gap;
            let op = match kind {
                0 => Op::Trim,
                1 | 2 => Op::Read,
                _ => Op::Write,
            };
            let units = if op == Op::Trim { (PAGES - lpn).min(2) } else { 1 };
            let mut first_value = NO_CONTENT;
            match op {
                Op::Write => {
                    first_value = block.values.len() as u32;
                    block.values.push(value);
                    expected.insert(lpn, value);
                }
                Op::Trim => expected.retain(|l, _| !(lpn..lpn + units).contains(l)),
                _ => {}
            }
            block.requests.push(Request {
                time_ns: now,
                lpn,
                units,
                first_value,
                op,
                head_partial: partial && op == Op::Write,
                tail_partial: false,
            });
        }
        let host = Host {
            load: Load::Open { time_scale: 1.0 },
            link_request: 0,
            link_sector: 0,
            hash: 32,
            flush_after: 1000,
        };
        let count = block.requests.len();
        let mut driver = Driver::new(&mut system, host, Measured::default());
        driver.begin_measuring();
        driver.replay(&block, 0, count).unwrap();
        driver.drain().unwrap();
        let measured = &driver.measured;
        prop_assert_eq!(measured.response.all().count(), count as u64);
        let ftl = system.ftl();
        ftl.check().map_err(TestCaseError::fail)?;
        for lpn in 0..PAGES {
            let object = ftl.objects().get(lpn);
            let found = (object != u32::MAX).then(|| ftl.objects().content(object).0);
            prop_assert_eq!(found, expected.get(&lpn).copied(), "page {}", lpn);
        }
    }
}
