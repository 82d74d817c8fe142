//! Where the lengths of encoded values come from: the codecs on bytes, and R_c of the trace; exactly.
//!
//! What is expected is computed from the requests alone: a device on which every page is hot stores the
//! first value of a page whole, and every later one as its delta from that.

use crate::common;

use std::collections::HashMap;
use std::path::Path;

use common::config;
use flashlore_delta::{Codec, Encoder};
use flashlore_ftl::mapping::packs::{MOST_BYTES, SLOT_BYTES};
use flashlore_sim::engine::lengths::rated::bytes_of;
use flashlore_sim::engine::{RunError, RunOptions, check, simulate};
use flashlore_sim::results::RunResult;
use flashlore_testkit::data;
use flashlore_trace::pages::PAGE_BYTES;
use flashlore_trace::{
    ContentModel, DeltaModel, Op, PageSource, Pages, Request, RequestBlock, RequestSource, Summary,
    Workload, WorkloadOptions,
};

/// A device that nothing fills, on which every page is hot and everything that fits is encoded.
const ROOMY: [&str; 6] = [
    "device.precondition.fill=0",
    "delta.hot_writes=0",
    "delta.hot_reads=16",
    "delta.scan_period=0s",
    "codec.viability=false",
    "history.enabled=false",
];

fn run(
    system: &str,
    settings: &[&str],
    source: &mut dyn RequestSource,
    pages: Option<&dyn PageSource>,
) -> RunResult {
    let settings = [&ROOMY[..], settings].concat();
    let config = config("ca-ssd-4g", system, &settings);
    let options = RunOptions {
        pages,
        ..RunOptions::default()
    };
    simulate(&config, source, options).unwrap().result
}

/// Requests made by hand, of one page each, 1 ms apart.
struct Made {
    block: RequestBlock,
    summary: Summary,
    given: bool,
}

impl Made {
    /// Writes of a page, a value and an R_c in 1/65535, which is 0 for none.
    fn new(writes: &[(u32, u32, u16)]) -> Self {
        let mut block = RequestBlock::default();
        for (i, &(lpn, value, ratio)) in writes.iter().enumerate() {
            block.requests.push(Request {
                time_ns: i as u64 * 1_000_000,
                lpn,
                units: 1,
                first_value: i as u32,
                op: Op::Write,
                head_partial: false,
                tail_partial: false,
            });
            block.values.push(value);
            block.delta_ratios.push(ratio);
        }
        let number = writes.len() as u64;
        let mut summary = Summary::generated(number, 64, true);
        summary.counts.writes.pages = number;
        summary.content.pages_written = number;
        summary.rated_pages = writes.iter().filter(|write| write.2 > 0).count() as u64;
        summary.value_ids = writes.iter().map(|write| write.1 + 1).max().unwrap();
        Made {
            block,
            summary,
            given: false,
        }
    }
}

impl RequestSource for Made {
    fn summary(&self) -> &Summary {
        &self.summary
    }

    fn rewind(&mut self) -> flashlore_trace::Result<()> {
        self.given = false;
        Ok(())
    }

    fn next_block(&mut self, out: &mut RequestBlock) -> flashlore_trace::Result<bool> {
        out.clear();
        if !self.given {
            out.clone_from(&self.block);
        }
        Ok(!std::mem::replace(&mut self.given, true))
    }
}

/// So many bytes the run encoded as deltas, and in how many writes.
fn deltas(result: &RunResult) -> (u64, u64) {
    let mean = result.delta.mean_rc.unwrap_or(0.0) * PAGE_BYTES as f64;
    let encoded = result.delta.encoded;
    ((mean * encoded as f64).round() as u64, encoded)
}

/// Pages like each other but for some bytes, each pair in a different number of them.
struct Alike;

impl PageSource for Alike {
    fn fill(&self, value: u32, into: &mut [u8; PAGE_BYTES]) -> bool {
        into.fill(b'.');
        let mut state = u64::from(value) + 1;
        for _ in 0..value * 40 {
            state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
            into[(state >> 40) as usize % PAGE_BYTES] = (state >> 56) as u8;
        }
        value < 100
    }
}

