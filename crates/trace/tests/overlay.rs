//! Content and delta ratios laid over a trace: in memory, streamed and as accesses they are the
//! same, and they depend on the order of the trace alone.

use crate::common;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use common::*;
use flashlore_trace::{
    ContentModel, DeltaModel, NamedOverlay, Op, Overlay, RequestBlock, RequestSource, TraceReader,
    WorkloadOptions, for_each_access,
};
use proptest::prelude::*;

/// Values and ratios of each request.
type Drawn = Vec<(Option<Vec<u32>>, Option<Vec<u16>>)>;

fn drawn(source: &mut impl RequestSource) -> Drawn {
    source.rewind().unwrap();
    let mut block = RequestBlock::default();
    let mut all = Vec::new();
    while source.next_block(&mut block).unwrap() {
        for request in &block.requests {
            all.push((
                block.content(request).map(<[u32]>::to_vec),
                block.delta_ratios(request).map(<[u16]>::to_vec),
            ));
        }
    }
    all
}

fn options(content: &str, delta: Option<&str>) -> WorkloadOptions {
    WorkloadOptions {
        delta: delta.map(|text| text.parse().unwrap()),
        ..WorkloadOptions::new(content.parse().unwrap())
    }
}

/// Writes and reads of any alignment, trims and flushes, some with content.
fn any_records() -> impl Strategy<Value = Vec<OwnedRecord>> {
    let one = (0u32..3, 0u8..6, 0u64..2000, 1u64..40, prop::bool::ANY);
    prop::collection::vec(one, 1..60).prop_map(|raw| {
        raw.into_iter()
            .enumerate()
            .map(|(number, (device, op, sector, sectors, content))| {
                let op = [
                    Op::Write,
                    Op::Write,
                    Op::Write,
                    Op::Read,
                    Op::Trim,
                    Op::Flush,
                ][op as usize];
                let length = sectors * 512;
                let content = (content && matches!(op, Op::Write | Op::Read))
                    .then(|| (0..length.div_ceil(4096) as u32).collect());
                match op {
                    Op::Flush => record(number as u64, device, op, 0, 0),
                    _ => OwnedRecord {
                        content,
                        ..record(number as u64, device, op, sector * 512, length)
                    },
                }
            })
            .collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_source_draws_the_same(
        records in any_records(),
        content in prop::sample::select(vec!["distinct", "zipf:a=0.9,n=50,seed=3", "uniform:n=9"]),
        with_delta: bool,
        compact: bool,
    ) {
        let bytes = native(&records);
        let delta = with_delta.then_some("gaussian:mean=0.35,std=0.1,seed=2");
        let options = WorkloadOptions { compact, ..options(content, delta) };
        let Ok(mut memory) = workload(&bytes, &options) else { return Ok(()) };
        let mut stream = streamed(&bytes, &options).unwrap();
        prop_assert_eq!(memory.summary(), stream.summary());
        let wanted = drawn(&mut memory);
        prop_assert_eq!(&wanted, &drawn(&mut memory));
        prop_assert_eq!(&wanted, &drawn(&mut stream));
        prop_assert_eq!(&wanted, &drawn(&mut stream));

        let reader = TraceReader::from_bytes("bytes", bytes, &Default::default()).unwrap();
        let (mut accessed, mut pages) = (Vec::new(), 0);
        let found = for_each_access(vec![reader], &options, |access| {
            let ratios = access.delta_ratios.map(<[u16]>::to_vec);
            accessed.push((access.values.map(<[u32]>::to_vec), ratios));
            assert_eq!(access.values.is_some(), access.op == Op::Write);
            assert_eq!(access.delta_ratios.is_some(), access.op == Op::Write && with_delta);
            pages += access.values.map_or(0, |values| values.len() as u64);
            Ok(())
        })
        .unwrap();
        prop_assert_eq!(&accessed, &wanted);
        let summary = memory.summary();
        prop_assert_eq!(pages, summary.counts.writes.pages);
        prop_assert_eq!(summary.has_content, pages > 0);
        prop_assert_eq!(found.value_count, summary.value_ids);
        prop_assert_eq!(summary.content, Default::default());
        let values: Vec<u32> = wanted.iter().flat_map(|(v, _)| v.iter().flatten().copied()).collect();
        if content == "distinct" {
            prop_assert_eq!(values, (0..pages as u32).collect::<Vec<_>>());
        } else {
            prop_assert!(values.iter().all(|&value| value < summary.value_ids));
        }
        let ratios = wanted.iter().flat_map(|(_, ratios)| ratios.iter().flatten());
        prop_assert!(ratios.clone().all(|&ratio| ratio > 0));
        prop_assert_eq!(ratios.count() as u64, if with_delta { pages } else { 0 });
    }
}

#[test]
fn numbers_count_the_page_writes_that_are_kept() {
    let bytes = native(&[
        record(0, 1, Op::Write, 0, 4096),
        record(1, 2, Op::Write, 100, 4096),
        record(2, 1, Op::Read, 0, 4096),
        record(3, 2, Op::Write, 0, 100),
    ]);
    let all = |options: &WorkloadOptions| drawn(&mut workload(&bytes, options).unwrap());
    let content = "zipf:a=0.5,n=1000000";
    let both = all(&options(content, Some("gaussian:mean=0.5,std=0.2")));
    assert_eq!(both[1].0.as_ref().unwrap().len(), 2, "one a unit touched");
    assert_eq!(both[2], (None, None));
    let one = all(&WorkloadOptions {
        devices: vec!["2".to_owned()],
        ..options(content, None)
    });
    // The first page of device 2 is now the first page written.
    assert_eq!(
        one[0].0.as_ref().unwrap()[0],
        both[0].0.as_ref().unwrap()[0]
    );
    assert!(one.iter().all(|(_, ratios)| ratios.is_none()));
    // The same seed, but content and ratios are drawn apart.
    let other = all(&options(
        "zipf:a=0.5,n=1000000,seed=1",
        Some("gaussian:mean=0.5,std=0.2"),
    ));
    assert_ne!(other[0].0, both[0].0);
    assert_eq!(other[0].1, both[0].1);
}

#[test]
fn ratios_stand_beside_the_values_of_a_trace() {
    let page = |time, op, content: &[u32]| OwnedRecord {
        content: Some(content.to_vec()),
        ..record(time, 0, op, 0, content.len() as u64 * 4096)
    };
    let told = [
        page(0, Op::Read, &[0, 1]),
        page(1, Op::Write, &[2, 3, 4]),
        page(2, Op::Read, &[2]),
        page(3, Op::Write, &[5]),
    ];
    let delta = Some("gaussian:mean=0.35,std=0.1");
    for mut drawn_from in [
        drawn(&mut workload(&native(&told), &options("trace", delta)).unwrap()),
        drawn(&mut streamed(&native(&told), &options("trace", delta)).unwrap()),
    ] {
        let distinct = drawn(&mut workload(&native(&told), &options("distinct", delta)).unwrap());
        let ratios = |drawn: &Drawn| drawn.iter().map(|(_, r)| r.clone()).collect::<Vec<_>>();
        assert_eq!(ratios(&drawn_from), ratios(&distinct));
        assert_eq!(drawn_from.remove(1).0, Some(vec![2, 3, 4]));
    }
    // A page write without content has no place for a ratio.
    let bare = native(&[told[1].clone(), record(9, 0, Op::Write, 0, 8192)]);
    let error = workload(&bare, &options("trace", delta))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("2 of 5 have none; say what they have"),
        "{error}"
    );
    assert!(streamed(&bare, &options("trace", delta)).is_err());
}

/// A model with state: every value is how often its unit was written before.
#[derive(Default)]
struct Rewrites {
    counts: BTreeMap<(u32, u64), u32>,
    highest: u32,
    next: u64,
}

impl Overlay for Rewrites {
    fn write(&mut self, device: u32, unit: u64, number: u64) -> u32 {
        assert_eq!(number, self.next, "every page write once, in order");
        self.next += 1;
        let count = self.counts.entry((device, unit)).or_default();
        *count += 1;
        self.highest = self.highest.max(*count);
        *count - 1
    }

    fn value_ids(&self) -> u32 {
        self.highest
    }
}

fn rewrites(begun: &Arc<AtomicU32>) -> NamedOverlay {
    let begun = begun.clone();
    let parameters = BTreeMap::from([("seed".to_owned(), "7".to_owned())]);
    NamedOverlay::new(
        "profile:rewrites",
        parameters,
        Arc::new(move || {
            begun.fetch_add(1, Ordering::Relaxed);
            Box::new(Rewrites::default())
        }),
    )
}

#[test]
fn a_model_made_elsewhere_begins_anew_with_each_pass() {
    let write = |time, unit: u64| record(time, 0, Op::Write, unit * 4096, 4096);
    let bytes = native(&[write(0, 3), write(1, 4), write(2, 3), write(3, 3)]);
    let begun = Arc::new(AtomicU32::new(0));
    let options = WorkloadOptions::new(ContentModel::Named(rewrites(&begun)));
    let wanted: Vec<_> = [0, 0, 1, 2].map(|value| (Some(vec![value]), None)).into();
    let mut memory = workload(&bytes, &options).unwrap();
    assert_eq!(begun.load(Ordering::Relaxed), 1);
    assert_eq!(drawn(&mut memory), wanted);
    assert_eq!(begun.load(Ordering::Relaxed), 1);
    let mut stream = streamed(&bytes, &options).unwrap();
    for _ in 0..2 {
        assert_eq!(drawn(&mut stream), wanted);
    }
    assert_eq!(memory.summary().value_ids, 3);
    assert_eq!(memory.summary(), stream.summary());
}

#[test]
fn a_model_that_breaks_its_word_is_refused() {
    struct Liar;
    impl Overlay for Liar {
        fn write(&mut self, _: u32, _: u64, number: u64) -> u32 {
            number as u32 * 5
        }
        fn value_ids(&self) -> u32 {
            5
        }
    }
    let named = NamedOverlay::new("liar", BTreeMap::new(), Arc::new(|| Box::new(Liar)));
    let options = WorkloadOptions::new(ContentModel::Named(named));
    let bytes = native(&[record(0, 0, Op::Write, 0, 8192)]);
    let error = workload(&bytes, &options).unwrap_err().to_string();
    assert!(
        error.contains("the content model gave the value id 5, expected one below 5"),
        "{error}"
    );
    let reader = TraceReader::from_bytes("bytes", bytes, &Default::default()).unwrap();
    assert!(for_each_access(vec![reader], &options, |_| Ok(())).is_err());
}

#[test]
fn options_survive_being_written_into_results() {
    let begun = Arc::new(AtomicU32::new(0));
    let models = [
        (ContentModel::FromTrace, r#""from_trace""#),
        (ContentModel::Distinct, r#""distinct""#),
        (
            "zipf:a=0.8,n=2000000,seed=18446744073709551615"
                .parse()
                .unwrap(),
            r#"{"zipf":{"exponent":0.8,"values":2000000,"seed":18446744073709551615}}"#,
        ),
        (
            "uniform:n=5".parse().unwrap(),
            r#"{"uniform":{"values":5,"seed":0}}"#,
        ),
        (
            ContentModel::Named(rewrites(&begun)),
            r#"{"named":{"name":"profile:rewrites","parameters":{"seed":"7"}}}"#,
        ),
    ];
    for (model, text) in models {
        assert_eq!(serde_json::to_string(&model).unwrap(), text);
        let options = WorkloadOptions {
            delta: Some("gaussian:mean=0.2,std=0.05".parse().unwrap()),
            ..WorkloadOptions::new(model)
        };
        let text = serde_json::to_string(&options).unwrap();
        assert_eq!(
            serde_json::from_str::<WorkloadOptions>(&text).unwrap(),
            options
        );
    }
    assert!(serde_json::from_str::<ContentModel>(r#"{"uniform":{"values":5}}"#).is_err());
    let wrong = r#"{"gaussian":{"mean":0.5,"std":0.1,"seed":0,"x":1}}"#;
    assert!(serde_json::from_str::<DeltaModel>(wrong).is_err());
    // Options written before there were ratios.
    let plain = serde_json::to_string(&from_trace()).unwrap();
    assert!(!plain.contains("delta"), "{plain}");
    assert_eq!(
        serde_json::from_str::<WorkloadOptions>(&plain).unwrap(),
        from_trace()
    );
}

#[test]
fn a_model_read_from_results_must_be_attached() {
    let begun = Arc::new(AtomicU32::new(0));
    let text = serde_json::to_string(&rewrites(&begun)).unwrap();
    let mut read: NamedOverlay = serde_json::from_str(&text).unwrap();
    assert_eq!(read, rewrites(&begun));
    let bytes = native(&[record(0, 0, Op::Write, 0, 8192)]);
    let open = |named: &NamedOverlay| {
        workload(
            &bytes,
            &WorkloadOptions::new(ContentModel::Named(named.clone())),
        )
    };
    let error = open(&read).unwrap_err().to_string();
    assert!(
        error.contains("content model 'profile:rewrites,seed=7' is known by name only"),
        "{error}"
    );
    read.attach(Arc::new(|| Box::new(Rewrites::default())));
    assert_eq!(drawn(&mut open(&read).unwrap()), [(Some(vec![0, 0]), None)]);
    assert_eq!(
        (read.name(), read.parameters()["seed"].as_str()),
        ("profile:rewrites", "7")
    );
}

/// Draws that results of earlier runs rely on, computed by another program from the description.
#[test]
fn draws_stay_as_they_are() {
    let bytes = native(&[record(0, 0, Op::Write, 0, 8 * 4096)]);
    let of = |content, delta| {
        let mut workload = workload(&bytes, &options(content, delta)).unwrap();
        drawn(&mut workload).remove(0)
    };
    let (values, ratios) = of(
        "zipf:a=0.8,n=1000,seed=7",
        Some("gaussian:mean=0.35,std=0.1"),
    );
    assert_eq!(values.unwrap(), [0, 79, 209, 365, 93, 1, 550, 104]);
    let wanted = [22366, 15456, 27352, 26086, 25354, 19694, 19265, 21210];
    assert_eq!(ratios.unwrap(), wanted);
    let wanted = [895, 726, 222, 787, 715, 874, 243, 653];
    assert_eq!(of("uniform:n=1000", None).0.unwrap(), wanted);
}
