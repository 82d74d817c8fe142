//! Presets load, print and load again; layers override; mistakes are named with their place.

use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;

use flashlore_ftl::VictimChoice;
use flashlore_sim::config::{
    BufferPolicy, ConfigError, DeviceConfig, Entries, GcPolicy, HostMode, Load, Nanos, RunConfig,
    Sampling, Settings, Shape, Share, Size, SpareDefinition, SystemConfig, Watermark, auto_device,
    device_presets, load_device, load_host, load_system, part_presets, system_presets,
};
use flashlore_sim::engine::build::ftl_options;

fn sets(texts: &[&str]) -> Settings {
    Settings::parse(texts).unwrap()
}

fn device(name: &str, texts: &[&str]) -> Result<DeviceConfig, ConfigError> {
    load_device(name, &sets(texts)).map(|loaded| loaded.config)
}

fn system(name: &str, texts: &[&str]) -> Result<SystemConfig, ConfigError> {
    load_system(name, &sets(texts)).map(|loaded| loaded.config)
}

fn shape(name: &str) -> Shape {
    device(name, &[]).unwrap().shape().unwrap()
}

/// A file with `text`, in a directory that lives as long as the first value.
fn file(text: &str) -> (tempfile::TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let path: PathBuf = dir.path().join("mine.toml");
    fs::write(&path, text).unwrap();
    (dir, path.display().to_string())
}

fn device_error(text: &str, texts: &[&str]) -> String {
    let (_dir, path) = file(text);
    device(&path, texts)
        .unwrap_err()
        .to_string()
        .replace(&path, "mine.toml")
}

#[test]
fn every_preset_prints_as_toml_that_loads_to_the_same_values() {
    for preset in device_presets() {
        let loaded = load_device(preset.name, &Settings::default()).unwrap();
        assert_eq!(loaded.config.name, preset.name);
        assert_eq!(loaded.config.description, preset.description);
        let (_dir, path) = file(&loaded.to_toml());
        assert_eq!(
            device(&path, &[]).unwrap(),
            loaded.config,
            "{}",
            loaded.to_toml()
        );
    }
    for preset in system_presets() {
        let loaded = load_system(preset.name, &Settings::default()).unwrap();
        assert_eq!(loaded.config.name, preset.name);
        assert_eq!(loaded.config.description, preset.description);
        let (_dir, path) = file(&loaded.to_toml());
        assert_eq!(
            system(&path, &[]).unwrap(),
            loaded.config,
            "{}",
            loaded.to_toml()
        );
    }
}

#[test]
fn a_printed_device_explains_itself() {
    let text = load_device("ca-ssd-4g", &Settings::default())
        .unwrap()
        .to_toml();
    assert!(
        text.contains("# Array read of one flash page.\nread = \"25us\"  # [P] Table 1\n"),
        "{text}"
    );
    assert!(
        text.contains(
            "over_provisioning = 0.15  # simulator default; the paper does not state it\n"
        )
    );
    assert!(!text.contains("capacity ="), "no capacity is given: {text}");
    assert!(
        !text.contains("choices ="),
        "greedy draws no blocks: {text}"
    );
    assert!(!text.contains("[auto]"), "{text}");
}

#[test]
fn derived_figures_of_the_part_sets() {
    // timing.md section 1: pages per block from sizes, and confirmed by the out-of-band bytes.
    let parts = [
        ("slc1", 32, 128 << 10, 4 << 10),
        ("slc2", 64, 256 << 10, 8 << 10),
        ("mlc", 128, 512 << 10, 28 << 10),
    ];
    for (part, pages, data, oob) in parts {
        let device = device("ca-ssd-4g", &[&format!("device.part={part}")]).unwrap();
        let g = device.geometry;
        assert_eq!(g.pages_per_block, pages, "{part}");
        assert_eq!(u64::from(g.pages_per_block) * g.page_size.0, data, "{part}");
        assert_eq!(u64::from(g.pages_per_block) * g.oob_size.0, oob, "{part}");
    }
    assert_eq!(part_presets().len(), 7);
    for part in part_presets() {
        let device = device(
            "ca-ssd-4g",
            &[
                "device.gc.low_watermark=1",
                "device.gc.high_watermark=1",
                &format!("device.part={}", part.name),
            ],
        );
        assert_eq!(device.unwrap().part.as_deref(), Some(part.name));
    }
}