/// Bytes that deltas and, without them, values by themselves take, and how many there are.
struct Expected {
    deltas: (u64, u64),
    alone: (u64, u64),
}

/// By the codec itself, in the order of the requests. `fill` gives the bytes of values.
fn expected(source: &mut dyn RequestSource, pages: &dyn PageSource, codec: Codec) -> Expected {
    let mut encoder = Encoder::new();
    let page = |value| {
        let mut page = [0; PAGE_BYTES];
        assert!(pages.fill(value, &mut page));
        page
    };
    let mut bases: HashMap<u32, u32> = HashMap::new();
    for (lpn, value) in source.summary().prefill_units() {
        bases.insert(lpn, value.unwrap());
    }
    let (mut deltas, mut alone) = ((0, 0), (0, 0));
    let fits = |length: usize| length as u32 + SLOT_BYTES < PAGE_BYTES as u32;
    let mut block = RequestBlock::default();
    source.rewind().unwrap();
    while source.next_block(&mut block).unwrap() {
        for request in block.requests.iter().filter(|r| r.op == Op::Write) {
            for (lpn, &value) in (request.lpn..).zip(block.content(request).unwrap()) {
                let new = page(value);
                let encoded = encoder.alone(codec, &new, MOST_BYTES as usize);
                if let Some(bytes) = encoded.filter(|bytes| fits(bytes.len())) {
                    alone = (alone.0 + bytes.len() as u64, alone.1 + 1);
                }
                let encoded = bases
                    .get(&lpn)
                    .and_then(|&base| encoder.delta(codec, &page(base), &new, MOST_BYTES as usize));
                match encoded.filter(|bytes| fits(bytes.len())) {
                    Some(bytes) => {
                        deltas = (deltas.0 + bytes.len() as u64, deltas.1 + 1);
                    }
                    None => drop(bases.insert(lpn, value)),
                }
            }
        }
    }
    Expected { deltas, alone }
}

/// Compares runs of deltas and of compression with what the codec gives.
fn encodes_as_the_codec_does(source: &mut dyn RequestSource, pages: &dyn PageSource) {
    for (codec, name) in [(Codec::Copy, "copy"), (Codec::Lz4, "lz4")] {
        let expected = expected(source, pages, codec);
        assert!(expected.deltas.1 > 20 && expected.alone.1 > 20);
        let algorithm = format!("codec.algorithm={name}");
        let settings = ["codec.ratio=codec", &algorithm];
        let result = run("delta-ftl", &settings, source, Some(pages));
        assert_eq!(deltas(&result), expected.deltas, "{name}");
        let result = run("compress", &settings, source, Some(pages)).compress;
        let bytes = result.mean_ratio.unwrap() * PAGE_BYTES as f64 * result.encoded as f64;
        assert_eq!((bytes.round() as u64, result.encoded), expected.alone);
    }
}

#[test]
fn lengths_are_those_that_the_codec_gives() {
    let writes: Vec<_> = (0..400u32).map(|i| (i * 7 % 20, i * i % 97, 0)).collect();
    encodes_as_the_codec_does(&mut Made::new(&writes), &Alike);
}

#[test]
fn lengths_of_a_capture_are_those_that_the_codec_gives() {
    let file = |ending: &str| data(&format!("captures/sqlite-bytes.{ending}"));
    let Some((trace, pages)) = file("fiu.xz").zip(file("pages.zst")) else {
        return;
    };
    let mut options = WorkloadOptions::new(ContentModel::FromTrace);
    options.compact = true;
    let mut workload = Workload::open(&[trace], &options).unwrap();
    let pages = Pages::open(pages, u64::MAX).unwrap();
    encodes_as_the_codec_does(&mut workload, &pages);
}

