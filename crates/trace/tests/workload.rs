//! Workloads: layout, partial units, content, prefill, joining; memory and stream alike.

use crate::common;

use std::collections::{BTreeMap, HashMap, HashSet};

use common::*;
use flashlore_trace::{
    ContentModel, Error, Join, Op, RequestBlock, RequestSource, TraceReader, UNIT_BYTES, Workload,
    WorkloadOptions, for_each_access,
};
use proptest::prelude::*;

fn record(time_ns: u64, device: u32, op: Op, offset: u64, length: u64) -> OwnedRecord {
    OwnedRecord {
        time_ns,
        device,
        op,
        offset,
        length,
        content: None,
        delta_ratios: None,
    }
}

fn with(record: OwnedRecord, content: &[u32]) -> OwnedRecord {
    OwnedRecord {
        content: Some(content.to_vec()),
        ..record
    }
}

/// `(lpn, units, head_partial, tail_partial)` of every request.
fn shapes(source: &mut impl RequestSource) -> Vec<(u32, u32, bool, bool)> {
    replay(source)
        .into_iter()
        .map(|(r, _)| (r.lpn, r.units, r.head_partial, r.tail_partial))
        .collect()
}

#[test]
fn one_request_covers_every_unit_touched() {
    let bytes = native(&[
        record(0, 0, Op::Write, 0, 4096),
        record(1, 0, Op::Write, 512, 512),
        record(2, 0, Op::Write, 4095, 2),
        record(3, 0, Op::Read, 8192, 12289),
        record(4, 0, Op::Write, 100, 4096 * 3 - 100),
        record(5, 0, Op::Flush, 0, 0),
        record(6, 0, Op::Trim, 1, 4096 * 3),
        record(7, 0, Op::Trim, 1, 4096),
        record(8, 0, Op::Trim, 8192, 8192),
    ]);
    let wanted = [
        (0, 1, false, false),
        (0, 1, true, true),
        (0, 2, true, true),
        (2, 4, false, true),
        (0, 3, true, false),
        (0, 0, false, false),
        (1, 2, false, false),
        (2, 2, false, false),
    ];
    let mut memory = workload(&bytes, &from_trace()).unwrap();
    assert_eq!(shapes(&mut memory), wanted);
    assert_eq!(
        shapes(&mut streamed(&bytes, &from_trace()).unwrap()),
        wanted
    );
    let summary = memory.summary();
    assert_eq!(
        (summary.trims_ignored, summary.trim_units_ignored),
        (1, 2 + 2)
    );
    assert_eq!((summary.footprint_units, summary.lpn_count), (6, 6));
    assert_eq!(summary.counts.writes.requests, 4);
    assert_eq!(summary.counts.writes.pages, 1 + 1 + 2 + 3);
    assert_eq!(summary.counts.writes.bytes, 4096 + 512 + 2 + 4096 * 3 - 100);
    assert_eq!((summary.requests, summary.span_ns), (8, 8));
    assert!(!summary.has_content);
    let prefill: Vec<_> = summary.prefill_units().collect();
    assert_eq!(prefill, [(2, None), (3, None), (4, None), (5, None)]);
}

#[test]
fn what_was_trimmed_or_written_first_is_not_filled_before() {
    let bytes = native(&[
        record(0, 0, Op::Trim, 0, 4096 * 5000),
        record(1, 0, Op::Read, 4096 * 4998, 4096 * 4),
        record(2, 0, Op::Write, 4096 * 5003, 4096),
        record(3, 0, Op::Read, 4096 * 5002, 4096 * 3),
    ]);
    let workload = workload(&bytes, &from_trace()).unwrap();
    let lpns: Vec<u32> = workload
        .summary()
        .prefill_units()
        .map(|(lpn, _)| lpn)
        .collect();
    assert_eq!(lpns, [5000, 5001, 5002, 5004]);
}

