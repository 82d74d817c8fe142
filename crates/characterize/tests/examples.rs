//! Small traces whose statistics are computed by hand, one for each definition.

use flashlore_characterize::measures::buckets::Bucket;
use flashlore_characterize::{Characteristics, Characterizer, Options};
use flashlore_trace::{Access, Op};

const A: u32 = 0;
const B: u32 = 1;
const C: u32 = 2;
const MS: u64 = 1_000_000;

/// A request of whole units.
struct Step {
    time_ns: u64,
    op: Op,
    device: u32,
    unit: u64,
    units: u32,
    values: Option<Vec<u32>>,
}

fn step(op: Op, unit: u64, units: u32) -> Step {
    Step {
        time_ns: 0,
        op,
        device: 0,
        unit,
        units,
        values: None,
    }
}

/// A write of one page.
fn write(unit: u64, value: u32) -> Step {
    Step {
        values: Some(vec![value]),
        ..step(Op::Write, unit, 1)
    }
}

/// A read of one page.
fn read(unit: u64, value: u32) -> Step {
    Step {
        values: Some(vec![value]),
        ..step(Op::Read, unit, 1)
    }
}

fn trim(unit: u64) -> Step {
    step(Op::Trim, unit, 1)
}

impl Step {
    fn at(self, time_ns: u64) -> Self {
        Self { time_ns, ..self }
    }

    fn on(self, device: u32) -> Self {
        Self { device, ..self }
    }
}

fn characterize(options: Options, steps: &[Step]) -> Characteristics {
    let mut characterizer = Characterizer::new(options).unwrap();
    for step in steps {
        let access = Access {
            time_ns: step.time_ns,
            op: step.op,
            device: step.device,
            offset: step.unit * 4096,
            length: u64::from(step.units) * 4096,
            unit: step.unit,
            units: step.units,
            values: step.values.as_deref(),
            delta_ratios: None,
        };
        characterizer.observe(&access).unwrap();
    }
    characterizer.finish()
}

fn whole(steps: &[Step]) -> flashlore_characterize::Statistics {
    characterize(Options::default(), steps).whole
}

#[test]
fn mix_and_sizes() {
    let flush = step(Op::Flush, 0, 0);
    let found = whole(&[
        step(Op::Write, 0, 2),
        step(Op::Write, 9, 1),
        step(Op::Write, 5, 3),
        step(Op::Read, 0, 4),
        step(Op::Trim, 0, 8),
        flush,
    ]);
    // Three writes of four requests, 6 of 10 pages; the trim is in neither.
    assert_eq!(found.mix.write_share_requests, Some(0.75));
    assert_eq!(found.mix.write_share_pages, Some(0.6));
    assert_eq!(found.mix.trims.pages, 8);
    assert_eq!(found.mix.flushes.requests, 1);
    // 4096, 8192, 12288: half of three is 1.5, so the second.
    let writes = found.sizes.writes.unwrap();
    assert_eq!(
        (writes.mean, writes.p50, writes.p90, writes.max),
        (8192.0, 8192, 12288, 12288)
    );
    let one = |size| Bucket {
        low: size,
        high: size,
        count: 1,
    };
    assert_eq!(writes.histogram, [one(4096), one(8192), one(12288)]);
}

#[test]
fn sequential_runs_and_footprint() {
    let found = whole(&[
        step(Op::Write, 0, 2),
        step(Op::Read, 2, 1),
        step(Op::Write, 3, 1).on(1),
        step(Op::Write, 3, 1),
        step(Op::Read, 3, 1),
    ]);
    // Device 0: 0-1, 2, 3 is one run, whatever the operation; then 3 again. Device 1 is its own.
    assert_eq!((found.sequential.reads, found.sequential.writes), (1, 1));
    assert_eq!(found.sequential.share, Some(0.4));
    assert_eq!(found.sequential.runs, 3);
    assert_eq!(found.sequential.mean_run_bytes, Some(6.0 * 4096.0 / 3.0));
    let footprint = found.footprint;
    assert_eq!((footprint.pages, footprint.only_read), (5, 1));
    assert_eq!(
        (footprint.only_written, footprint.both, footprint.read_first),
        (3, 1, 1)
    );
}