#[test]
fn shapes_of_the_devices() {
    let web = shape("ca-ssd-4g");
    assert_eq!((web.blocks, web.raw_units), (16_384, 1 << 20));
    assert_eq!(shape("ca-ssd-6g").blocks, 24_576);

    let agrawal = shape("agrawal-2008");
    assert_eq!(
        (
            agrawal.dies,
            agrawal.blocks_per_pool,
            agrawal.units_per_block
        ),
        (8, 2048, 63)
    );
    assert_eq!(agrawal.exported_units, 8 * 877_363);
    assert_eq!((agrawal.low_watermark, agrawal.pools), (102, 64));

    let delta = shape("deltaftl-64g");
    assert_eq!(delta.raw_units * 4096, 64 << 30);
    assert_eq!(
        delta.low_watermark, 286,
        "10 % of the exported 2,867 blocks of a plane"
    );

    let bvssd = shape("bvssd-60g");
    assert_eq!(bvssd.exported_units * 4096, 60 << 30);
    let spare = 1.0 - bvssd.exported_units as f64 / bvssd.raw_units as f64;
    assert!((0.15..0.1501).contains(&spare), "{spare}");
    assert_eq!(bvssd.pools, 1);

    let tlc = shape("tlc-1t");
    assert_eq!(tlc.units_per_page, 4);
    assert_eq!(tlc.exported_units * 4096, 1_000_204_886_016);
    let program = device("tlc-1t", &[]).unwrap().timing.program;
    assert_eq!(
        program.iter().map(|nanos| nanos.0).sum::<u64>() / 3,
        650_000
    );
}

#[test]
fn spare_space_in_both_definitions() {
    let exported = |definition: &str| {
        let definition = format!("device.space.definition={definition}");
        let share = "device.space.over_provisioning=25%";
        device("ca-ssd-4g", &[share, &definition])
            .unwrap()
            .shape()
            .unwrap()
            .exported_units
    };
    assert_eq!(exported("raw"), (1 << 20) * 3 / 4);
    // 131,072 units a chip / 1.25, rounded down, on 8 chips.
    assert_eq!(exported("exported"), 104_857 * 8);
}

#[test]
fn layers_override_each_other() {
    let (_dir, path) = file("base = \"ca-ssd-4g\"\n[timing]\nerase = \"2ms\"\nread = \"30us\"\n");
    let device = device(
        &path,
        &[
            "device.timing.read=31us",
            "device.timing.program=[400us, 600us]",
        ],
    )
    .unwrap();
    assert_eq!(device.name, "mine");
    assert_eq!(device.timing.erase, Nanos(2_000_000));
    assert_eq!(device.timing.read, Nanos(31_000));
    assert_eq!(device.timing.program, [Nanos(400_000), Nanos(600_000)]);
    assert_eq!(device.geometry.channels, 8);
}

#[test]
fn a_part_set_lies_beneath_the_layer_that_names_it() {
    let (_dir, path) = file("base = \"agrawal-2008\"\npart = \"mlc\"\n[timing]\nerase = \"9ms\"\n");
    let device = device(&path, &[]).unwrap();
    assert_eq!(
        device.timing.program,
        [Nanos(800_000)],
        "the part set replaces the base's 200 us"
    );
    assert_eq!(
        device.timing.erase,
        Nanos(9_000_000),
        "the file replaces the part set's"
    );
    assert_eq!(device.geometry.pages_per_block, 128);
}