/// Rounds over 8 pages with values that repeat, each write with an R_c of its own.
fn rated(rounds: u32) -> Vec<(u32, u32, u16)> {
    (0..rounds * 8)
        .map(|i| (i % 8, i % 5, 1000 + 37 * i as u16))
        .collect()
}

#[test]
fn every_delta_has_the_length_that_its_write_has_in_the_trace() {
    let writes = rated(6);
    let result = run(
        "delta-ftl",
        &["codec.ratio=trace"],
        &mut Made::new(&writes),
        None,
    );
    let bytes = writes[8..].iter().map(|w| u64::from(bytes_of(w.2))).sum();
    assert_eq!(deltas(&result), (bytes, 40));
}

#[test]
fn a_buffer_hands_on_the_ratio_of_the_newest_version() {
    // Each write is followed by another of the same page, which replaces it in the buffer.
    let twice: Vec<_> = rated(6)
        .into_iter()
        .flat_map(|(lpn, value, ratio)| [(lpn, value + 5, 9), (lpn, value, ratio)])
        .collect();
    let settings = [
        "codec.ratio=trace",
        "device.buffer.policy=fifo",
        "device.buffer.size=16KiB",
    ];
    let result = run("delta-ftl", &settings, &mut Made::new(&twice), None);
    assert_eq!(result.buffer.evictions, 44);
    let evicted = &rated(6)[8..44];
    let bytes = evicted.iter().map(|w| u64::from(bytes_of(w.2))).sum();
    assert_eq!(deltas(&result), (bytes, 36));
}

#[test]
fn ratios_drawn_for_a_trace_are_those_that_a_run_has() {
    let trace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../flashlore/data/sqlite-bytes.fiu.xz");
    let mut options = WorkloadOptions::new(ContentModel::FromTrace);
    options.compact = true;
    options.delta = Some(DeltaModel::Gaussian {
        mean: 0.35,
        std: 0.1,
        seed: 3,
    });
    let mut workload = Workload::open(&[trace], &options).unwrap();
    let result = run("delta-ftl", &["codec.ratio=trace"], &mut workload, None);
    let mut held: HashMap<u32, ()> = workload
        .summary()
        .prefill_units()
        .map(|(lpn, _)| (lpn, ()))
        .collect();
    let (mut bytes, mut encoded) = (0, 0);
    let mut block = RequestBlock::default();
    workload.rewind().unwrap();
    while workload.next_block(&mut block).unwrap() {
        for request in &block.requests {
            let ratios = block.delta_ratios(request).unwrap_or_default();
            for (lpn, &ratio) in (request.lpn..).zip(ratios) {
                let length = bytes_of(ratio);
                let fits = u32::from(length) <= MOST_BYTES;
                if held.insert(lpn, ()).is_some() && fits {
                    (bytes, encoded) = (bytes + u64::from(length), encoded + 1);
                }
            }
        }
    }
    assert_eq!(deltas(&result), (bytes, encoded));
}

#[test]
fn what_has_no_length_is_refused_before_the_run_begins() {
    let refused = |settings: &[&str], summary: &Summary, pages: Option<&dyn PageSource>| {
        let config = config("ca-ssd-4g", "delta-ftl", settings);
        check(&config, summary, pages).map_err(|error: RunError| error.to_string())
    };
    let with = Made::new(&rated(2)).summary;
    let mut without = Made::new(&[(0, 1, 500), (0, 2, 0)]).summary;
    assert_eq!(refused(&["codec.ratio=trace"], &with, None), Ok(()));
    let error = refused(&["codec.ratio=trace"], &without, None).unwrap_err();
    assert!(
        error.contains("1 of 2 page writes have no R_c") && error.contains("--delta gaussian:"),
        "{error}"
    );
    let codec = ["codec.ratio=codec"];
    assert_eq!(refused(&codec, &with, Some(&Alike)), Ok(()));
    let error = refused(&codec, &with, None).unwrap_err();
    assert!(
        error.contains("those of the trace are not known"),
        "{error}"
    );
    without.value_ids = 101;
    let error = refused(&codec, &without, Some(&Alike)).unwrap_err();
    assert!(
        error.contains("those of value 100 are not known"),
        "{error}"
    );
    without.content.pages_written = 1;
    let error = refused(&codec, &without, Some(&Alike)).unwrap_err();
    assert!(
        error.contains("no content for 1 of 2 page writes"),
        "{error}"
    );
    // A system that encodes nothing asks for nothing.
    let plain = config("ca-ssd-4g", "plain", &codec);
    assert!(check(&plain, &without, None).is_ok());
}