#[test]
fn devices_follow_one_another_by_number() {
    let far = 1 << 40;
    let bytes = native(&[
        record(0, 9, Op::Write, 4096, 4096),
        record(1, 2, Op::Write, 4096 * 9, 4096),
        record(2, 9, Op::Read, 0, 4096),
    ]);
    let mut both = workload(&bytes, &from_trace()).unwrap();
    assert_eq!(
        shapes(&mut both).iter().map(|s| s.0).collect::<Vec<_>>(),
        [11, 9, 10]
    );
    let devices = &both.summary().devices;
    assert_eq!(
        (
            devices[0].name.as_str(),
            devices[0].first_lpn,
            devices[0].lpn_count
        ),
        ("2", 0, 10)
    );
    assert_eq!(
        (
            devices[1].number,
            devices[1].first_lpn,
            devices[1].footprint_units
        ),
        (9, 10, 2)
    );
    let options = WorkloadOptions {
        compact: true,
        ..from_trace()
    };
    let mut compact = workload(&bytes, &options).unwrap();
    assert_eq!(
        shapes(&mut compact).iter().map(|s| s.0).collect::<Vec<_>>(),
        [2, 0, 1]
    );
    assert_eq!(compact.summary().lpn_count, 3);

    let options = WorkloadOptions {
        devices: vec!["9".to_owned()],
        ..from_trace()
    };
    let mut one = workload(&bytes, &options).unwrap();
    assert_eq!(
        shapes(&mut one).iter().map(|s| s.0).collect::<Vec<_>>(),
        [1, 0]
    );
    assert_eq!(one.summary().records_left_out, 1);
    let options = WorkloadOptions {
        devices: vec!["7".to_owned()],
        ..from_trace()
    };
    let error = workload(&bytes, &options).unwrap_err().to_string();
    assert!(
        error.contains("device '7' does not occur, expected one of 9 2"),
        "{error}"
    );

    let distant = native(&[
        record(0, 0, Op::Write, far * 64, 8192),
        record(1, 0, Op::Write, far, 4096),
        record(2, 0, Op::Trim, 0, far * 2),
    ]);
    let error = workload(&distant, &from_trace()).unwrap_err();
    assert!(matches!(error, Error::Layout(_)), "{error}");
    assert!(
        error
            .to_string()
            .contains("a compact layout leaves out the holes"),
        "{error}"
    );
    let options = WorkloadOptions {
        compact: true,
        ..from_trace()
    };
    let wanted = [
        (1, 2, false, false),
        (0, 1, false, false),
        (0, 1, false, false),
    ];
    assert_eq!(shapes(&mut workload(&distant, &options).unwrap()), wanted);
    assert_eq!(shapes(&mut streamed(&distant, &options).unwrap()), wanted);
}

#[test]
fn partial_writes_give_merged_values_after_the_trace_s_own() {
    let text = std::fs::read(fixture("unaligned.fiu")).unwrap();
    let mut workload = workload(&text, &from_trace()).unwrap();
    let contents: Vec<_> = replay(&mut workload)
        .into_iter()
        .map(|(_, c)| c.unwrap())
        .collect();
    // Values a, b, c are 0, 1, 2; merged ones follow: b over a, then c over nothing, in two units.
    assert_eq!(contents, [vec![0], vec![3], vec![0], vec![4, 5], vec![3]]);
    let summary = workload.summary();
    assert_eq!((summary.value_ids, summary.content.distinct_values), (6, 4));
    // The read of the whole page returns what the partial write has replaced.
    assert_eq!(summary.content.reads_differing, 1);
}

#[test]
fn a_read_before_any_write_brings_its_content() {
    let bytes = native(&[
        with(record(0, 0, Op::Read, 4096, 8192), &[5, 6]),
        with(record(1, 0, Op::Write, 0, 8192), &[6, 5]),
        with(record(2, 0, Op::Write, 0, 4096), &[6]),
        record(3, 0, Op::Read, 4096 * 7, 4096),
        record(4, 0, Op::Write, 0, 4096),
        with(record(5, 0, Op::Write, 0, 4096), &[6]),
    ]);
    let workload = workload(&bytes, &from_trace()).unwrap();
    let summary = workload.summary();
    let prefill: Vec<_> = summary.prefill_units().collect();
    assert_eq!(prefill, [(1, Some(5)), (2, Some(6)), (7, None)]);
    // Page 1 already held 5, page 0 already held 6; a write of unknown content ends that.
    assert_eq!(summary.content.silent, 2);
    assert_eq!(
        (
            summary.content.pages_written,
            summary.content.distinct_written
        ),
        (4, 2)
    );
    assert_eq!(summary.value_ids, 7);
}

