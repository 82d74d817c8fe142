//! What is printed and written.

use std::fs::File;

use flashlore_characterize::{
    Characteristics, Characterizer, Options, PAGE_BYTES, PageSource, write_dir,
};
use flashlore_trace::{Access, Existing, Op};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;

/// Half of each page is the value's number, again and again.
struct Source;

impl PageSource for Source {
    fn fill(&self, value: u32, into: &mut [u8; PAGE_BYTES]) -> bool {
        into.fill(0);
        into[..PAGE_BYTES / 2].fill(value as u8);
        true
    }
}

fn characteristics() -> Characteristics {
    let options = Options {
        slice_ns: Some(1_000_000_000),
        capacities: vec![1 << 20],
        ..Options::default()
    };
    let mut characterizer = Characterizer::with_pages(options, Some(&Source)).unwrap();
    for number in 0..3000_u64 {
        let (unit, value) = (number * 7919 % 200, number * number % 97);
        let access = Access {
            time_ns: number * 1_000_000,
            op: if number % 5 == 0 { Op::Read } else { Op::Write },
            device: 0,
            offset: unit * 4096,
            length: 4096,
            unit,
            units: 1,
            values: Some(&[value as u32]),
            delta_ratios: None,
        };
        characterizer.observe(&access).unwrap();
    }
    characterizer.finish()
}

#[test]
fn tables_are_eighty_columns_wide() {
    let text = characteristics().to_string();
    for line in text.lines() {
        assert!(
            line.chars().count() <= 80 && line == line.trim_end(),
            "{line:?}"
        );
    }
    for part in [
        "Requests",
        "Sizes in bytes",
        "Arrivals",
        "Writing rate",
        "Kinds of writes",
        "Writes within a distance",
        "Writes that miss an LRU fingerprint index",
        "new xor old (LZ4)",
        "Slices of 1.00 s, each from nothing known",
    ] {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
    assert!(
        text.contains("  share of writes   80.00 %  80.00 %  80.00 %\n"),
        "{text}"
    );
}

#[test]
fn json_gives_back_what_went_in() {
    let found = characteristics();
    let json = serde_json::to_string(&found).unwrap();
    assert_eq!(
        serde_json::from_str::<Characteristics>(&json).unwrap(),
        found
    );
}

#[test]
fn an_empty_trace_prints_and_writes() {
    let empty = Characterizer::new(Options::default()).unwrap().finish();
    assert!(empty.to_string().contains("footprint        0 pages"));
    let dir = tempfile::tempdir().unwrap();
    write_dir(dir.path(), &empty, Existing::Refuse).unwrap();
    assert_eq!(names(dir.path()), ["summary.json"]);
}

fn names(dir: &std::path::Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn files_hold_the_curves() {
    let found = characteristics();
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("made/for/it");
    write_dir(&out, &found, Existing::Refuse).unwrap();
    assert!(write_dir(&out, &found, Existing::Refuse).is_err());
    write_dir(&out, &found, Existing::Replace).unwrap();
    let expected = [
        "arrivals.parquet",
        "miss_ratio.parquet",
        "overwrite.parquet",
        "popularity.parquet",
        "sizes.parquet",
        "stack_distance.parquet",
        "summary.json",
    ];
    assert_eq!(names(&out), expected, "and nothing else");
    let file = File::open(out.join("stack_distance.parquet")).unwrap();
    let reader = SerializedFileReader::new(file).unwrap();
    let schema = reader.metadata().file_metadata().schema_descr();
    let columns: Vec<&str> = schema.columns().iter().map(|c| c.name()).collect();
    let expected = [
        "slice",
        "class",
        "space",
        "accesses",
        "accesses_within",
        "distance",
        "share_of_accesses",
        "share_of_rereferences",
    ];
    assert_eq!(columns, expected);
    // The writes of values of the whole, added up, are its re-references.
    let rows = reader.get_row_iter(None).unwrap().map(Result::unwrap);
    let counts = rows.filter_map(|row| {
        let whole = row.get_long(0).is_err();
        let class = (
            row.get_string(1).unwrap().as_str(),
            row.get_string(2).unwrap().as_str(),
        );
        (whole && class == ("write", "value")).then(|| row.get_long(3).unwrap())
    });
    let rereferences = found.whole.value_locality.writes.rereferences();
    assert_eq!(counts.sum::<i64>(), rereferences as i64);
    let json = std::fs::read_to_string(out.join("summary.json")).unwrap();
    assert_eq!(
        serde_json::from_str::<Characteristics>(&json).unwrap(),
        found
    );
}