#[test]
fn a_later_layer_replaces_what_it_excludes() {
    let sized = device("ca-ssd-4g", &["device.capacity=3GiB"]).unwrap();
    assert_eq!(sized.space.capacity, Some(Size(3 << 30)));
    assert_eq!(
        (sized.space.over_provisioning, sized.space.definition),
        (None, None)
    );

    let shared = device(
        "tlc-1t",
        &[
            "device.space.over_provisioning=0.28",
            "device.space.definition=exported",
        ],
    )
    .unwrap();
    assert_eq!(shared.space.capacity, None);
    assert_eq!(shared.space.over_provisioning, Share::new(0.28));
    assert_eq!(shared.space.definition, Some(SpareDefinition::Exported));

    let allocating = device("ca-ssd-4g", &["device.gc.check=allocation"]).unwrap();
    assert!(
        !allocating.gc.on_reads,
        "reads were the preset's, for its check at dispatch"
    );
    let drawing = device(
        "ca-ssd-4g",
        &["device.gc.policy=d-choices", "device.gc.choices=3"],
    )
    .unwrap();
    assert_eq!(
        (drawing.gc.policy, drawing.gc.choices),
        (GcPolicy::DChoices, 3)
    );
    let windowed = ["device.gc.policy=windowed-greedy", "device.gc.window=12"];
    let windowed = device("ca-ssd-4g", &windowed).unwrap();
    assert_eq!(windowed.gc.window, Watermark::Blocks(12));
    let victims = |device: &DeviceConfig| ftl_options(device, 0).unwrap().collect.victims;
    assert_eq!(victims(&windowed), VictimChoice::WindowedGreedy(12));
    let share = device("ca-ssd-4g", &["device.gc.policy=windowed-greedy"]).unwrap();
    assert_eq!(victims(&share), VictimChoice::WindowedGreedy(204));
    let fifo = device("ca-ssd-4g", &["device.gc.policy=fifo"]).unwrap();
    assert_eq!(victims(&fifo), VictimChoice::Fifo);
}

#[test]
fn contradictions_name_both_keys_and_places() {
    let error = device(
        "ca-ssd-4g",
        &["device.capacity=3GiB", "device.space.over_provisioning=0.1"],
    );
    let error = error.unwrap_err().to_string();
    assert!(error.contains("device.space.over_provisioning contradicts device.space.capacity = \"3GiB\" (--set device.capacity=3GiB)"), "{error}");

    let error = device_error("base = \"ca-ssd-4g\"\n[gc]\nchoices = 4\n", &[]);
    assert!(error.starts_with("mine.toml:3: device.gc.choices contradicts device.gc.policy = \"greedy\" (preset ca-ssd-4g, line "), "{error}");

    let error = device("ca-ssd-4g", &["device.gc.window=4"])
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("device.gc.window contradicts device.gc.policy"),
        "{error}"
    );

    let error = load_host(&sets(&["host.queue_depth=32"]))
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "--set host.queue_depth=32: host.queue_depth contradicts host.mode = \"open\" (default): only mode \"closed\" keeps requests in flight"
    );

    let error = device(
        "auto",
        &[
            "device.geometry.blocks_per_plane=99",
            "device.auto.utilization=0.5",
        ],
    );
    assert!(
        error
            .unwrap_err()
            .to_string()
            .contains("device.geometry.blocks_per_plane contradicts device.auto.utilization = 0.5")
    );

    let error = device("ca-ssd-4g", &["device.gc.low_watermark=0.10"])
        .unwrap_err()
        .to_string();
    assert!(
        error.contains(
            "device.gc.high_watermark: 102 blocks are fewer than the 204 of gc.low_watermark"
        ),
        "{error}"
    );

    let error = system("ca-ssd", &["dedup.switch_off.window=8Ki"])
        .unwrap_err()
        .to_string();
    assert!(error.contains("dedup.switch_off.window contradicts dedup.switch_off.enabled = false (preset ca-ssd, line"), "{error}");

    let error = system("ca-ssd", &["dedup.fingerprint_bits=8"])
        .unwrap_err()
        .to_string();
    assert_eq!(
        error,
        "--set dedup.fingerprint_bits=8: dedup.fingerprint_bits: 8 bits collide, which needs dedup.verify = true"
    );
    assert!(system("ca-ssd", &["dedup.fingerprint_bits=8", "dedup.verify=true"]).is_ok());

    let error = system("caftl", &["dedup.verify=true"]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "preset caftl, line 9: dedup.out_of_line: pages hashed in idle time are shared by \
         fingerprint alone, which needs dedup.verify = false"
    );
    let error = system("caftl", &["dedup.sampling_unit=1"]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "--set dedup.sampling_unit=1: dedup.sampling_unit: expected 2 to 2^32 - 1 pages, found 1: \
         one is the sample for the others"
    );
    let error = system("caftl", &["dedup.sampling=page"]).unwrap_err();
    assert!(
        error.to_string().contains("expected `off` or `request`"),
        "{error}"
    );
}

