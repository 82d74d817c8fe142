//! Every combination of deduplication, encoding and history, behind every buffer, under every victim policy,
//! against a naive multi-version map.
//!
//! | module | what it is |
//! |---|---|
//! | [`draw`] | devices, settings and steps drawn at random |
//! | [`versions`] | the naive multi-version map |
//! | [`buffering`] | a buffer or a queue before the device |
//! | [`rig`] | a device, what stands before it, and what both should hold; the steps |
//! | [`events`] | how often each line of the conflict checklist happened |
//!
//! The short form calls `check()` after every operation. The long one is ignored unless asked for:
//! `cargo test --release -p flashlore-ftl --test model -- --ignored --nocapture` makes ten million operations
//! and prints the table of events. Of either form, `FLASHLORE_MODEL_OPERATIONS` changes the number of operations,
//! `FLASHLORE_MODEL_SEED` the seed, and `FLASHLORE_MODEL_ONLY` leaves out the combinations whose name does not contain
//! it. A failure prints its combination, the seed, and the smallest case it shrank to.

mod buffering;
#[path = "../common/mod.rs"]
mod common;
mod draw;
mod events;
mod rig;
mod versions;

use std::cell::RefCell;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use draw::{Case, Combination, cases};
use events::{EVENTS, Tally};
use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestError, TestRng, TestRunner};
use rig::Rig;

/// A number from the environment.
fn setting(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("{name} is {text:?}, expected a number")),
        Err(_) => default,
    }
}

/// The combinations that are asked for.
fn combinations() -> Vec<Combination> {
    let only = std::env::var("FLASHLORE_MODEL_ONLY").unwrap_or_default();
    let named = |c: &Combination| c.to_string().contains(&only);
    Combination::all().filter(named).collect()
}

/// Runs one case; what happened is added to the tally.
fn run(combination: &Combination, case: &Case, check_every: usize) -> Result<Tally, String> {
    let mut rig = Rig::new(combination, case);
    for (i, &step) in case.steps.iter().enumerate() {
        let context = |what: String| format!("step {i}, {step:?}: {what}");
        rig.step(step).map_err(context)?;
        if i % check_every == 0 {
            rig.check().map_err(context)?;
        }
    }
    rig.check()?;
    rig.compare_all()?;
    Ok(rig.into_tally())
}

/// At least so many operations of one combination.
fn drive(combination: &Combination, seed: u64, operations: u64, check_every: usize) -> Tally {
    let config = Config {
        failure_persistence: None,
        max_shrink_iters: Config::default().max_shrink_iters.min(20_000),
        max_shrink_time: 120_000,
        ..Config::default()
    };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    bytes[8..16].copy_from_slice(&u64::from(combination.number()).to_le_bytes());
    let random = TestRng::from_seed(RngAlgorithm::ChaCha, &bytes);
    let mut runner = TestRunner::new_with_rng(config, random);
    let tally = RefCell::new(Tally::default());
    let longest = operations.clamp(100, 8000) as usize;
    let strategy = cases(combination, longest);
    while tally.borrow().operations < operations {
        let tree = strategy
            .new_tree(&mut runner)
            .expect("every combination can be drawn");
        let outcome = runner.run_one(tree, |case| {
            let counted = run(combination, &case, check_every).map_err(TestCaseError::fail)?;
            tally.borrow_mut().add(&counted);
            Ok(())
        });
        match outcome {
            Ok(_) => {}
            Err(TestError::Fail(why, case)) => {
                panic!("{combination}, seed {seed}: {why}\nsmallest case: {case:?}")
            }
            Err(TestError::Abort(why)) => panic!("{combination}, seed {seed}: {why}"),
        }
    }
    tally.into_inner()
}

#[test]
fn every_combination_equals_the_list_of_versions() {
    let seed = setting("FLASHLORE_MODEL_SEED", 1);
    let each = setting("FLASHLORE_MODEL_OPERATIONS", 400_000) / Combination::all().count() as u64;
    let mut total = Tally::default();
    for combination in combinations() {
        total.add(&drive(&combination, seed, each, 1));
    }
    println!(
        "{} purges erased at once, {} found no room for it",
        total.erased, total.unerased
    );
    assert!(total.erased > 10 * total.unerased, "{total:?}");
    println!(
        "seed {seed}\n{}",
        total.table_of([("all".to_string(), &total)])
    );
}

/// What the long form found: packed old versions that may not go were packed anew in idle time for ever.
#[test]
fn background_collection_that_gains_nothing_ends() {
    const LIMIT: Duration = Duration::from_secs(300);
    let name = "dedup+delta+history QueueByPage Fifo";
    let found = Combination::all().find(|c| c.to_string() == name);
    let combination = found.expect("there is such a combination");
    let (done, ended) = mpsc::channel();
    std::thread::spawn(move || done.send(drive(&combination, 1, 1000, 1)));
    let tally = ended.recv_timeout(LIMIT);
    assert!(tally.is_ok(), "{name}, seed 1, did not end well: {tally:?}");
}

/// What the long form found: pages packed anew held live deltas beyond what may be, because what they were
/// emptied of held none.
#[test]
fn packing_anew_keeps_the_limit_of_packed_pages() {
    let found = Combination::all().find(|c| c.to_string() == "delta None DChoices(3)");
    let combination = found.expect("there is such a combination");
    drive(&combination, 2026, 50_000, 4);
}

/// What the long form found: the pages of one die needed more units than it has, while others had room.
#[test]
fn a_page_that_finds_no_room_in_its_die_lies_in_another() {
    let found = Combination::all().find(|c| c.to_string() == "delta+history None Greedy");
    let combination = found.expect("there is such a combination");
    drive(&combination, 2026, 100_000, 4);
}

#[test]
#[ignore = "ten million operations"]
fn ten_million_operations_reach_every_conflict() {
    let seed = setting("FLASHLORE_MODEL_SEED", 2026);
    let operations = setting("FLASHLORE_MODEL_OPERATIONS", 10_000_000);
    let each = operations.div_ceil(Combination::all().count() as u64);
    let start = Instant::now();
    let mut counted: Vec<(Combination, Tally)> = Vec::new();
    for combination in combinations() {
        // References of all kinds meet only where deltas and old versions do: there twice as many.
        let operations = each * (1 + u64::from(combination.delta && combination.history));
        let tally = drive(&combination, seed, operations, 4);
        assert!(tally.operations >= operations);
        counted.push((combination, tally));
    }
    let mut total = Tally::default();
    counted.iter().for_each(|(_, tally)| total.add(tally));
    // Rows of what differs in one respect, summed over the other.
    for name in [
        Combination::policies_and_buffering,
        Combination::policies_and_victims,
    ] {
        let mut rows: Vec<(String, Tally)> = Vec::new();
        for (combination, tally) in &counted {
            let name = name(combination);
            match rows.iter_mut().find(|row| row.0 == name) {
                Some(row) => row.1.add(tally),
                None => rows.push((name, tally.clone())),
            }
        }
        let rows = rows.iter().map(|(name, tally)| (name.clone(), tally));
        println!("{}", total.table_of(rows));
    }
    println!(
        "seed {seed}, {} operations of {} combinations, at least {each} each, in {:.0} s",
        total.operations,
        counted.len(),
        start.elapsed().as_secs_f64()
    );
    let is_whole = counted.len() == Combination::all().count();
    let least = if is_whole { operations / 10_000 } else { 0 };
    for event in EVENTS {
        let count = total.of(event);
        assert!(count >= least, "{event:?}: {count} times, expected {least}");
    }
}
