//! What is accepted and what is replayed, frozen by hash before results are looked at.
//!
//! `papers/frozen.toml` holds for each experiment the hash of what its claims accept, and of each profile it replays.
//! A change after a result needs a line in `[[change]]` with its reason; a test compares the hashes.

use std::collections::BTreeMap;
use std::fmt::Write;

use flashlore_synth::{load_profile, profile_hash};
use serde::Deserialize;

use crate::definition::{Paper, Requests, Row};
use crate::error::PaperError;

/// The file, as it comes with the program.
pub const FROZEN: &str = include_str!("../../../papers/frozen.toml");

#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Frozen {
    /// What the claims of each experiment accept.
    pub accepted: BTreeMap<String, String>,
    pub profile: BTreeMap<String, String>,
    #[serde(default)]
    pub change: Vec<Change>,
}

/// Something that was frozen and is another now.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// Day, as 2026-11-25.
    pub date: String,
    /// The experiment or the profile.
    pub what: String,
    pub because: String,
}

/// The hash of everything that a paper's claims accept: each number with its expressions and its range, in their order.
pub fn accepted(paper: &Paper) -> Result<String, PaperError> {
    let mut text = String::new();
    for claim in &paper.claim {
        for row in paper.rows(claim)? {
            let Row {
                name,
                aspect,
                measures,
                accept,
                standing,
                published,
                unit,
                instead_of: _,
            } = row;
            writeln!(
                text,
                "{}\t{:?}\tRow {{ name: {name:?}, aspect: {aspect:?}, measures: {measures:?}, accept: {accept:?}, \
                 standing: {standing:?}, published: {published:?}, unit: {unit:?} }}",
                claim.id, claim.kind
            )
            .expect("text takes everything");
        }
    }
    Ok(profile_hash(&text))
}

/// The hashes of the profiles that a paper replays.
pub fn profiles(paper: &Paper) -> Result<BTreeMap<String, String>, PaperError> {
    let mut found = BTreeMap::new();
    for workload in paper.workloads() {
        if let Requests::Profile(name) = &workload.requests {
            let (_, text) = load_profile(name)?;
            found.insert(name.clone(), profile_hash(&text));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets::{PAPERS, load};

    /// Run it to see the hashes of the present definitions: it prints them where they are others.
    #[test]
    fn frozen_ranges_and_profiles_are_those_that_are_used() {
        let mut now = Frozen {
            accepted: BTreeMap::new(),
            profile: BTreeMap::new(),
            change: Vec::new(),
        };
        for (name, _) in PAPERS {
            let paper = load(name).unwrap();
            now.accepted
                .insert((*name).to_owned(), accepted(&paper).unwrap());
            now.profile.extend(profiles(&paper).unwrap());
        }
        let frozen: Frozen = toml_edit::de::from_str(FROZEN).unwrap();
        let lines = |hashes: &BTreeMap<String, String>| {
            let line = |(name, hash): (&String, &String)| format!("{name} = \"{hash}\"\n");
            hashes.iter().map(line).collect::<String>()
        };
        assert!(
            (&now.accepted, &now.profile) == (&frozen.accepted, &frozen.profile),
            "papers/frozen.toml holds other hashes; put these there, and say why in [[change]]:\n[accepted]\n{}\n\
             [profile]\n{}",
            lines(&now.accepted),
            lines(&now.profile)
        );
    }

    #[test]
    fn a_changed_range_changes_the_hash_and_so_does_a_changed_profile_its_own() {
        let mut paper = load("ca-ssd").unwrap();
        let before = accepted(&paper).unwrap();
        let item = paper.claim.iter_mut().flat_map(|claim| &mut claim.item);
        let item = item
            .into_iter()
            .find(|item| item.tolerance.is_some())
            .unwrap();
        item.tolerance = item.tolerance.map(|by| by * 0.99);
        assert_ne!(accepted(&paper).unwrap(), before);
    }

    #[test]
    fn every_change_says_why() {
        let frozen: Frozen = toml_edit::de::from_str(FROZEN).unwrap();
        for change in frozen.change {
            let known = frozen.accepted.contains_key(&change.what)
                || frozen.profile.contains_key(&change.what);
            assert!(
                known && change.because.len() > 20 && change.date.len() == 10,
                "{change:?}"
            );
        }
    }
}