#[test]
fn what_a_system_does_not_sample_or_scan_is_unused() {
    let texts = ["dedup.sampling_unit=8", "dedup.out_of_line=true"];
    let unused = |name, texts: &[&str]| load_system(name, &sets(texts)).unwrap().unused;
    assert!(unused("caftl", &texts).is_empty());
    assert_eq!(unused("ca-ssd", &texts), ["dedup.sampling_unit"]);
    assert_eq!(unused("plain", &texts).len(), 2);
    let caftl = system("caftl", &["dedup.sampling=off"]).unwrap().dedup;
    assert_eq!((caftl.sampling, caftl.sampling_unit.0), (Sampling::Off, 32));
    let ca_ssd = system("ca-ssd", &[]).unwrap().dedup;
    assert_eq!(
        (ca_ssd.sampling, ca_ssd.out_of_line),
        (Sampling::Off, false)
    );
}

#[test]
fn a_distribution_is_used_where_sizes_are_drawn_and_an_algorithm_where_bytes_are_encoded() {
    let keys = ["delta.mean=0.2", "compress.mean=0.4", "codec.algorithm=lz4"];
    for (ratio, unused) in [
        ("drawn", vec!["codec.algorithm"]),
        ("trace", vec!["delta.mean", "codec.algorithm"]),
        ("codec", vec!["delta.mean", "compress.mean"]),
    ] {
        let ratio = format!("codec.ratio={ratio}");
        let texts = [&keys[..], &[&ratio]].concat();
        let loaded = load_system("combined", &sets(&texts)).unwrap();
        assert_eq!(loaded.unused, unused, "{ratio}");
    }
}

#[test]
fn unknown_keys_are_named_with_line_and_nearest() {
    let error = device_error("base = \"auto\"\n\n[gc]\nlow_watermrak = 0.1\n", &[]);
    assert_eq!(
        error,
        "mine.toml:4: there is no key \"device.gc.low_watermrak\" (did you mean \"device.gc.low_watermark\"?)"
    );
    let error = device_error("capacity = \"4GiB\"\n", &[]);
    assert_eq!(
        error,
        "mine.toml:1: there is no key \"device.capacity\" (did you mean \"device.space.capacity\"?)"
    );
    assert!(device_error("bsae = \"auto\"\n", &[]).contains("did you mean \"device.base\"?"));
    assert!(device_error("[timings]\n", &[]).contains(
        "mine.toml:1: there is no key \"device.timings\" (did you mean \"device.timing\"?)"
    ));
    assert!(
        device_error("gc = 3\n", &[])
            .contains("device.gc: expected a table of keys, found a value")
    );
    assert!(
        device_error("[gc.policy]\nx = 1\n", &[])
            .contains("device.gc.policy: expected a value, found a table")
    );
    assert!(device_error("[[gc]]\n", &[]).contains("device.gc: expected"));
}

#[test]
fn wrong_values_say_what_was_expected() {
    let value = |line: &str| device_error(&format!("base = \"auto\"\n{line}\n"), &[]);
    let expect = |line: &str, message: &str| {
        let error = value(line);
        assert!(
            error.starts_with("mine.toml:2: device.") && error.contains(message),
            "{line}: {error}"
        );
    };
    expect(
        "timing.read = 25",
        "device.timing.read: expected a duration such as \"25us\"",
    );
    expect("timing.read = \"25 parsecs\"", "found \"25 parsecs\"");
    expect("timing.read = 2020-01-01", "found a datetime");
    expect(
        "timing.program = [\"1us\", 3]",
        "device.timing.program: expected a duration",
    );
    expect("timing.program = []", "found an empty list");
    expect(
        "timing.erase = \"2h\"",
        "device.timing.erase: expected at most one hour",
    );
    expect(
        "timing.program = [\"1us\", \"61min\"]",
        "device.timing.program: expected at most one hour",
    );
    expect(
        "timing.channel = \"publc\"",
        "unknown variant `publc`, expected `private` or `shared`",
    );
    expect(
        "timing.copyback = \"yes\"",
        "device.timing.copyback: invalid type: string \"yes\", expected a boolean",
    );
    expect(
        "geometry.channels = -1",
        "device.geometry.channels: invalid value: integer `-1`",
    );
    expect(
        "geometry.channels = 0",
        "device.geometry.channels: expected at least 1, found 0",
    );
    expect(
        "geometry.page_size = \"6KiB\"",
        "expected a power of two from 4KiB to 64KiB, found 6KiB",
    );
    expect("geometry.page_size = \"4GB\"", "units are binary");
    expect(
        "space.capacity = 4097",
        "expected a multiple of 4KiB above 0, found 4097",
    );
    expect(
        "layout.stripe = [\"die\", \"die\", \"plane\", \"channel\"]",
        "found no package",
    );
    expect(
        "layout.stripe = [\"die\"]",
        "device.layout.stripe: invalid length 1",
    );
    expect(
        "gc.low_watermark = 1.5",
        "a share of the pool's blocks below 1",
    );
    expect("energy.read_uj = -1", "not below 0");
    expect("energy.read_uj = inf", "expected a finite number");
    expect("auto.utilization = 0", "expected a share above 0");
    assert!(value("part = \"slc3\"").starts_with("mine.toml:2: there is no part named \"slc3\""));
}

