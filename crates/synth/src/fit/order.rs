//! The runs of an epoch, drawn without replacement, class after class.
//!
//! The class of the next run is drawn from those that followed the classes of the last runs on the
//! trace, as often as they did: of as many runs as the fit knows of a sequel of which the epoch has a
//! run left. If there is none at all, it is drawn from all runs that are left.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;

use super::model::{Epoch, Following};
use super::run::{Class, Run};
use crate::draw::Draw;

/// Runs that are left, by class.
#[derive(Debug, Clone)]
pub(super) struct Order {
    /// What may follow classes: classes and how often they did.
    after: FxHashMap<Vec<u32>, Vec<(u32, u32)>>,
    /// Classes of the longest context.
    context: usize,
    bags: Vec<Vec<Run>>,
    left: usize,
    /// Classes of the last runs, the latest at the end.
    last: Vec<u32>,
}

impl Order {
    /// No run yet. `classes` numbers every class that will come, from 0.
    pub(super) fn new(classes: &BTreeMap<Class, u32>, following: &[Following]) -> Self {
        let mut after: FxHashMap<_, Vec<_>> = FxHashMap::default();
        let number = |class| classes.get(class).copied();
        for sequel in following {
            let before: Option<Vec<u32>> = sequel.before.iter().map(number).collect();
            // A class of no run is never drawn.
            if let (Some(before), Some(next)) = (before, number(&sequel.after)) {
                after.entry(before).or_default().push((next, sequel.count));
            }
        }
        Order {
            after,
            context: following.iter().map(|f| f.before.len()).max().unwrap_or(0),
            bags: vec![Vec::new(); classes.len()],
            left: 0,
            last: Vec::new(),
        }
    }

    /// Adds the runs of an epoch, each `scale` times as often as it occurs there.
    pub(super) fn fill(
        &mut self,
        epoch: &Epoch,
        classes: &BTreeMap<Class, u32>,
        scale: f64,
        draw: &mut Draw,
    ) {
        for run in &epoch.runs {
            let wanted = f64::from(run.count) * scale;
            let count = wanted as usize + usize::from(draw.chance(wanted.fract()));
            let bag = &mut self.bags[classes[&run.run.class()] as usize];
            bag.resize(bag.len() + count, run.run);
            self.left += count;
        }
    }

    /// Takes the next run; none when none is left.
    pub(super) fn take(&mut self, draw: &mut Draw) -> Option<Run> {
        if self.left == 0 {
            return None;
        }
        let class = self.follower(draw).unwrap_or_else(|| self.any(draw));
        let bag = &mut self.bags[class as usize];
        let at = draw.below(bag.len() as u32);
        self.left -= 1;
        self.last.push(class);
        if self.last.len() > self.context {
            self.last.remove(0);
        }
        Some(bag.swap_remove(at as usize))
    }

    fn follower(&self, draw: &mut Draw) -> Option<u32> {
        let contexts = (0..self.last.len()).map(|from| &self.last[from..]);
        contexts
            .filter_map(|context| self.after.get(context))
            .find_map(|after| self.drawn(after, draw))
    }

    /// One of these classes of which a run is left, as likely as it is frequent.
    fn drawn(&self, classes: &[(u32, u32)], draw: &mut Draw) -> Option<u32> {
        let there = |class: u32| !self.bags[class as usize].is_empty();
        let possible = || classes.iter().filter(|(class, _)| there(*class));
        let total: u64 = possible().map(|&(_, count)| u64::from(count)).sum();
        let mut at = (draw.unit() * total as f64) as u64;
        for &(class, count) in possible() {
            match at.checked_sub(u64::from(count)) {
                Some(rest) => at = rest,
                None => return Some(class),
            }
        }
        None
    }

    fn any(&self, draw: &mut Draw) -> u32 {
        let mut at = draw.below(self.left as u32) as usize;
        let class = self.bags.iter().position(|bag| {
            let here = at < bag.len();
            at = at.saturating_sub(bag.len());
            here
        });
        class.expect("a run is left") as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn epoch(lines: &[&str]) -> Epoch {
        Epoch {
            duration: flashlore_units::Nanos(0),
            runs: lines.iter().map(|line| line.parse().unwrap()).collect(),
        }
    }

    #[test]
    fn every_run_comes_once_and_classes_follow_one_another_as_counted() {
        let epoch = epoch(&["50 w 1 fresh new", "50 w 2 fresh new", "1 w 3 fresh new"]);
        let classes: BTreeMap<Class, u32> = epoch
            .runs
            .iter()
            .map(|run| run.run.class())
            .zip(0..)
            .collect();
        let after = |before: &str, after: &str| Following {
            count: 7,
            before: vec![before.into()],
            after: after.into(),
        };
        let chain = [
            after("w 1 fresh new", "w 2 fresh new"),
            after("w 2 fresh new", "w 1 fresh new"),
            after("w 3 fresh new", "w 1 fresh new"),
        ];
        let mut order = Order::new(&classes, &chain);
        let mut draw = Draw::new(3, 0);
        order.fill(&epoch, &classes, 1.0, &mut draw);
        let drawn: Vec<u32> = std::iter::from_fn(|| order.take(&mut draw))
            .map(|run| run.pages)
            .collect();
        assert_eq!(drawn.len(), 101);
        for pages in 1..=2 {
            assert_eq!(drawn.iter().filter(|&&p| p == pages).count(), 50);
        }
        // Only where a class runs out, one follows that does not otherwise.
        let broken = drawn.windows(2).filter(|pair| pair[0] == pair[1]).count();
        assert!(broken <= 1, "{drawn:?}");
    }

    #[test]
    fn long_contexts_decide_before_short_ones() {
        // After one run of class 1 either may come; after two of them only class 2.
        let epoch = epoch(&["40 w 1 fresh new", "20 w 2 fresh new"]);
        let classes: BTreeMap<Class, u32> = epoch
            .runs
            .iter()
            .map(|run| run.run.class())
            .zip(0..)
            .collect();
        let row = |before: &[&str], after: &str| Following {
            count: 1,
            before: before.iter().map(|&class| class.into()).collect(),
            after: after.into(),
        };
        let (one, two) = ("w 1 fresh new", "w 2 fresh new");
        let chain = [
            row(&[one], one),
            row(&[one], two),
            row(&[two], one),
            row(&[one, one], two),
            row(&[two, one], one),
        ];
        let mut order = Order::new(&classes, &chain);
        let mut draw = Draw::new(5, 0);
        order.fill(&epoch, &classes, 1.0, &mut draw);
        let drawn: String = std::iter::from_fn(|| order.take(&mut draw))
            .map(|run| run.pages.to_string())
            .collect();
        assert!(drawn.matches("112").count() >= 19, "{drawn}");
    }
}
