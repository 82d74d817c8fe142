//! The bytes of synthesised values: what the model says of them, measured with LZ4.

use flashlore_synth::profile::Statistic;
use flashlore_synth::similarity::{PageKind, Recipe, Relation, materialise};
use flashlore_synth::{
    Generator, PRESETS, Profile, Recipes, SynthOptions, load, load_profile, recipes, write_pages,
};
use flashlore_trace::pages::PAGE_BYTES;
use flashlore_trace::{Batch, Existing, Op, PageSource, Pages};
use proptest::prelude::*;

type Page = [u8; PAGE_BYTES];

fn profile(name: &str) -> Profile {
    load_profile(name)
        .unwrap_or_else(|error| panic!("{error}"))
        .0
}

fn options(scale: f64) -> SynthOptions {
    SynthOptions {
        scale,
        requests: None,
        seed: 3,
    }
}

fn page(profile: &Profile, recipe: &Recipe) -> Page {
    let mut page = [0xEE; PAGE_BYTES];
    let model = profile.similarity.as_ref().expect("a profile with bytes");
    materialise(model, 3, recipe, &mut page);
    page
}

fn value(recipes: &Recipes, value: u32) -> Page {
    let mut page = [0xEE; PAGE_BYTES];
    assert!(recipes.fill(value, &mut page), "value {value}");
    page
}

fn compressed(page: &Page) -> usize {
    lz4_flex::block::compress(page).len().min(PAGE_BYTES)
}

/// Bytes of the delta between two pages, compressed.
fn delta(a: &Page, b: &Page) -> usize {
    compressed(&std::array::from_fn(|i| a[i] ^ b[i]))
}

fn family(kind: PageKind, family: u32, version: u16) -> Recipe {
    Recipe {
        kind,
        cluster: u32::MAX,
        family,
        version,
    }
}

/// Calls `each` for every page access: page, operation, what it held, what it holds.
fn replay(profile: &Profile, options: &SynthOptions, mut each: impl FnMut(u64, Op, u32, u32)) {
    let mut held = std::collections::HashMap::new();
    let mut generator = Generator::new(profile, options);
    let mut batch = Batch::default();
    while generator.next_batch(&mut batch) {
        for record in batch.iter() {
            let values = record.content.expect("a workload with content");
            for (page, &value) in (record.offset / PAGE_BYTES as u64..).zip(values) {
                let before = held.insert(page, value).unwrap_or(u32::MAX);
                each(page, record.op, before, value);
            }
        }
    }
}

