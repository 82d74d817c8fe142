//! Encoded writes and reads in time: base reads, the codec and the host's answers, by hand.

use flashlore_content::delta::{Drawn, Ratio};
use flashlore_content::{DedupOptions, NoCensus, PageTag};
use flashlore_flash::geometry::Counts;
use flashlore_flash::sim::{Concurrency, NandSim, Timing};
use flashlore_flash::{Geometry, Lpn, Tag, When};
use flashlore_ftl::content::parts::Past;
use flashlore_ftl::map_cache::Resident;
use flashlore_ftl::policies::options::{EncodingOptions, HeatOptions, ViabilityOptions};
use flashlore_ftl::{FtlOptions, Policies, Unhashed};
use flashlore_sim::config::{Load, ReadOrder};
use flashlore_sim::engine::driver::{CodecTimes, Driver, HostOptions};
use flashlore_sim::engine::system::{Deduplicating, Simulated, System};
use flashlore_sim::engine::{MeasureOptions, Measured};
use flashlore_sim::results::ResponseByKind;
use flashlore_trace::{Op, Request, RequestBlock};

type Device = Deduplicating<Simulated<NoCensus, Resident, Drawn, Past>>;

/// DeltaFTL's times: 25 us to sense, 40 us to transfer, LZF at 619 MHz.
const READ: u64 = 25_000;
const TRANSFER: u64 = 40_000;
const ENCODE: u64 = 44_000;
const DECODE: u64 = 10_900;

/// Eight dies with a channel each; pages 0 to 7 are written, one on each. Every update is a delta of
/// half a page.
fn device() -> Device {
    device_with(0)
}

/// The same, and so many writes make a page hot.
fn device_with(hot_writes: u8) -> Device {
    let geometry = Geometry::new(Counts {
        channels: 8,
        packages_per_channel: 1,
        dies_per_package: 1,
        planes_per_die: 1,
        blocks_per_plane: 16,
        pages_per_block: 16,
        page_bytes: 4096,
    })
    .unwrap();
    let timing = Timing {
        read: READ,
        program: vec![200_000],
        erase: 1_500_000,
        transfer: TRANSFER,
        shared_channel: false,
        concurrency: Concurrency::Die,
        erase_suspend: false,
    };
    let half = Ratio {
        mean: 0.4,
        deviation: 0.0,
    };
    let policies = Policies {
        dedup: DedupOptions {
            index_entries: Some(0),
            fingerprint_bits: 128,
            verify: false,
            bypass: None,
            out_of_line: false,
        },
        encoding: Some(EncodingOptions {
            deltas: true,
            compress: false,
            hot_writes,
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
        }),
        versions: None,
        encoder: Drawn::new(half, half, 1),
    };
    let flash = NandSim::new(geometry, timing);
    let options = FtlOptions::new(512);
    let mut device = Device::with_policies(flash, options, policies, NoCensus).unwrap();
    for lpn in 0..8 {
        let (now, off) = (When::now(0), Some(Unhashed::Off));
        device
            .write(now, Lpn(lpn), PageTag(100 + lpn), off, false, Tag::NONE)
            .unwrap();
    }
    device.restart_counters();
    device.core_mut().finished().clear();
    device.core_mut().flash_mut().restart();
    device
}

/// Mean response of the reads and of the writes of a replay, in nanoseconds.
fn means(device: &mut Device, requests: Vec<Request>) -> (f64, f64) {
    means_with_scans(device, requests, 0)
}