#[test]
fn templates_list_every_name_that_a_value_can_have() {
    let templates = [
        (
            "device.",
            include_str!("../src/config/template/device.toml"),
        ),
        ("", include_str!("../src/config/template/system.toml")),
        ("host.", include_str!("../src/config/template/host.toml")),
    ];
    let mut choices = 0;
    for (kind, text) in templates {
        let (mut section, mut comment) = (String::new(), String::new());
        for line in text.lines() {
            if let Some(name) = line.strip_prefix('[') {
                section = format!("{}.", name.trim_end_matches(']'));
            }
            let Some((key, _)) = line.split_once(" = ").filter(|_| !line.starts_with('#')) else {
                comment += line;
                continue;
            };
            let settings = sets(&[&format!("{kind}{section}{key}=?")]);
            let errors = [
                load_device("auto", &settings).err(),
                load_system("plain", &settings).err(),
                load_host(&settings).err(),
            ];
            let error = errors.into_iter().flatten().map(|error| error.to_string());
            let error = error.collect::<String>();
            if let Some((_, names)) = error.split_once("unknown variant `?`, expected ") {
                choices += 1;
                for name in names.split('`').skip(1).step_by(2) {
                    let listed = comment.contains(&format!("{name:?}"));
                    assert!(listed, "{section}{key}: no {name:?} in {comment}");
                }
            }
            comment.clear();
        }
    }
    assert!(choices > 20, "{choices} keys with names");
}

#[test]
fn misspelt_values_come_before_contradictions() {
    let error = device(
        "auto",
        &["device.gc.policy=dchoices", "device.gc.choices=3"],
    )
    .unwrap_err()
    .to_string();
    assert!(
        error.contains(
            "unknown variant `dchoices`, expected one of `greedy`, `fifo`, `windowed-greedy`, `cost-benefit`, `d-choices`"
        ),
        "{error}"
    );
}

#[test]
fn devices_that_cannot_work_are_refused() {
    let error = |texts: &[&str]| device("ca-ssd-4g", texts).unwrap_err().to_string();
    assert!(error(&["device.capacity=4GiB"]).contains("4GiB exported of 4GiB raw leaves no block"));
    assert!(error(&["device.capacity=5GiB"]).contains("5GiB exported of 4GiB raw"));
    assert!(error(&["device.space.over_provisioning=0.03"]).contains(
        "collection could never free 102 of a pool's 2048 blocks: a full device leaves 61 spare"
    ));
    assert!(
        error(&["device.space.over_provisioning=1"]).contains("no mapping unit would be exported")
    );
    assert!(
        error(&["device.geometry.blocks_per_plane=4294967295"]).contains("expected at most 2^32")
    );
    assert!(
        error(&[
            "device.geometry.planes_per_die=4294967295",
            "device.geometry.blocks_per_plane=4294967295",
            "device.geometry.channels=4294967295"
        ])
        .contains("64 bits")
    );
}

#[test]
fn what_is_missing_is_named_with_the_way_out() {
    let error = device_error("[geometry]\nblocks_per_plane = 64\n", &[]);
    assert_eq!(
        error,
        "mine: device.geometry.pages_per_block is not set: give it, name a `part`, or start from a `base`"
    );
    let error = device_error("part = \"slc2\"\nspace.capacity = \"1GiB\"\n", &[]);
    assert!(
        error.starts_with(
            "mine: device.geometry.blocks_per_plane is not set: give it, or auto.utilization"
        ),
        "{error}"
    );
    let error = device_error("part = \"slc2\"\ngeometry.blocks_per_plane = 64\n", &[]);
    assert!(
        error.starts_with("mine: device.space.capacity is not set"),
        "{error}"
    );
    let error = device("tlc-1t", &["device.space.over_provisioning=0.1"])
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("tlc-1t: device.space.definition is not set"),
        "{error}"
    );
}