#[test]
fn gaps_windows_and_bursts() {
    let times = [0, 10, 10, 150, 1200, 2000].map(|ms| step(Op::Flush, 0, 0).at(ms * MS));
    let found = whole(&times).arrivals;
    // Gaps 10, 0, 140, 1050, 800 ms.
    let gaps = found.gaps.unwrap();
    assert_eq!(
        (gaps.mean_ns, gaps.p50_ns, gaps.max_ns),
        (400e6, 140 * MS, 1050 * MS)
    );
    // 0 10 10 | 150 | 1200 | 2000.
    assert_eq!(
        (found.bursts.count, found.bursts.mean_requests),
        (4, Some(1.5))
    );
    assert_eq!(
        found.bursts.mean_gap_ns,
        Some((140.0 + 1050.0 + 800.0) / 3.0 * 1e6)
    );
    // Seconds: 4 and 1 requests, the third is not complete. Mean 2.5, variance 2.25.
    let second = found
        .dispersion
        .iter()
        .find(|d| d.window_ns == 1000 * MS)
        .unwrap();
    assert_eq!((second.windows, second.mean, second.index), (2, 2.5, 0.9));
    assert_eq!(found.peak_second, 4);
}

#[test]
fn stack_distances_of_values_and_pages() {
    // Values A B A C A, pages 0 1 2 0 1; the read between belongs to another class.
    let found = whole(&[
        write(0, A),
        write(1, B),
        read(7, C),
        write(2, A),
        write(0, C),
        write(1, A),
    ]);
    let values = &found.value_locality.writes;
    // A after B: 2; A after C: 2.
    assert_eq!(
        (
            values.accesses,
            values.first,
            values.within(1),
            values.within(2)
        ),
        (5, 3, 0, 2)
    );
    assert_eq!((values.p50, values.all_p50), (Some(2), None));
    // 0 after 1 and 2, 1 after 2 and 0.
    let pages = &found.page_locality.writes;
    assert_eq!((pages.first, pages.within(2), pages.within(3)), (3, 0, 2));
    assert_eq!(found.value_locality.reads.first, 1);
}

#[test]
fn kinds_of_writes() {
    let found = whole(&[
        write(0, A), // new
        write(1, A), // elsewhere
        write(0, A), // silent; the last write of A went to page 1
        write(0, B), // new
        write(1, B), // elsewhere: page 0 holds it; A dies
        write(1, A), // reborn
        read(5, C),  // page 5 was never written
        write(5, C), // silent, though C was never written
        trim(0),
        trim(1),
        write(1, A), // reborn; the last write of A went to page 1
        write(2, 9), // new
        read(6, 8),
        write(7, 8), // new, seen in a read
    ])
    .kinds;
    assert_eq!(
        (
            found.writes,
            found.silent,
            found.new,
            found.new_seen_in_read
        ),
        (10, 2, 4, 1)
    );
    assert_eq!((found.elsewhere, found.reborn), (2, 2));
    // A: to 1, 0, 1 from another page each time, then to 1 again; B: from page 0 to 1.
    assert_eq!(
        (found.duplicate_same_address, found.duplicate_other_address),
        (1, 4)
    );
}

#[test]
fn index_misses() {
    let found = whole(&[
        write(0, A),
        write(1, B),
        write(0, C),
        write(2, B),
        write(3, A),
    ]);
    // Plain: B at distance 2, A at 3 (after C and B). Live: A died when page 0 took C.
    let at = |entries: u64| {
        let point = found
            .index
            .curve
            .iter()
            .find(|point| point.entries == entries)
            .unwrap();
        (point.plain_misses, point.live_misses)
    };
    assert_eq!(
        found.index.curve.len(),
        2,
        "three values: indexes of 1 and 2 entries"
    );
    assert_eq!((at(1), at(2)), ((5, 5), (4, 4)));
    // Two of A, B, C make half of five: B and A, of two writes each. In 2 entries A misses again.
    let options = Options {
        index_sizes: vec![2],
        ..Options::default()
    };
    let steps = [
        write(0, A),
        write(1, B),
        write(0, C),
        write(2, B),
        write(3, A),
    ];
    let popular = &characterize(options, &steps).whole.index.popular[0];
    assert_eq!((popular.writes, popular.first, popular.again), (4, 2, 1));
    assert_eq!(popular.miss_share, Some(0.75));
    assert_eq!(popular.miss_share_without_first, Some(0.5));
}

