//! Every request of the host gets one response, whatever becomes of its units on a device whose operations
//! wait for shared channels.

use crate::common;

use common::{Uniform, config};
use flashlore_sim::engine::{RunOptions, simulate};

/// Pages of 8 KiB on two busy channels, nearly full, so that collection comes between the decision about a write
/// and its program.
const DEVICE: [&str; 10] = [
    "device.timing.channel=shared",
    "device.timing.transfer=40us",
    "device.geometry.channels=2",
    "device.geometry.blocks_per_plane=48",
    "device.geometry.page_size=8KiB",
    "device.space.over_provisioning=15%",
    "host.time_scale=0.2",
    "host.warmup=0",
    "dedup.index_entries=unlimited",
    "dedup.oracle=false",
];

#[test]
fn every_request_gets_one_response() {
    for (system, more) in [
        ("ca-ssd", &[][..]),
        ("delta-ftl-letter", &[]),
        (
            "delta-ftl-letter",
            &["delta.hot_writes=0", "delta.hot_reads=16"],
        ),
        ("compress", &[]),
        ("combined", &["history.enabled=false"]),
        ("combined", &[]),
        ("combined", &["delta.scan_period=1s"]),
        ("bvssd", &[]),
    ] {
        let settings = [&DEVICE[..], more].concat();
        let config = config("ca-ssd-4g", system, &settings);
        let mut source = Uniform::new(40_000, 10_000, 3, 8_000);
        let run = simulate(&config, &mut source, RunOptions::default()).unwrap();
        let response = run.result.response_us;
        let count = response.read.count + response.write.count;
        assert_eq!(count, 40_000, "{system} {more:?}");
    }
}
