//! Which version of its page each read finds, and a test that it is none that a read must not find.
//!
//! Only built for tests. A version is known by the instant at which the host asked for it.

use std::collections::HashMap;

use flashlore_flash::{Lpn, Time};

use crate::engine::buffering::Here;
use crate::engine::requests::InFlight;

/// What a read of a unit found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FoundVersion {
    pub request: u64,
    pub lpn: Lpn,
    /// 0 for a page that was never written.
    pub version: Time,
}

/// What reads found so far.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// The versions that the map has.
    mapped: HashMap<Lpn, Time>,
    /// Those, or parts of those, that the buffer had when a read asked it last.
    buffered: HashMap<Lpn, Time>,
    pub found: Vec<FoundVersion>,
}

impl Seen {
    /// The map has another version of a page.
    pub fn changed(&mut self, lpn: Lpn, version: Time) {
        self.mapped.insert(lpn, version);
    }

    /// What a read has found in the buffer; what it lacks there it reads from flash.
    pub fn in_ram(&mut self, lpn: Lpn, here: Option<Here>) {
        match here {
            Some((version, _)) => self.buffered.insert(lpn, version),
            None => self.buffered.remove(&lpn),
        };
    }

    /// A unit is read.
    pub fn read(&mut self, flight: &InFlight, lpn: Lpn) {
        let version = |of: &HashMap<Lpn, Time>| of.get(&lpn).copied().unwrap_or(0);
        self.found.push(FoundVersion {
            request: flight.number,
            lpn,
            version: version(&self.mapped).max(version(&self.buffered)),
        });
    }
}

mod tests {
    use std::num::NonZeroU32;

    use flashlore_content::delta::{Drawn, Ratio};
    use flashlore_content::{DedupOptions, NoCensus};
    use flashlore_flash::Geometry;
    use flashlore_flash::geometry::Counts;
    use flashlore_flash::sim::{Concurrency, NandSim, Timing};
    use flashlore_ftl::buffer::Replacement;
    use flashlore_ftl::content::parts::Past;
    use flashlore_ftl::map_cache::Resident;
    use flashlore_ftl::policies::options::{EncodingOptions, HeatOptions, ViabilityOptions};
    use flashlore_ftl::{FtlOptions, Policies};
    use flashlore_trace::{NO_CONTENT, Op, Request, RequestBlock};
    use proptest::prelude::*;

    use super::*;
    use crate::config::{CacheKey, Load, ReadOrder};
    use crate::engine::buffering::BufferingOptions;
    use crate::engine::driver::{CodecTimes, Driver, HostOptions};
    use crate::engine::lengths::Lengths;
    use crate::engine::measure::Measured;
    use crate::engine::system::{Deduplicating, Plain, Simulated, System};

    const PAGES: u32 = 6;
    const EXPORTED: u32 = 64;

    /// What stands in the way of a write.
    #[derive(Debug, Clone, Copy)]
    struct Path {
        policies: Looks,
        verify: bool,
        sampling: Option<u32>,
        buffering: Option<BufferingOptions>,
        cache: Option<CacheKey>,
        units_per_page: u32,
        shared: bool,
    }

    /// The policies of a device.
    #[derive(Debug, Clone, Copy, PartialEq, Eq)]
    enum Looks {
        None,
        Dedup,
        DedupAndDelta,
    }

    /// Nothing but the hash unit.
    const HASH_UNIT: Path = Path {
        policies: Looks::Dedup,
        verify: false,
        sampling: None,
        buffering: None,
        cache: None,
        units_per_page: 1,
        shared: false,
    };

    const QUEUE: BufferingOptions = BufferingOptions::Queue {
        places: 3,
        bucket_pages: 2,
        early_ack: true,
        period: 4000,
    };

    const BUFFER: BufferingOptions = BufferingOptions::Buffer {
        places: 3,
        policy: Replacement::Fifo,
    };

    fn flash(path: Path) -> NandSim {
        let geometry = Geometry::new(Counts {
            channels: 1,
            packages_per_channel: 1,
            dies_per_package: 2,
            planes_per_die: 1,
            blocks_per_plane: 24,
            pages_per_block: 8,
            page_bytes: path.units_per_page * 4096,
        })
        .unwrap();
        let timing = Timing {
            read: 25,
            program: vec![200],
            erase: 1500,
            transfer: 40,
            shared_channel: path.shared,
            concurrency: Concurrency::Die,
            erase_suspend: false,
        };
        NandSim::new(geometry, timing)
    }