fn recipe() -> impl Strategy<Value = Recipe> {
    let kind = prop::sample::select(vec![
        PageKind::Record,
        PageKind::Log,
        PageKind::Text,
        PageKind::Zero,
        PageKind::Padded,
        PageKind::Random,
    ]);
    let cluster = prop_oneof![Just(u32::MAX), 0..20u32, any::<u32>()];
    let family = prop_oneof![0..20u32, any::<u32>()];
    let version = prop_oneof![0..40u16, any::<u16>()];
    (kind, cluster, family, version).prop_map(|(kind, cluster, family, version)| Recipe {
        kind,
        cluster,
        family,
        version,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn equal_recipes_give_equal_pages_and_distinct_ones_distinct_pages(
        a in recipe(),
        other in recipe(),
        fields in 1..16u32,
        preset in prop::sample::select(vec!["sysbench", "hadoop", "loadsim", "specsfs"]),
    ) {
        let profile = profile(preset);
        let mut b = a;
        if fields & 1 > 0 { b.kind = other.kind; }
        if fields & 2 > 0 { b.cluster = other.cluster; }
        if fields & 4 > 0 { b.family = other.family; }
        if fields & 8 > 0 { b.version = other.version; }
        prop_assert_eq!(page(&profile, &a), page(&profile, &a));
        prop_assert_eq!(page(&profile, &a) == page(&profile, &b), a == b);
    }
}

#[test]
fn a_version_differs_from_the_one_before_in_as_many_records_as_the_model_says() {
    let profile = profile("tpc-c");
    let model = &profile.similarity.as_ref().unwrap().records;
    let length = (PAGE_BYTES - 12) / model.page as usize;
    let (mut changed, mut last) = (0, page(&profile, &family(PageKind::Record, 7, 0)));
    let versions = 1000;
    for version in 1..=versions {
        let next = page(&profile, &family(PageKind::Record, 7, version));
        let mut records = 0;
        for record in 0..model.page as usize {
            let at = 12 + record * length;
            let end = at + model.bytes as usize;
            records += u32::from(last[at..end] != next[at..end]);
            assert_eq!(
                last[end..at + length],
                next[end..at + length],
                "version {version}"
            );
        }
        assert!(records >= 1, "version {version}");
        changed += records;
        last = next;
    }
    let mean = f64::from(changed) / f64::from(versions);
    // Where two rounds meet, a version can update a record twice.
    assert!((mean - model.updated).abs() < 0.1 * model.updated, "{mean}");
}

#[test]
fn a_log_keeps_what_it_has_and_has_zeros_behind() {
    let profile = profile("tpc-c");
    let used = |page: &Page| page.iter().rposition(|&byte| byte != 0).unwrap() + 1;
    let mut last = page(&profile, &family(PageKind::Log, 7, 0));
    let mut versions = 0;
    while used(&last) < PAGE_BYTES {
        versions += 1;
        let next = page(&profile, &family(PageKind::Log, 7, versions));
        let end = used(&last);
        assert!(used(&next) > end, "version {versions}");
        assert_eq!(last[12..end], next[12..end]);
        last = next;
    }
    assert!(
        (4..=8).contains(&versions),
        "{versions} versions of about 700 bytes each"
    );
}

#[test]
fn kinds_compress_as_their_names_say() {
    let profile = profile("loadsim");
    let alone = |kind| {
        let sum: usize = (0..200)
            .map(|n| compressed(&page(&profile, &family(kind, n, 2))))
            .sum();
        sum as f64 / (200 * PAGE_BYTES) as f64
    };
    let random = alone(PageKind::Random);
    assert!(random > 0.99, "random {random}");
    for (kind, least, most) in [
        (PageKind::Text, 0.3, 0.8),
        (PageKind::Log, 0.1, 0.7),
        (PageKind::Padded, 0.1, 0.5),
        (PageKind::Record, 0.1, 0.4),
        (PageKind::Zero, 0.0, 0.02),
    ] {
        let ratio = alone(kind);
        println!("{kind:?} alone: {ratio:.3}");
        assert!((least..most).contains(&ratio), "{kind:?} {ratio}");
    }
    let text = |n| page(&profile, &family(PageKind::Text, n, 0));
    let deltas = (0..50)
        .map(|n| delta(&text(n), &text(n + 50)))
        .sum::<usize>();
    let texts = (0..50).map(|n| compressed(&text(n))).sum::<usize>();
    assert!(
        deltas > texts,
        "unrelated pages: the delta is worth nothing"
    );
}

#[test]
fn versions_of_pages_of_records_have_the_stated_ratio_and_compress_worse_alone() {
    for preset in PRESETS {
        let (definition, _) = load(preset.name).unwrap();
        let Some(profile) = definition.profile() else {
            continue;
        };
        let Some(stated) = profile.published.get(&Statistic::DeltaRatio) else {
            continue;
        };
        let scale = 20_000.0 / profile.requests.count as f64;
        let options = options(scale);
        let recipes = recipes(profile, &options).expect("bytes");
        let (mut count, mut deltas, mut alone) = (0, 0, 0);
        replay(profile, &options, |_, op, before, after| {
            let (Some(old), Some(new)) = (recipes.get(before), recipes.get(after)) else {
                return;
            };
            if op == Op::Write
                && before != after
                && new.family == old.family
                && new.kind == PageKind::Record
            {
                let (old, new) = (value(&recipes, before), value(&recipes, after));
                count += 1;
                deltas += delta(&old, &new);
                alone += compressed(&new);
            }
        });
        let ratio = deltas as f64 / f64::from(count * PAGE_BYTES as u32);
        let gain = alone as f64 / deltas as f64;
        println!(
            "{}: {count} versions, R_c {ratio:.4}, {gain:.2} times that alone",
            preset.name
        );
        assert!(count > 20, "{}: {count} versions", preset.name);
        assert!(
            (0.02..=0.11).contains(&ratio),
            "{}: {ratio:.4}",
            preset.name
        );
        assert!(
            (ratio - stated.value).abs() <= stated.tolerance,
            "{}: {ratio:.4}",
            preset.name
        );
        assert!(
            gain >= 1.8,
            "{}: alone only {gain:.2} times as large",
            preset.name
        );
    }
}

/// Puts each page to the first cluster whose first page it resembles, within half a page of delta.
fn clusters(pages: impl Iterator<Item = Page>) -> Vec<Vec<Page>> {
    let resembles = |a: &Page, b: &Page| {
        let equal = (12..PAGE_BYTES)
            .step_by(16)
            .filter(|&i| a[i] == b[i])
            .count();
        equal >= 128 && delta(a, b) <= 2048
    };
    let mut clusters: Vec<Vec<Page>> = Vec::new();
    for page in pages {
        match clusters
            .iter_mut()
            .find(|cluster| resembles(&cluster[0], &page))
        {
            Some(cluster) => cluster.push(page),
            None => clusters.push(vec![page]),
        }
    }
    clusters
}

/// Bytes of the deltas of all pages of a cluster from the one that resembles the others most (of
/// which every fifth is asked).
fn delta_bytes(cluster: &[Page]) -> usize {
    let from = |page: &Page, step| -> usize {
        cluster
            .iter()
            .step_by(step)
            .map(|other| delta(page, other))
            .sum()
    };
    let reference = cluster
        .iter()
        .min_by_key(|page| from(page, 5))
        .expect("a page");
    from(reference, 1) - delta(reference, reference)
}

#[test]
fn sysbench_has_the_published_shares_and_sizes_of_deltas() {
    let profile = profile("sysbench");
    let options = options(0.02);
    let recipes = recipes(&profile, &options).expect("bytes");
    let mut held = std::collections::BTreeMap::new();
    replay(&profile, &options, |page, _, _, after| {
        held.insert(page, after);
    });
    let pages = held.len() as f64;
    let mut clusters = clusters(held.values().map(|&v| value(&recipes, v)));
    clusters.retain(|cluster| cluster.len() > 1);
    let members: usize = clusters.iter().map(Vec::len).sum();
    let others = (members - clusters.len()) as f64;
    let bytes: usize = clusters.iter().map(|cluster| delta_bytes(cluster)).sum();
    let found = [
        (Statistic::References, clusters.len() as f64 / pages),
        (Statistic::Associates, others / pages),
        (Statistic::DeltaBytes, bytes as f64 / others),
    ];
    println!("{pages} pages: {found:?}");
    assert!((0.005..0.02).contains(&found[0].1), "{}", found[0].1);
    for (statistic, value) in found {
        let stated = profile.published[&statistic];
        assert!(
            (value - stated.value).abs() <= stated.tolerance,
            "{statistic:?} {value}"
        );
    }
}

#[test]
fn clones_of_an_image_hold_variants_of_the_same_pages() {
    let profile = profile("rubis-5vm");
    let options = options(0.002);
    let recipes = recipes(&profile, &options).expect("bytes");
    let pages = (profile.address.footprint as f64 * options.scale).round() as u64;
    let image = pages.div_ceil(5);
    let mut first = std::collections::HashMap::new();
    replay(&profile, &options, |page, _, before, after| {
        if before == u32::MAX {
            first.insert(page, after);
        }
    });
    let (mut pairs, mut similar) = (0, 0);
    for page in 0..pages {
        let other = (page + 2 * image) % (5 * image);
        if let (Some(&a), Some(&b)) = (first.get(&page), first.get(&other)) {
            pairs += 1;
            let (a, b) = (value(&recipes, a), value(&recipes, b));
            similar += u32::from(a.iter().zip(&b).filter(|(a, b)| a == b).count() > PAGE_BYTES / 2);
        }
    }
    let share = f64::from(similar) / f64::from(pairs);
    let cloned = profile.similarity.unwrap().images.unwrap().cloned;
    assert!(
        pairs > 1000 && (share - cloned).abs() < 0.05,
        "{share} of {pairs}"
    );
}

#[test]
fn scattered_changes_touch_the_stated_share_of_bits() {
    let profile = profile("hadoop");
    let reference = family(PageKind::Random, 5, 0);
    let reference = Recipe {
        cluster: 5,
        ..reference
    };
    assert_eq!(reference.relation(), Relation::Reference);
    let base = page(&profile, &reference);
    let variants = 50;
    let bits: u32 = (0..variants)
        .map(|n| {
            let variant = page(
                &profile,
                &Recipe {
                    family: 100 + n,
                    ..reference
                },
            );
            (12..PAGE_BYTES)
                .map(|i| (base[i] ^ variant[i]).count_ones())
                .sum::<u32>()
        })
        .sum();
    let share = f64::from(bits) / f64::from(variants * 8 * (PAGE_BYTES as u32 - 12));
    assert!((share - 0.25 * 0.05).abs() < 0.0005, "{share}");
}

#[test]
fn a_file_of_pages_has_the_page_of_every_value() {
    let profile = profile("loadsim");
    let options = options(0.0005);
    let recipes = recipes(&profile, &options).expect("bytes");
    let mut values = std::collections::HashSet::new();
    replay(&profile, &options, |_, _, _, after| {
        values.insert(after);
    });
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("loadsim.pages.zst");
    let (written, file) = write_pages(&recipes, &path, Existing::Refuse).unwrap();
    assert_eq!(written, values.len() as u64);
    assert!(!path.exists());
    file.complete().unwrap();
    let pages = Pages::open(&path, u64::MAX).unwrap();
    assert_eq!((pages.len(), recipes.len()), (values.len(), values.len()));
    let mut distinct = std::collections::HashSet::new();
    for v in 0..pages.len() as u32 {
        let page = pages.page(v).unwrap();
        assert_eq!(*page, value(&recipes, v));
        distinct.insert(*page);
    }
    assert_eq!(distinct.len(), pages.len());
    assert!(!recipes.fill(pages.len() as u32, &mut [0; PAGE_BYTES]));
}

#[test]
fn impossible_models_are_refused() {
    let text = load("sysbench").unwrap().1;
    for (found, instead, names) in [
        (
            "record = 1.0",
            "record = 0.9",
            "similarity.kinds: the shares make 0.9",
        ),
        (
            "references = 0.01 ",
            "references = 0.0 ",
            "similarity.references",
        ),
        (
            "associates = 0.85 ",
            "associates = 0.995 ",
            "similarity.associates",
        ),
        (
            "bytes = 20,",
            "bytes = 205,",
            "similarity.records.bytes: found 205, expected a number from 1 to 204",
        ),
        (
            "updated = 2.5",
            "updated = 0.5",
            "similarity.records.updated",
        ),
        (
            "{ runs = { count = 2.0, bytes = 6 } }",
            "{ scattered = { bits = 0.5, over = 1.0 } }",
            "similarity.changes.scattered.bits",
        ),
        ("kinds = {", "sorts = {", "sorts"),
    ] {
        assert!(text.contains(found), "{found}");
        let error = Profile::parse("here", &text.replace(found, instead)).unwrap_err();
        assert!(error.to_string().contains(names), "{error}");
    }
}

#[test]
#[ignore = "measures time: cargo test --release -- --ignored --nocapture a_page_costs"]
fn a_page_costs_well_below_100_microseconds() {
    for (preset, kind) in [
        ("tpc-c", PageKind::Record),
        ("loadsim", PageKind::Log),
        ("loadsim", PageKind::Text),
        ("loadsim", PageKind::Padded),
        ("hadoop", PageKind::Random),
    ] {
        let profile = profile(preset);
        let model = profile.similarity.as_ref().unwrap();
        let mut page = [0; PAGE_BYTES];
        let begin = std::time::Instant::now();
        for n in 0..10_000 {
            let recipe = Recipe {
                cluster: n / 100,
                ..family(kind, n, 1000)
            };
            materialise(model, 3, &recipe, &mut page);
        }
        let micros = begin.elapsed().as_secs_f64() * 1e6 / 1e4;
        println!("{preset} {kind:?}: {micros:.1} us a page");
        assert!(micros < 50.0, "{preset} {kind:?}: {micros:.1} us");
    }
}
