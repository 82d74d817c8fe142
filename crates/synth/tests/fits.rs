//! The fits that come with the program are those of the captures, and behave as fits do.

use std::collections::HashSet;

use flashlore_synth::fit::{Detail, Estimator};
use flashlore_synth::{Fit, PRESETS, ProfileSource};
use flashlore_testkit::data;
use flashlore_trace::{
    Batch, ContentModel, Op, ReadOptions, TraceReader, WorkloadOptions, for_each_access,
};

/// Each fit's name and the detail that `flashlore trace fit` found for it.
const FITS: [(&str, Detail); 5] = [
    ("maildir", detail(64, 1, false)),
    ("sqlite-tpcb", detail(128, 8, true)),
    ("sqlite-bytes", detail(128, 1, true)),
    ("django-upgrade", detail(512, 1, false)),
    ("upgrade-bytes", detail(1024, 8, false)),
];

const fn detail(epochs: u32, context: usize, sharing: bool) -> Detail {
    Detail {
        epochs,
        steps: 64,
        context,
        sharing,
    }
}

#[test]
fn the_fits_are_those_of_the_captures() {
    for (name, detail) in FITS {
        let Some(path) = data(&format!("captures/{name}.fiu.xz")) else {
            continue;
        };
        let reader = TraceReader::open(&path, &ReadOptions::default()).unwrap();
        let mut estimator = Estimator::default();
        let options = WorkloadOptions::new(ContentModel::FromTrace);
        for_each_access(vec![reader], &options, |access| {
            estimator.observe(access);
            Ok(())
        })
        .unwrap();
        let fit = estimator.fit(name, &format!("{name}.fiu.xz"), detail);
        let preset = PRESETS.iter().find(|preset| preset.name == name).unwrap();
        assert!(
            fit.to_text() == preset.text,
            "{name} is not its capture's fit"
        );
        let (pages, values) = counted(name);
        assert_eq!(pages, estimator.footprint(), "{name}");
        assert!(values > 0);
    }
}

/// Distinct pages and values of the workload that a preset makes.
fn counted(name: &str) -> (u64, usize) {
    let mut reader = ProfileSource::parse(name).unwrap().open();
    let mut batch = Batch::default();
    let (mut pages, mut values) = (HashSet::new(), HashSet::new());
    while reader.next_batch(&mut batch).unwrap() {
        for record in batch.iter() {
            let first = record.offset / 4096;
            pages.extend(first..first + record.length / 4096);
            values.extend(record.content.unwrap_or_default().iter().copied());
        }
    }
    (pages.len() as u64, values.len())
}

#[test]
fn a_fit_scales_and_stops_where_it_is_told() {
    let records = |spec: &str| {
        let mut reader = ProfileSource::parse(spec).unwrap().open();
        let mut batch = Batch::default();
        let (mut records, mut writes) = (0u64, 0u64);
        while reader.next_batch(&mut batch).unwrap() {
            records += batch.len() as u64;
            writes += batch.op.iter().filter(|&&op| op == Op::Write).count() as u64;
        }
        (records, writes)
    };
    assert_eq!(records("maildir,requests=1000").0, 1000);
    let (_, whole) = records("maildir");
    let (_, half) = records("maildir,scale=0.5");
    let (_, twice) = records("maildir,scale=2");
    assert_eq!(whole, 68_297);
    assert_eq!(twice, 2 * whole);
    assert!(half.abs_diff(whole / 2) < whole / 50, "{half}");
    let error = ProfileSource::parse("maildir,requests=1000000")
        .unwrap_err()
        .to_string();
    assert!(error.contains("the fit makes about 68297"), "{error}");
}

/// A line of a fit that is changed anywhere is refused with a sentence, or makes a workload.
#[test]
fn damaged_fits_are_refused_or_work() {
    let preset = PRESETS
        .iter()
        .find(|preset| preset.name == "maildir")
        .unwrap();
    let text = preset.text.as_bytes();
    let mut state = 1u64;
    let mut next = |limit: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as usize % limit
    };
    let signs = b"0123456789 :+/>-abwrtcopyfreshsole\n\"";
    let (mut refused, mut made) = (0, 0);
    for _ in 0..60 {
        let mut damaged = text.to_vec();
        for _ in 0..1 + next(3) {
            let at = next(damaged.len());
            damaged[at] = signs[next(signs.len())];
        }
        match Fit::parse("damaged", &String::from_utf8(damaged).unwrap()) {
            Ok(fit) if fit.pages() < 1_000_000 => {
                let mut reader = ProfileSource::of_fit(fit, Default::default()).open();
                let mut batch = Batch::default();
                while reader.next_batch(&mut batch).unwrap() {}
                made += 1;
            }
            Ok(_) => made += 1,
            Err(error) => {
                assert!(error.to_string().starts_with("damaged: "), "{error}");
                refused += 1;
            }
        }
    }
    assert!(refused > 5 && made > 0, "{refused} refused, {made} made");
}