    fn host(path: Path, read_order: ReadOrder) -> HostOptions {
        HostOptions {
            load: Load::Open { time_scale: 1.0 },
            link_request: 0,
            link_sector: 0,
            hash: 32,
            sampling: path.sampling.and_then(NonZeroU32::new),
            out_of_line: false,
            flush_after: 1000,
            buffering: path.buffering,
            read_cache: path.cache.map(|key| (key, 3)),
            read_order,
            needs_content: true,
            codec: CodecTimes {
                encode: 44,
                decode: 11,
                sketch: 0,
                scan_period: 0,
            },
            record: 0,
        }
    }

    fn dedup(path: Path) -> DedupOptions {
        DedupOptions {
            index_entries: None,
            fingerprint_bits: 128,
            verify: path.verify,
            bypass: None,
            out_of_line: false,
        }
    }

    /// Every write of a page that was written before is encoded, in half a page.
    fn encoding(
        path: Path,
    ) -> Deduplicating<Simulated<NoCensus, Resident, Lengths<'static>, Past>> {
        let half = Ratio {
            mean: 0.4,
            deviation: 0.0,
        };
        let delta = EncodingOptions {
            deltas: true,
            compress: false,
            hot_writes: 0,
            hot_reads: 16,
            most_bytes: 4084,
            viability: ViabilityOptions {
                most_bytes: 4084,
                window: 1000,
                probe: 8,
            },
            heat: HeatOptions {
                entries: None,
                protected: 0,
            },
            lambda: 0,
            most_pinned: u32::MAX,
            similar: None,
        };
        let policies = Policies {
            dedup: dedup(path),
            encoding: Some(delta),
            versions: None,
            encoder: Lengths::Drawn(Drawn::new(half, half, 1)),
        };
        let options = FtlOptions::new(EXPORTED);
        Deduplicating::with_policies(flash(path), options, policies, NoCensus).unwrap()
    }

    /// What reads of a trace find.
    fn found(path: Path, order: ReadOrder, block: &RequestBlock) -> Vec<FoundVersion> {
        let host = host(path, order);
        let options = FtlOptions::new(EXPORTED);
        match path.policies {
            Looks::None => replay(&mut Plain::new(flash(path), options).unwrap(), host, block),
            Looks::Dedup => {
                let system = Deduplicating::<Simulated<NoCensus>>::new(
                    flash(path),
                    options,
                    dedup(path),
                    NoCensus,
                );
                replay(&mut system.unwrap(), host, block)
            }
            Looks::DedupAndDelta => replay(&mut encoding(path), host, block),
        }
    }

    fn replay<S: System>(
        system: &mut S,
        host: HostOptions,
        block: &RequestBlock,
    ) -> Vec<FoundVersion> {
        let count = block.requests.len();
        let mut driver = Driver::new(system, host, Measured::default());
        driver.begin_measuring();
        driver.replay(block, 0, count).unwrap();
        driver.drain().unwrap();
        assert_eq!(driver.measured.response.all().count(), count as u64);
        driver.seen.found
    }

    /// The reference model: the last version of a unit that was asked for before a request.
    fn newest_before(block: &RequestBlock, request: usize, lpn: Lpn) -> Time {
        let touches = |r: &&Request| (r.lpn..r.lpn + r.units).contains(&lpn.0);
        let changes = block.requests[..request].iter().rev();
        let mut changes = changes.filter(|r| r.op != Op::Read).filter(touches);
        changes.next().map_or(0, |change| change.time_ns)
    }

    /// Reads that found a version older than the model says.
    fn stale(block: &RequestBlock, found: &[FoundVersion]) -> Vec<FoundVersion> {
        let is_stale =
            |f: &&FoundVersion| f.version < newest_before(block, f.request as usize, f.lpn);
        found.iter().filter(is_stale).copied().collect()
    }

    #[derive(Debug, Clone, Copy)]
    struct Asked {
        gap: Time,
        lpn: u32,
        units: u32,
        value: u32,
        kind: u8,
        partial: bool,
    }

    fn block_of(drawn: &[Asked]) -> RequestBlock {
        let mut block = RequestBlock::default();
        let mut now = 0;
        for d in drawn {
            // One request an instant: it names its version.
            now += d.gap;
            let op = match d.kind {
                0 => Op::Trim,
                1..6 => Op::Read,
                _ => Op::Write,
            };
            let units = d.units.min(PAGES - d.lpn);
            let mut first_value = NO_CONTENT;
            if op == Op::Write {
                first_value = block.values.len() as u32;
                block.values.extend((0..units).map(|unit| d.value + unit));
            }
            block.requests.push(Request {
                time_ns: now,
                lpn: d.lpn,
                units,
                first_value,
                op,
                head_partial: d.partial && op == Op::Write,
                tail_partial: false,
            });
        }
        block
    }

    fn histories() -> impl Strategy<Value = RequestBlock> {
        // Some are dense, so that much is under way.
        let request = |most: Time| {
            (1..most, 0..PAGES, 1u32..4, 0u32..5, 0u8..12, any::<bool>()).prop_map(
                |(gap, lpn, units, value, kind, partial)| Asked {
                    gap,
                    lpn,
                    units,
                    value,
                    kind,
                    partial,
                },
            )
        };
        prop::sample::select(vec![4, 40, 300])
            .prop_flat_map(move |most| prop::collection::vec(request(most), 1..120))
            .prop_map(|drawn| block_of(&drawn))
    }

    fn paths() -> impl Strategy<Value = Path> {
        let buffering = prop::sample::select(vec![
            None,
            Some(BUFFER),
            Some(BufferingOptions::Buffer {
                places: 4,
                policy: Replacement::Slru { protected: 2 },
            }),
            Some(QUEUE),
            Some(BufferingOptions::Queue {
                places: 4,
                bucket_pages: 1,
                early_ack: false,
                period: 500,
            }),
        ]);
        let policies = vec![Looks::None, Looks::Dedup, Looks::DedupAndDelta];
        let caches = vec![None, Some(CacheKey::Lpn), Some(CacheKey::Value)];
        (
            prop::sample::select(policies),
            any::<bool>(),
            prop::sample::select(vec![None, Some(2)]),
            buffering,
            prop::sample::select(caches),
            prop::sample::select(vec![1, 4]),
            any::<bool>(),
        )
            .prop_map(
                |(policies, verify, sampling, buffering, cache, units_per_page, shared)| Path {
                    policies,
                    verify,
                    // Sampling looks at whole requests, which a buffer takes apart.
                    sampling: sampling.filter(|_| buffering.is_none()),
                    // Without hash unit and buffer nothing delays a write.
                    buffering: buffering.or((policies == Looks::None).then_some(BUFFER)),
                    cache,
                    units_per_page,
                    shared,
                },
            )
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 600, ..ProptestConfig::default() })]

        #[test]
        fn no_read_finds_a_version_older_than_the_last_before_it(
            path in paths(),
            fifo in any::<bool>(),
            block in histories(),
        ) {
            let order = if fifo { ReadOrder::Fifo } else { ReadOrder::SamePage };
            let found = found(path, order, &block);
            prop_assert_eq!(stale(&block, &found), vec![]);
            let reads = block.requests.iter().filter(|r| r.op == Op::Read);
            prop_assert_eq!(found.len() as u32, reads.map(|r| r.units).sum::<u32>());
            if order == ReadOrder::SamePage && path.buffering.is_none() {
                // It waits for no later one either.
                for f in found {
                    let newest = newest_before(&block, f.request as usize, f.lpn);
                    prop_assert_eq!(f.version, newest);
                }
            }
        }
    }

    /// Writes of a page and reads behind them, so close that each write is still under way.
    fn hurried() -> RequestBlock {
        let requests = |i: u32| {
            let drawn = Asked {
                gap: 1,
                lpn: i % PAGES,
                units: 1,
                value: i % 3,
                kind: 6,
                partial: false,
            };
            [drawn, Asked { kind: 1, ..drawn }]
        };
        block_of(&(0..40).flat_map(requests).collect::<Vec<_>>())
    }

    #[test]
    fn each_way_of_a_write_lets_reads_pass_unless_they_are_kept() {
        let ways = [
            HASH_UNIT,
            Path {
                verify: true,
                ..HASH_UNIT
            },
            Path {
                sampling: Some(2),
                ..HASH_UNIT
            },
            Path {
                policies: Looks::DedupAndDelta,
                ..HASH_UNIT
            },
            Path {
                policies: Looks::None,
                buffering: Some(BUFFER),
                ..HASH_UNIT
            },
            Path {
                policies: Looks::None,
                buffering: Some(QUEUE),
                ..HASH_UNIT
            },
        ];
        for way in ways {
            let stale = |order| stale(&hurried(), &found(way, order, &hurried())).len();
            assert!(stale(ReadOrder::Bypass) > 0, "{way:?}");
            assert_eq!(
                (stale(ReadOrder::SamePage), stale(ReadOrder::Fifo)),
                (0, 0),
                "{way:?}"
            );
        }
    }
}