#[test]
fn a_dead_value_leaves_the_index_and_its_place_to_another() {
    let in_two = |steps: &[Step]| {
        let found = whole(steps);
        let two = found.index.curve.iter().find(|p| p.entries == 2).unwrap();
        (two.plain_misses, two.live_misses)
    };
    // B replaces A on the only page that held it: two entries have room for both, but A is gone.
    assert_eq!(in_two(&[write(0, A), write(0, B), write(1, A)]), (2, 3));
    // B dies, so C takes its place and A stays, which three values would have pushed out.
    let steps = [write(0, A), write(1, B), trim(1), write(2, C), write(3, A)];
    assert_eq!(in_two(&steps), (4, 3));
}

#[test]
fn overwrites_count_page_writes() {
    let found = whole(&[
        write(0, A).at(0),
        step(Op::Write, 1, 2).at(MS),
        write(0, A).at(5 * MS), // three page writes later
        trim(1).at(6 * MS),
        write(1, A).at(7 * MS), // trimmed since
        write(1, A).at(9 * MS), // the very next
    ])
    .overwrites;
    assert_eq!((found.page_writes, found.overwrites), (6, 2));
    let distance = found.distance.unwrap();
    assert_eq!((distance.p50, distance.p90), (1, 3));
    assert_eq!(found.time_ns.unwrap().p99, 5 * MS);
}

#[test]
fn writing_rate_and_windows() {
    let options = Options {
        capacities: vec![8192, 1 << 20],
        ..Options::default()
    };
    let second = 1000 * MS;
    let steps = [
        step(Op::Write, 0, 1).at(0),
        step(Op::Write, 0, 1).at(3 * second),
        step(Op::Write, 0, 1).at(4 * second),
        step(Op::Read, 0, 1).at(6 * second),
    ];
    let rate = characterize(options, &steps).whole.rate;
    // Three pages in six seconds.
    assert_eq!(rate.bytes_per_hour, Some(4096.0 * 3.0 * 600.0));
    assert_eq!(rate.windows[0].mean_ns, Some(4e9));
    assert_eq!(rate.windows[0].shortest_ns, Some(second));
    assert_eq!(rate.windows[1].shortest_ns, None);
}

#[test]
fn a_slice_knows_nothing_of_the_one_before() {
    let options = Options {
        slice_ns: Some(10 * MS),
        ..Options::default()
    };
    let steps = [
        write(0, A).at(0),
        write(0, A).at(9 * MS),
        write(0, A).at(35 * MS),
    ];
    let found = characterize(options, &steps);
    assert_eq!(found.whole.kinds.silent, 2);
    let slices: Vec<_> = found
        .slices
        .iter()
        .map(|s| {
            (
                s.number,
                s.start_ns,
                s.statistics.kinds.new,
                s.statistics.kinds.silent,
            )
        })
        .collect();
    assert_eq!(slices, [(0, 0, 1, 1), (3, 30 * MS, 1, 0)]);
}

#[test]
fn trims_of_whole_devices_cost_nothing() {
    let everything = || Step {
        units: u32::MAX - 1,
        ..trim(0)
    };
    let found = whole(&[
        everything(),
        read(3, A),
        write(3, A), // trimmed before the read, so its content is not known
        everything(),
        write(3, A),
    ]);
    assert_eq!(
        (found.kinds.silent, found.kinds.new, found.kinds.reborn),
        (0, 1, 1)
    );
}

#[test]
fn meaningless_options_are_refused() {
    let refused = |change: fn(&mut Options)| {
        let mut options = Options::default();
        change(&mut options);
        Characterizer::new(options).err().unwrap().to_string()
    };
    let message = refused(|options| options.sample_rate = 0.0);
    assert_eq!(
        message,
        "the sample is 0, expected a share above 0 and at most 1"
    );
    assert!(refused(|options| options.sample_rate = f64::NAN).contains("NaN"));
    assert!(refused(|options| options.slice_ns = Some(0)).contains("a duration above 0"));
    assert!(refused(|options| options.index_sizes = vec![1, 0]).contains("at least one entry"));
    assert!(refused(|options| options.capacities = vec![0]).contains("a size above 0"));
}
