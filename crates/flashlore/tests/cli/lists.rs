//! `flashlore systems`, `flashlore devices` and the help of every command.

use crate::program::{Place, run};

#[test]
fn systems_and_devices_are_listed_and_printed() {
    let systems = run(&["systems"]).ok();
    assert!(systems.starts_with("plain ") && systems.contains("\nca-ssd "));
    assert!(systems.contains("\ncaftl "));
    let devices = run(&["devices"]).ok();
    for name in [
        "auto",
        "ca-ssd-4g",
        "ca-ssd-6g",
        "deltaftl-64g",
        "bvssd-60g",
        "agrawal-2008",
        "tlc-1t",
    ] {
        assert!(devices.lines().any(|line| line.starts_with(name)), "{name}");
        assert!(run(&["devices", name]).ok().contains("[geometry]"));
    }
    let text = run(&["systems", "ca-ssd"]).ok();
    assert!(text.contains("index_entries = \"256Ki\"") && text.contains("# "));
}

#[test]
fn what_is_printed_is_a_file_that_means_the_same() {
    let place = Place::new();
    let text = run(&["devices", "ca-ssd-4g", "--set", "device.capacity=3GiB"]).ok();
    place.write("small.toml", &text);
    assert_eq!(place.run(&["devices", "small.toml"]).ok(), text);
    assert!(text.contains("capacity = \"3GiB\""));
}

#[test]
fn lists_refuse_what_they_do_not_know() {
    let message = run(&["devices", "ca-ssd-4"]).fails(2);
    assert!(message.contains("did you mean \"ca-ssd-4g\"?"), "{message}");
    let message = run(&["systems", "plain", "--set", "dedup.index_entries=3"]).fails(2);
    assert!(message.contains("dedup.index_entries"), "{message}");
    assert_eq!(run(&["systems", "--set", "dedup.verify=true"]).code, 2);
    for (list, key) in [("systems", "host.seed"), ("devices", "dedup.verify")] {
        let name = if list == "systems" { "plain" } else { "auto" };
        let message = run(&[list, name, "--set", &format!("{key}=1")]).fails(2);
        assert!(
            message.contains(&format!("--set {key}: expected a key of a")),
            "{message}"
        );
    }
}

#[test]
fn every_command_has_help_with_an_example() {
    for command in [
        &[][..],
        &["demo"],
        &["compare"],
        &["simulate"],
        &["trace", "info"],
        &["trace", "convert"],
        &["systems"],
        &["devices"],
        &["rerun"],
    ] {
        let help = run(&[command, &["--help"]].concat()).ok();
        assert!(help.contains("Example"), "{command:?}: {help}");
        assert!(help.contains("Usage: flashlore"), "{help}");
    }
    assert!(run(&["--version"]).ok().starts_with("flashlore "));
}