/// The same with a scan for cold pages in each period.
fn means_with_scans(device: &mut Device, requests: Vec<Request>, scan_period: u64) -> (f64, f64) {
    let host = HostOptions {
        load: Load::Open { time_scale: 1.0 },
        link_request: 0,
        link_sector: 0,
        hash: 0,
        sampling: None,
        out_of_line: false,
        flush_after: 1_000_000,
        buffering: None,
        read_cache: None,
        read_order: ReadOrder::SamePage,
        needs_content: false,
        codec: CodecTimes {
            encode: ENCODE,
            decode: DECODE,
            sketch: 0,
            scan_period,
        },
        record: 0,
    };
    let measured = Measured::new(MeasureOptions::default());
    let mut driver = Driver::new(device, host, measured);
    driver.begin_measuring();
    let count = requests.len();
    let block = RequestBlock {
        requests,
        ..RequestBlock::default()
    };
    driver.replay(&block, 0, count).unwrap();
    driver.drain().unwrap();
    let response = ResponseByKind::of(&driver.measured.response);
    let nanos = |mean: Option<f64>| 1000.0 * mean.unwrap_or(0.0);
    (nanos(response.read.mean), nanos(response.write.mean))
}

fn request(time_ns: u64, op: Op, lpn: u32) -> Request {
    Request {
        time_ns,
        lpn,
        units: 1,
        first_value: flashlore_trace::NO_CONTENT,
        op,
        head_partial: false,
        tail_partial: false,
    }
}

fn near(found: f64, expected: f64) {
    assert!(
        (found / expected - 1.0).abs() < 0.002,
        "{found}, expected {expected}"
    );
}

#[test]
fn four_updates_pass_chip_bus_and_codec_as_a_pipeline() {
    // D14: the first takes 25 + 40 + 44 us, each of the others 44 us more. Two fill a packed page, so the
    // third waits for its program, 40 + 200 us.
    let updates = (0..4).map(|lpn| request(0, Op::Write, lpn)).collect();
    let mut device = device();
    let (_, write) = means(&mut device, updates);
    let ends = [109.0, 153.0, 197.0 + 240.0, 241.0];
    near(write, ends.iter().sum::<f64>() / 4.0 * 1000.0);
    let totals = device.delta().unwrap();
    assert_eq!(totals.counters.deltas, 4);
    assert_eq!(device.core().counters().programs_log, 1);
    assert_eq!(device.core().counters().page_reads_delta, 4);
}

#[test]
fn an_encoded_page_is_read_from_its_places_and_decoded() {
    let mut device = device();
    let mut requests: Vec<Request> = (0..4).map(|lpn| request(0, Op::Write, lpn)).collect();
    let later = 10_000_000;
    // Pages 0 and 1 are packed on the first die, 2 and 3 still in RAM, 4 is whole.
    for (i, lpn) in [0, 1, 2, 4].into_iter().enumerate() {
        requests.push(request(later * (i as u64 + 1), Op::Read, lpn));
    }
    let (read, _) = means(&mut device, requests);
    let flash = (READ + TRANSFER) as f64;
    let decode = DECODE as f64;
    // The base of page 0 lies on the die of the packed page: one read after the other.
    let ends = [2.0 * flash + decode, flash + decode, flash + decode, flash];
    near(read, ends.iter().sum::<f64>() / 4.0);
    let totals = device.delta().unwrap();
    assert_eq!(
        (totals.counters.reads, totals.counters.double_reads),
        (3, 2)
    );
}

/// A year of scans in which nothing happens takes no time, and what they find is the same.
#[test]
fn scans_of_an_idle_year_are_passed_over() {
    const YEAR: u64 = 365 * 24 * 3_600_000_000_000;
    for (period, encoded) in [(1, 0), (1000, 0), (60_000_000_000, 1)] {
        let mut device = device_with(2);
        let requests = vec![
            request(0, Op::Write, 0),
            request(10_000_000, Op::Write, 0),
            request(YEAR, Op::Write, 1),
            request(2 * YEAR, Op::Read, 0),
        ];
        means_with_scans(&mut device, requests, period);
        // The second write came while the page was hot; the scan after the next found it cold.
        let counters = device.delta().unwrap().counters;
        let found = (counters.deltas, counters.merges_write_cold);
        assert_eq!(found, (encoded, encoded), "{period}");
    }
}