#[test]
fn a_device_becomes_a_template() {
    let set = "device.auto.utilization=0.5";
    let error = device("tlc-1t", &[set]).unwrap_err().to_string();
    assert_eq!(
        error,
        "tlc-1t: device.space.over_provisioning is not set: a template computes its raw size from it"
    );
    let template = device("ca-ssd-4g", &[set]).unwrap();
    assert_eq!(template.geometry.blocks_per_plane, None);
    let shape = auto_device(&template, 100_000).unwrap().shape().unwrap();
    assert!(
        (200_000..204_000).contains(&shape.exported_units),
        "{shape:?}"
    );
}

#[test]
fn names_that_do_not_exist() {
    let error = device("ca-ssd-4gb", &[]).unwrap_err().to_string();
    assert!(error.starts_with("there is no device named \"ca-ssd-4gb\" (did you mean \"ca-ssd-4g\"?); known are auto, "), "{error}");
    assert!(
        system("casd", &[])
            .unwrap_err()
            .to_string()
            .contains("there is no system")
    );
    assert!(
        device("none.toml", &[])
            .unwrap_err()
            .to_string()
            .starts_with("cannot read none.toml: ")
    );
    assert!(
        device("auto", &["device.part=tlcc"])
            .unwrap_err()
            .to_string()
            .starts_with(
                "--set device.part=tlcc: there is no part named \"tlcc\" (did you mean \"tlc\"?)"
            )
    );
    assert!(
        device_error("base = \"nothing\"\n", &[])
            .starts_with("mine.toml:1: there is no device named \"nothing\"; known are auto, ")
    );
    assert!(device_error("base = 3\n", &[]).contains("expected a name in quotes, found 3"));
    let error = device_error("[gc\n", &[]);
    assert!(
        error.starts_with("mine.toml is not valid TOML: ") && error.contains("line 1"),
        "{error}"
    );
}

#[test]
fn settings_of_a_policy_that_is_off_are_reported_not_refused() {
    let loaded = load_system(
        "plain",
        &sets(&["dedup.index_entries=1Ki", "dedup.oracle=true"]),
    )
    .unwrap();
    assert_eq!(loaded.unused, ["dedup.oracle", "dedup.index_entries"]);
    assert_eq!(
        loaded.config.dedup.index_entries,
        Entries::Limited(256 << 10),
        "the default"
    );
    assert!(!loaded.config.dedup.oracle, "the default");
    let loaded = load_system("ca-ssd", &sets(&["dedup.index_entries=unlimited"])).unwrap();
    assert_eq!(
        (loaded.config.dedup.index_entries, loaded.unused.len()),
        (Entries::Unlimited, 0)
    );
}

#[test]
fn hosts() {
    let host = load_host(&sets(&[])).unwrap().config;
    assert_eq!(
        (host.load(), host.limit),
        (Load::Open { time_scale: 1.0 }, None)
    );
    let host = load_host(&sets(&[
        "host.mode=closed",
        "host.queue_depth=32",
        "host.think_time=1ms",
        "host.limit=9",
    ]))
    .unwrap()
    .config;
    assert_eq!(host.mode, HostMode::Closed);
    assert_eq!(
        host.load(),
        Load::Closed {
            queue_depth: 32,
            think_time_ns: 1_000_000
        }
    );
    assert_eq!(host.limit, Some(9));
    let error = |text: &str| load_host(&sets(&[text])).unwrap_err().to_string();
    assert!(error("host.time_scale=0").contains("expected a factor above 0"));
    assert!(error("host.warmup=1").contains("expected a share below 1"));
    assert!(error("host.limit=-1").contains("host.limit"));
}