#[test]
fn distinct_content_numbers_every_written_page() {
    let bytes = native(&[
        with(record(0, 0, Op::Write, 0, 8192), &[0, 0]),
        record(1, 0, Op::Read, 0, 4096),
        record(2, 0, Op::Write, 100, 100),
    ]);
    let options = WorkloadOptions::new(ContentModel::Distinct);
    let wanted = [Some(vec![0, 1]), None, Some(vec![2])];
    let mut memory = workload(&bytes, &options).unwrap();
    for _ in 0..2 {
        let contents: Vec<_> = replay(&mut memory).into_iter().map(|(_, c)| c).collect();
        assert_eq!(contents, wanted);
    }
    let mut stream = streamed(&bytes, &options).unwrap();
    let contents: Vec<_> = replay(&mut stream).into_iter().map(|(_, c)| c).collect();
    assert_eq!(contents, wanted);
    assert_eq!(memory.summary().value_ids, 3);
    assert_eq!(memory.summary(), stream.summary());
}

#[test]
fn clones_share_requests_but_not_positions() {
    let bytes = native(&[record(0, 0, Op::Write, 0, 4096)]);
    let mut first = workload(&bytes, &from_trace()).unwrap();
    let mut second = first.clone();
    let mut block = RequestBlock::default();
    assert!(first.next_block(&mut block).unwrap());
    assert!(!first.next_block(&mut block).unwrap());
    assert!(second.next_block(&mut block).unwrap());
    fn sendable<T: Send>(_: &T) {}
    sendable(&second);
}

fn join(texts: &[&str], join: Join) -> Result<Workload, Error> {
    let options = WorkloadOptions {
        join,
        ..from_trace()
    };
    let readers = texts
        .iter()
        .map(|text| TraceReader::from_bytes("t", text.as_bytes().to_vec(), &strict()))
        .collect::<Result<Vec<_>, _>>()?;
    Workload::from_readers(readers, &options)
}

#[test]
fn traces_join_in_sequence_or_side_by_side() {
    let hm = "1000,hm,0,Write,0,4096,0\n1030,hm,0,Write,4096,4096,0\n";
    let prn = "1010,prn,0,Read,0,4096,0\n1030,prn,0,Read,4096,4096,0\n";
    let times = |mode| -> Vec<(u64, u32)> {
        let mut joined = join(&[hm, prn], mode).unwrap();
        replay(&mut joined)
            .iter()
            .map(|(r, _)| (r.time_ns, r.lpn))
            .collect()
    };
    assert_eq!(
        times(Join::Timeline),
        [(0, 0), (1000, 2), (3000, 1), (3000, 3)]
    );
    assert_eq!(
        times(Join::Sequence),
        [(0, 0), (3000, 1), (3000, 2), (5000, 3)]
    );
    let error = join(&[hm, "5 0 8 8 0\n"], Join::Sequence)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("name their devices in different ways"),
        "{error}"
    );
    let error = Workload::from_readers(vec![], &from_trace())
        .unwrap_err()
        .to_string();
    assert!(error.contains("no trace was given"), "{error}");
}

#[test]
fn joined_traces_share_their_values() {
    let line =
        |lba, digit: char| format!("1 1 p {lba} 8 W 7 0 {}\n", String::from(digit).repeat(32));
    let first = line(0, 'a') + &line(8, 'b');
    let second = line(16, 'c') + &line(24, 'a');
    let mut joined = join(&[&first, &second], Join::Sequence).unwrap();
    let values: Vec<_> = replay(&mut joined)
        .into_iter()
        .map(|(_, c)| c.unwrap()[0])
        .collect();
    assert_eq!(values, [0, 1, 2, 0]);
    assert_eq!(joined.summary().value_ids, 3);
    let bytes = native(&[with(record(0, 0, Op::Write, 0, 4096), &[0])]);
    let reader = || TraceReader::from_bytes("n", bytes.clone(), &strict()).unwrap();
    let error = Workload::from_readers(vec![reader(), reader()], &from_trace()).unwrap_err();
    assert!(
        error.to_string().contains("value ids without digests"),
        "{error}"
    );
}

