//! `flashlore demo`.

use crate::program::{run, runs};

#[test]
fn the_demo_sets_ca_ssd_against_plain_on_every_capture() {
    let text = run(&["demo"]).ok();
    for name in ["sqlite-tpcb", "sqlite-bytes", "maildir", "django-upgrade"] {
        let row = text
            .lines()
            .position(|line| line.contains(&format!("demo:{name}")) && line.contains("plain"));
        let row = row.unwrap_or_else(|| panic!("{name} is missing in\n{text}"));
        let below: Vec<&str> = text.lines().skip(row + 1).take(2).collect();
        assert!(below[0].contains("ca-ssd"), "{text}");
        assert!(
            below[1].contains("change") && below[1].contains('%'),
            "{text}"
        );
    }
    assert!(text.lines().last().unwrap().contains("flashlore compare"));
}

#[test]
fn the_demo_as_json_saves_programs_and_meets_a_full_device() {
    let runs = runs(run(&["demo", "--json", "--jobs", "1"]).json());
    assert_eq!(runs.len(), 8);
    for pair in runs.chunks(2) {
        assert_eq!(
            (&pair[0]["system"], &pair[1]["system"]),
            (&"plain".into(), &"ca-ssd".into())
        );
        let writes = pair[0]["host"]["write_pages"].as_u64().unwrap();
        assert!(writes > 27_000 && pair[1]["host"]["write_pages"].as_u64() == Some(writes));
        let waf = |run: &serde_json::Value| run["waf_total"].as_f64().unwrap();
        assert!(waf(&pair[1]) <= waf(&pair[0]), "{}", pair[0]["trace"]);
        assert!(pair[0]["gc"]["victims"].as_u64().unwrap() > 0);
    }
}