#[test]
fn a_template_is_sized_so_that_the_footprint_is_its_share() {
    let template = device("auto", &[]).unwrap();
    assert!(matches!(
        template.shape(),
        Err(ConfigError::Template { .. })
    ));
    for footprint in [5_000_u64, 21_491, 60_000, 1_000_000, 100_000_000] {
        let device = auto_device(&template, footprint).unwrap();
        let shape = device.shape().unwrap();
        let utilization = footprint as f64 / shape.exported_units as f64;
        assert!(utilization <= 0.8, "{footprint}: {utilization}");
        let slack = (shape.dies * shape.units_per_block) as f64 / shape.exported_units as f64;
        assert!(
            utilization > 0.8 * (1.0 - slack),
            "{footprint}: {utilization}"
        );
        assert!(shape.blocks_per_pool >= 54, "{footprint}: {shape:?}");
        assert!(device.auto.is_none());
    }
    assert_eq!(auto_device(&template, 60_000).unwrap().geometry.channels, 4);
    assert_eq!(auto_device(&template, 5_000).unwrap().geometry.channels, 2);
    let smallest = auto_device(&template, 0).unwrap();
    assert_eq!(smallest.shape().unwrap().blocks, 54);
    assert!(
        auto_device(&smallest, 9)
            .unwrap_err()
            .to_string()
            .contains("expected a template")
    );
    assert!(auto_device(&template, u64::MAX).is_err());
}

#[test]
fn a_template_with_a_capacity_exports_exactly_that() {
    let template = device("auto", &["device.capacity=1GiB"]).unwrap();
    assert!(template.space.over_provisioning.is_some());
    let sized = auto_device(&template, 7).unwrap();
    let shape = sized.shape().unwrap();
    assert_eq!(shape.exported_units, 1 << 18);
    let spare = 1.0 - shape.exported_units as f64 / shape.raw_units as f64;
    assert!((0.15..0.152).contains(&spare), "{spare}");
    assert_eq!(sized.space.over_provisioning, None);
}

#[test]
fn configurations_from_elsewhere_are_checked() {
    let settings = Settings::default();
    let good = RunConfig {
        device: device("agrawal-2008", &[]).unwrap(),
        system: system("ca-ssd", &[]).unwrap(),
        host: load_host(&settings).unwrap().config,
    };
    let json = serde_json::to_value(&good).unwrap();
    let read = |pointer: &str, value: serde_json::Value| {
        let mut json = json.clone();
        *json.pointer_mut(pointer).unwrap() = value;
        serde_json::from_value::<RunConfig>(json).unwrap().check()
    };
    assert!(read("/host/seed", 3.into()).is_ok());
    for (pointer, key) in [
        ("/device/geometry/channels", "device.geometry.channels"),
        (
            "/device/geometry/pages_per_block",
            "device.geometry.pages_per_block",
        ),
        ("/device/geometry/page_size", "device.geometry.page_size"),
        ("/system/dedup/index_entries", "dedup.index_entries"),
        ("/host/queue_depth", "host.queue_depth"),
    ] {
        let error = read(pointer, 0.into()).unwrap_err().to_string();
        assert!(
            error.starts_with(&format!("configuration: {key}: ")),
            "{error}"
        );
    }
    let mut broken = good.clone();
    broken.device.geometry.channels = 0;
    assert!(broken.device.shape().is_err());
    broken.device = device("auto", &[]).unwrap();
    assert!(matches!(broken.check(), Err(ConfigError::Template { .. })));
    broken.device.geometry.planes_per_die = 0;
    assert!(auto_device(&broken.device, 1000).is_err());
}