/// Records over a small space, so that they overlap, with content that fits their lengths.
fn any_records(with_content: bool) -> impl Strategy<Value = Vec<OwnedRecord>> {
    let one = (
        0u64..50,
        0u32..3,
        0u32..8,
        0u64..400,
        1u64..40,
        0u32..6,
        0u32..4,
    );
    prop::collection::vec(one, 1..60).prop_map(move |raw| {
        let mut time_ns = 0;
        raw.into_iter()
            .map(|(step, device, op, sector, sectors, value, whole)| {
                time_ns += step;
                let op = match op {
                    0..=2 => Op::Read,
                    3..=5 => Op::Write,
                    6 => Op::Trim,
                    _ => Op::Flush,
                };
                if op == Op::Flush {
                    return record(time_ns, device, op, 0, 0);
                }
                let align = if whole == 0 { 1 } else { 8 };
                let (offset, length) = (
                    sector / align * align * 512,
                    sectors.next_multiple_of(align) * 512,
                );
                let record = record(time_ns, device, op, offset, length);
                if op == Op::Trim || !with_content || value == 0 {
                    return record;
                }
                let chunks = length.div_ceil(UNIT_BYTES) as u32;
                let values: Vec<u32> = (0..chunks).map(|i| (value + i) % 6).collect();
                with(record, &values)
            })
            .collect()
    })
}

/// A sector's content: the value and the sector within it.
type Sector = Option<(u32, u64)>;

