//! Runs that end because the device is worn out.

use crate::common;

use common::{Uniform, config};
use flashlore_sim::engine::{RunError, RunOptions, simulate};

const PAGES: u32 = 4096;

/// A device of 96 blocks whose blocks are filled so often, and how it ends: request, bytes and
/// retired blocks.
fn life(endurance: u32, more: &[&str]) -> (u64, u64, u32) {
    let endurance = format!("device.geometry.endurance={endurance}");
    let mut settings = vec![
        "device.geometry.channels=1",
        "device.geometry.blocks_per_plane=96",
        "device.capacity=16MiB",
        "device.gc.low_watermark=2",
        "device.gc.high_watermark=2",
        &endurance,
    ];
    settings.extend(more);
    let config = config("ca-ssd-4g", "plain", &settings);
    let mut source = Uniform::new(10_000_000, PAGES, 0, 0);
    match simulate(&config, &mut source, RunOptions::default()) {
        Err(RunError::WornOut {
            request,
            bytes,
            retired,
            blocks,
            ..
        }) => {
            assert_eq!(blocks, 96);
            (request, bytes, retired)
        }
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("the device should have been worn out"),
    }
}

#[test]
fn the_life_of_a_device_is_counted_from_its_preparation_to_the_refused_write() {
    let (request, bytes, retired) = life(20, &[]);
    // Every request but the refused one wrote a page.
    assert_eq!(bytes, (request - 1) * 4096);
    assert!(retired > 15, "{retired}");
    // The fill costs no life, and the bound is what the blocks endure.
    let most = 20 * 96 * 64 * 4096;
    assert!(bytes < most && bytes > most / 3, "{bytes} of {most}");
    // A warm-up is part of the life.
    assert_eq!(life(20, &["host.warmup=0.001"]), (request, bytes, retired));
    let twice = life(40, &[]).1 as f64 / bytes as f64;
    assert!((twice - 2.0).abs() < 0.1, "{twice}");
}

#[test]
fn retired_blocks_are_in_the_results_of_a_device_that_lives_on() {
    let (end, ..) = life(20, &[]);
    let limit = format!("host.limit={}", end - 1);
    let settings = [
        "device.geometry.channels=1",
        "device.geometry.blocks_per_plane=96",
        "device.capacity=16MiB",
        "device.gc.low_watermark=2",
        "device.gc.high_watermark=2",
        "device.geometry.endurance=20",
        &limit,
    ];
    let config = config("ca-ssd-4g", "plain", &settings);
    let mut source = Uniform::new(end, PAGES, 0, 0);
    let run = simulate(&config, &mut source, RunOptions::default()).unwrap();
    assert!(run.result.flash.retired_blocks > 15);
    assert_eq!(run.result.host.write_pages, end - 1);
}