/// Keys of every type, and values that some of them take.
const KEYS: [&str; 22] = [
    "name",
    "part",
    "capacity",
    "auto.utilization",
    "geometry.channels",
    "geometry.blocks_per_plane",
    "geometry.pages_per_block",
    "geometry.page_size",
    "timing.read",
    "timing.program",
    "timing.channel",
    "timing.copyback",
    "energy.read_uj",
    "space.over_provisioning",
    "space.definition",
    "layout.stripe",
    "layout.pool",
    "layout.summary_page",
    "gc.policy",
    "gc.window",
    "gc.low_watermark",
    "precondition.fill",
];
const VALUES: [&str; 25] = [
    "0",
    "1",
    "2",
    "3000",
    "0.01",
    "0.3",
    "25%",
    "1.0",
    "4KiB",
    "16KiB",
    "1GiB",
    "40us",
    "[1us, 2ms]",
    "shared",
    "true",
    "raw",
    "exported",
    "plane",
    "device",
    "d-choices",
    "windowed-greedy",
    "slc1",
    "tlc",
    "[plane, die, channel, package]",
    "-1",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    /// Whatever is set, a device is refused with a sentence, or it prints as TOML that loads back,
    /// and its shape keeps its bounds.
    #[test]
    fn settings_are_refused_or_round_trip(
        base in prop::sample::select(device_presets()),
        choices in prop::collection::vec((prop::sample::select(&KEYS[..]), prop::sample::select(&VALUES[..])), 0..4),
        footprint in prop_oneof![0..100_000_u64, any::<u64>()],
    ) {
        let texts: Vec<String> = choices.iter().map(|(key, value)| format!("device.{key}={value}")).collect();
        match load_device(base.name, &Settings::parse(&texts).unwrap()) {
            Err(error) => prop_assert!(error.to_string().len() > 20),
            Ok(loaded) => {
                let (_dir, path) = file(&loaded.to_toml());
                prop_assert_eq!(&device(&path, &[]).unwrap(), &loaded.config, "{}", loaded.to_toml());
                let sized = match loaded.config.auto {
                    Some(_) => auto_device(&loaded.config, footprint),
                    None => Ok(loaded.config),
                };
                if let Ok(sized) = sized {
                    let shape = sized.shape().unwrap();
                    prop_assert!(shape.exported_units > 0 && shape.exported_units < shape.raw_units);
                    prop_assert!(shape.low_watermark <= shape.high_watermark);
                    prop_assert!(shape.high_watermark < shape.blocks_per_pool);
                    prop_assert_eq!(shape.pools * shape.blocks_per_pool, shape.blocks);
                }
            }
        }
    }

    #[test]
    fn any_text_is_refused_or_loaded(text in "(base = \"auto\"\n)?(\\[[a-z.]{0,4}\\]\n)?([a-z_.]{1,6} ?= ?[\"0-9a-z.\\[{]{0,5}\n){0,2}|.{0,20}") {
        let (_dir, path) = file(&text);
        let _ = device(&path, &[]);
        let _ = system(&path, &[]);
        let _ = Settings::parse(&[text]);
    }
}

#[test]
fn the_write_buffer_and_the_write_queue_are_off_and_their_values_are_checked() {
    let plain = device("ca-ssd-4g", &[]).unwrap();
    assert_eq!(plain.buffer.policy, BufferPolicy::None);
    let on = ["device.buffer.policy=slru", "device.buffer.size=10KiB"];
    let buffer = device("ca-ssd-4g", &on).unwrap().buffer;
    assert_eq!((buffer.pages(), buffer.protected.get()), (2, 0.5));
    let error = |texts: &[&str]| device("ca-ssd-4g", texts).unwrap_err().to_string();
    assert_eq!(
        error(&["device.buffer.policy=fifo", "device.buffer.size=4095"]),
        "--set device.buffer.size=4095: device.buffer.size: expected 4KiB, a page, to less than 16TiB, found 4095"
    );
    assert_eq!(
        error(&["device.buffer.policy=fifo", "device.buffer.size=16TiB"]),
        "--set device.buffer.size=16TiB: device.buffer.size: expected 4KiB, a page, to less than 16TiB, found 16TiB"
    );
    for texts in [
        ["device.buffer.policy=none", "device.buffer.size=1MiB"],
        ["device.buffer.policy=fifo", "device.buffer.protected=0.2"],
    ] {
        let error = error(&texts);
        assert!(
            error.contains("contradicts device.buffer.policy"),
            "{error}"
        );
    }
    assert!(!system("plain", &[]).unwrap().queue.enabled);
    let enabled = ["queue.enabled=true", "queue.bucket=64", "queue.ack=program"];
    assert_eq!(system("plain", &enabled).unwrap().queue.bucket.0, 64);
    for (text, said) in [
        (
            "queue.requests=0",
            "queue.requests: expected 1 to 2^32 - 1, found 0",
        ),
        (
            "queue.bucket=0",
            "queue.bucket: expected 1 to 2^32 - 1, found 0",
        ),
        (
            "queue.period=0",
            "queue.period: expected a duration above 0",
        ),
    ] {
        let error = system("plain", &["queue.enabled=true", text]).unwrap_err();
        assert!(error.to_string().contains(said), "{error}");
    }
    let sampled = ["queue.enabled=true", "dedup.sampling=request"];
    let error = system("ca-ssd", &sampled).unwrap_err().to_string();
    assert!(
        error.contains("queue.enabled") && error.contains("dedup.sampling"),
        "{error}"
    );
}