proptest! {
    #[test]
    fn memory_and_stream_give_the_same(
        records in any_records(true),
        compact: bool,
        distinct: bool,
        one_device: bool,
    ) {
        let bytes = native(&records);
        let options = WorkloadOptions {
            compact,
            content: if distinct { ContentModel::Distinct } else { ContentModel::FromTrace },
            devices: if one_device { vec![records[0].device.to_string()] } else { vec![] },
            ..from_trace()
        };
        let memory = workload(&bytes, &options);
        let stream = streamed(&bytes, &options);
        match (memory, stream) {
            (Ok(mut memory), Ok(mut stream)) => {
                prop_assert_eq!(memory.summary(), stream.summary());
                let requests = replay(&mut memory);
                prop_assert_eq!(requests.len() as u64, memory.summary().requests);
                prop_assert_eq!(&requests, &replay(&mut stream));
                prop_assert_eq!(&requests, &replay(&mut stream));
                let limit = memory.summary().value_ids;
                prop_assert!(requests.iter().flat_map(|(_, c)| c.iter().flatten()).all(|&v| v < limit));
            }
            (memory, stream) => prop_assert_eq!(
                memory.unwrap_err().to_string(),
                stream.err().expect("the stream must fail too").to_string()
            ),
        }
    }

    #[test]
    fn accesses_are_the_requests_before_their_layout(records in any_records(true)) {
        let bytes = native(&records);
        let Ok(mut plain) = workload(&bytes, &from_trace()) else { return Ok(()) };
        let requests = replay(&mut plain);
        let summary = plain.summary();
        let mut next = requests.iter();
        let reader = TraceReader::from_bytes("bytes", bytes, &Default::default()).unwrap();
        let mut names = Vec::new();
        let found = for_each_access(vec![reader], &from_trace(), |access| {
            let (request, content) = next.next().expect("one access a request");
            assert_eq!((access.time_ns, access.op), (request.time_ns, request.op));
            assert_eq!(access.units, request.units);
            // Ids of merged values are final in a workload and provisional here.
            assert_eq!(access.values.is_some(), content.is_some());
            let pairs = access.values.into_iter().flatten().zip(content.iter().flatten());
            for (&value, &wanted) in pairs {
                assert!(value == wanted || value > u32::MAX / 2);
            }
            names.push((access.device, request.lpn, access.unit, access.op));
            Ok(())
        })
        .unwrap();
        prop_assert!(next.next().is_none());
        prop_assert_eq!(found.devices.len(), summary.devices.len());
        for (device, lpn, unit, op) in names {
            let placed = summary.devices.iter().find(|d| d.name == found.devices[device as usize]);
            let first = placed.expect("a device of the summary").first_lpn;
            prop_assert!(op == Op::Flush || u64::from(lpn) == first + unit);
        }
    }

    #[test]
    fn layout_footprint_and_prefill_agree_with_a_map(records in any_records(false)) {
        let bytes = native(&records);
        let Ok(mut plain) = workload(&bytes, &from_trace()) else { return Ok(()) };
        let compact = WorkloadOptions { compact: true, ..from_trace() };
        let mut compact = workload(&bytes, &compact).unwrap();
        let mut touched: BTreeMap<(u32, u64), Op> = BTreeMap::new();
        let mut trimmed = HashSet::new();
        let mut kept = Vec::new();
        for r in &records {
            let (mut from, mut to) = (r.offset / 4096, (r.offset + r.length).div_ceil(4096));
            if r.op == Op::Trim {
                (from, to) = (r.offset.div_ceil(4096), (r.offset + r.length) / 4096);
                trimmed.extend((from..to).filter(|u| !touched.contains_key(&(r.device, *u))).map(|u| (r.device, u)));
                if from >= to { continue }
            } else {
                for unit in from..to {
                    let first = if trimmed.contains(&(r.device, unit)) { Op::Trim } else { r.op };
                    touched.entry((r.device, unit)).or_insert(first);
                }
            }
            kept.push((r, from, to));
        }
        let keys: Vec<_> = touched.keys().copied().collect();
        let summary = compact.summary().clone();
        prop_assert_eq!(summary.footprint_units, keys.len() as u64);
        prop_assert_eq!(plain.summary().footprint_units, keys.len() as u64);
        let prefill: Vec<u32> = summary.prefill_units().map(|(lpn, _)| lpn).collect();
        let wanted: Vec<u32> = (0..keys.len() as u32)
            .filter(|&i| touched[&keys[i as usize]] == Op::Read)
            .collect();
        prop_assert_eq!(prefill, wanted);
        let requests = replay(&mut compact);
        prop_assert_eq!(requests.len(), kept.len());
        for ((request, _), &(r, from, to)) in requests.iter().zip(&kept) {
            if r.op == Op::Flush { continue }
            let below = |unit| keys.partition_point(|key| *key < (r.device, unit)) as u32;
            prop_assert_eq!((request.lpn, request.units), (below(from), below(to) - below(from)));
        }
        let bases: HashMap<u32, u64> =
            plain.summary().devices.iter().map(|d| (d.number, d.first_lpn)).collect();
        for ((request, _), &(r, from, to)) in replay(&mut plain).iter().zip(&kept) {
            if r.op == Op::Flush { continue }
            prop_assert_eq!(u64::from(request.lpn), bases[&r.device] + from);
            prop_assert_eq!(u64::from(request.units), to - from);
        }
    }

    /// Two units of the same value hold the same sectors, whatever was laid over what.
    #[test]
    fn equal_values_mean_equal_content(records in any_records(true)) {
        let Ok(mut workload) = workload(&native(&records), &from_trace()) else { return Ok(()) };
        let mut disk: HashMap<(u32, u64), Sector> = HashMap::new();
        let mut known: HashMap<u32, Vec<Sector>> = HashMap::new();
        let whole = |r: &&OwnedRecord| {
            r.op != Op::Trim || r.offset.div_ceil(4096) < (r.offset + r.length) / 4096
        };
        for (r, (_, content)) in records.iter().filter(whole).zip(replay(&mut workload)) {
            let sectors = r.offset / 512..(r.offset + r.length) / 512;
            if r.op == Op::Trim {
                let whole = r.offset.div_ceil(4096) * 8..(r.offset + r.length) / 4096 * 8;
                whole.for_each(|sector| { disk.remove(&(r.device, sector)); });
                continue;
            }
            let Some(values) = &r.content else {
                if r.op == Op::Write {
                    // Unknown content makes the whole unit unknown.
                    let units = sectors.start / 8 * 8..sectors.end.div_ceil(8) * 8;
                    units.for_each(|sector| { disk.remove(&(r.device, sector)); });
                }
                continue;
            };
            for unit in sectors.start / 8..sectors.end.div_ceil(8) {
                let value = content.as_ref().unwrap()[(unit - sectors.start / 8) as usize];
                let covered = sectors.start.max(unit * 8)..sectors.end.min(unit * 8 + 8);
                let was_known = (unit * 8..unit * 8 + 8).any(|s| disk.contains_key(&(r.device, s)));
                let mut held: Vec<Sector> =
                    (unit * 8..unit * 8 + 8).map(|s| disk.get(&(r.device, s)).copied().flatten()).collect();
                if r.op == Op::Write || !was_known || covered.end - covered.start == 8 {
                    for sector in covered {
                        let at = sector - sectors.start;
                        held[(sector % 8) as usize] = Some((values[(at / 8) as usize], at % 8));
                    }
                }
                if r.op == Op::Write || !was_known {
                    for (i, sector) in held.iter().enumerate() {
                        disk.insert((r.device, unit * 8 + i as u64), *sector);
                    }
                }
                let before = known.entry(value).or_insert_with(|| held.clone());
                prop_assert_eq!(&*before, &held, "value {}", value);
            }
        }
    }
}