/// Two families of pages: of noise that differs in 200 bytes within a family.
struct Families;

impl PageSource for Families {
    fn fill(&self, value: u32, into: &mut [u8; PAGE_BYTES]) -> bool {
        let noise = |state: &mut u64| {
            *state = state.wrapping_mul(0x5851_F42D_4C95_7F2D).wrapping_add(1);
            (*state >> 56) as u8
        };
        let mut family = 1 + u64::from(value % 2);
        into.fill_with(|| noise(&mut family));
        let mut own = 100 + u64::from(value);
        into[1000..1200].fill_with(|| noise(&mut own));
        value < 100
    }
}

#[test]
fn first_writes_become_deltas_from_pages_that_resemble_them() {
    let settings = [
        "codec.ratio=codec",
        "delta.base=similar",
        "codec.mhz=1",
        "codec.encode_cycles=0",
        "codec.decode_cycles=0",
    ];
    let run_with = |cycles: u64| {
        let cycles = format!("codec.sketch_cycles={cycles}");
        let settings = [&settings[..], &[cycles.as_str()]].concat();
        // The third page is of another family, the fourth resembles it, and the last is an update.
        let writes = [(0, 0, 0), (1, 2, 0), (2, 1, 0), (3, 3, 0), (0, 4, 0)];
        run(
            "delta-ftl",
            &settings,
            &mut Made::new(&writes),
            Some(&Families),
        )
    };
    let result = run_with(0);
    let mut encoder = Encoder::new();
    let mut length = |base, new| {
        let (mut old, mut page) = ([0; PAGE_BYTES], [0; PAGE_BYTES]);
        assert!(Families.fill(base, &mut old) && Families.fill(new, &mut page));
        let encoded = encoder.delta(Codec::Copy, &old, &page, PAGE_BYTES);
        encoded.map_or(PAGE_BYTES, <[u8]>::len) as u64
    };
    let similar = length(0, 2) + length(1, 3);
    assert_eq!(deltas(&result), (similar + length(0, 4), 3));
    let counted = &result.delta.similar;
    assert_eq!((counted.asked, counted.found, counted.taken), (4, 2, 2));
    let mean = similar as f64 / 2.0 / PAGE_BYTES as f64;
    assert_eq!(counted.mean_rc, Some(mean));
    // Four of five writes are sketched, 1 us a cycle; the update has a base of its own.
    let mean = |result: &RunResult| result.response_us.write.mean.unwrap();
    let longer = mean(&run_with(500)) - mean(&result);
    assert!((longer - 400.0).abs() < 1.0, "{longer}");
}

#[test]
fn similarity_needs_bytes() {
    use flashlore_sim::config::{Settings, load_system};
    for (ratio, works) in [("drawn", false), ("trace", false), ("codec", true)] {
        let ratio = format!("codec.ratio={ratio}");
        let settings = Settings::parse(&["delta.base=similar", &ratio]).unwrap();
        let loaded = load_system("combined", &settings);
        assert_eq!(loaded.is_ok(), works, "{ratio}");
        if let Err(error) = loaded {
            let text = error.to_string();
            assert!(
                text.contains("delta.base") && text.contains("codec.ratio"),
                "{text}"
            );
        }
        // Where nothing is stored as deltas the key says nothing.
        assert!(load_system("compress", &settings).is_ok());
    }
}
