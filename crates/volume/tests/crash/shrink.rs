//! A failing scenario made small: operations are dropped while some cut or failing sync still shows
//! a broken promise, and damage is made simpler, or looked for elsewhere.

use std::sync::Arc;
use std::time::Instant;

use flashlore_medium::{SECTOR, Style};

use crate::crash::damage;
use crate::crash::scenario::{Generation, Scenario};
use crate::crash::search::Failure;
use crate::crash::session::Trouble;
use crate::support::strike::Strike;

/// Makes a scenario smaller until nothing more can be dropped or time is up. None if it does not fail.
pub fn shrink(scenario: Scenario, deadline: Instant) -> Option<Failure> {
    let mut best = fails(scenario)?;
    loop {
        let before = size(&best.scenario);
        drop_generations(&mut best);
        for index in 0..best.scenario.generations.len() {
            simplify_damage(&mut best, index, deadline);
        }
        for index in 0..best.scenario.generations.len() {
            drop_operations(&mut best, index, deadline);
        }
        if size(&best.scenario) == before || Instant::now() > deadline {
            return Some(best);
        }
    }
}

fn size(scenario: &Scenario) -> usize {
    let generations = &scenario.generations;
    generations.len()
        + generations
            .iter()
            .map(|generation| generation.ops.len())
            .sum::<usize>()
}

fn fails(scenario: Scenario) -> Option<Failure> {
    let how = scenario.play().err()?;
    Some(Failure { scenario, how })
}

fn drop_generations(best: &mut Failure) {
    let mut index = 0;
    while index < best.scenario.generations.len() {
        let mut candidate = best.scenario.clone();
        candidate.generations.remove(index);
        match fails(candidate) {
            Some(smaller) => *best = smaller,
            None => index += 1,
        }
    }
}

/// Does without the damage of a generation, or finds a simpler one.
fn simplify_damage(best: &mut Failure, index: usize, deadline: Instant) {
    let generation = &best.scenario.generations[index];
    if matches!(
        generation.damage,
        None | Some(Strike::Zero { len: SECTOR, .. })
    ) {
        return;
    }
    let with = |damage| Generation {
        damage,
        ..generation.clone()
    };
    let attempt = |damage| fails(replace(&best.scenario, index, with(damage)));
    let smaller = attempt(None).or_else(|| {
        let (before, image) = best.scenario.around(index)?;
        damage::simple(&image, &before)
            .into_iter()
            .take_while(|_| Instant::now() < deadline)
            .find_map(|strike| attempt(Some(strike)))
    });
    if let Some(smaller) = smaller {
        *best = smaller;
    }
}

/// Drops runs of operations of one generation, long runs first.
fn drop_operations(best: &mut Failure, index: usize, deadline: Instant) {
    let mut run = best.scenario.generations[index].ops.len();
    while run > 0 {
        let mut from = 0;
        while from < best.scenario.generations[index].ops.len() && Instant::now() < deadline {
            match without(&best.scenario, index, from, run, deadline) {
                Some(smaller) => *best = smaller,
                None => from += run,
            }
        }
        run /= 2;
    }
}

/// The scenario without `run` operations, if it still fails then at some call.
fn without(
    scenario: &Scenario,
    index: usize,
    from: usize,
    run: usize,
    deadline: Instant,
) -> Option<Failure> {
    let old = &scenario.generations[index];
    let to = old.ops.len().min(from + run);
    let ops: Arc<[_]> = [&old.ops[..from], &old.ops[to..]].concat().into();
    let generation = |trouble, (style, seed)| Generation {
        ops: Arc::clone(&ops),
        trouble,
        style,
        seed,
        damage: old.damage,
    };
    // What it strikes lies elsewhere, now that less was written.
    let attempt = |trouble, choice| {
        let candidate = replace(scenario, index, generation(trouble, choice));
        let (before, image) = match old.damage {
            Some(_) => candidate.around(index)?,
            None => return fails(candidate),
        };
        let strikes = damage::simple(&image, &before).into_iter();
        std::iter::once(old.damage)
            .chain(strikes.map(Some))
            .take_while(|_| Instant::now() < deadline)
            .find_map(|damage| {
                let mut candidate = candidate.clone();
                candidate.generations[index].damage = damage;
                fails(candidate)
            })
    };
    let (number, trouble): (u64, fn(u64) -> Trouble) = match old.trouble {
        Trouble::Never => return attempt(Trouble::Never, (old.style, old.seed)),
        Trouble::Cut(call) => (call, Trouble::Cut),
        Trouble::FailedSync(number) => (number, Trouble::FailedSync),
        Trouble::FailedRead(number) => (number, Trouble::FailedRead),
    };
    (1..=number)
        .rev()
        .take_while(|_| Instant::now() < deadline)
        .flat_map(|number| choices(old).map(move |choice| (number, choice)))
        .find_map(|(number, choice)| attempt(trouble(number), choice))
}

fn replace(scenario: &Scenario, index: usize, generation: Generation) -> Scenario {
    let mut candidate = scenario.clone();
    candidate.generations[index] = generation;
    candidate
}

/// Survivors worth trying: as before, none, all, and the same style with other seeds.
fn choices(old: &Generation) -> impl Iterator<Item = (Style, u64)> {
    let Generation { style, seed, .. } = *old;
    let fixed = [(style, seed), (Style::Nothing, 0), (Style::All, 0)];
    fixed
        .into_iter()
        .chain((0..4).map(move |seed| (style, seed)))
}
