//! The papers that come with the program.

use crate::definition::Paper;
use crate::error::PaperError;

/// Names and definitions.
pub const PAPERS: &[(&str, &str)] = &[
    (
        "ca-ssd",
        include_str!("../../../papers/ca-ssd/experiment.toml"),
    ),
    (
        "delta-ftl",
        include_str!("../../../papers/delta-ftl/experiment.toml"),
    ),
    (
        "bvssd",
        include_str!("../../../papers/bvssd/experiment.toml"),
    ),
    (
        "combined",
        include_str!("../../../papers/combined/experiment.toml"),
    ),
    (
        "i-cash",
        include_str!("../../../papers/i-cash/experiment.toml"),
    ),
    (
        "i-cash-control",
        include_str!("../../../papers/i-cash/control.toml"),
    ),
];

/// The paper of that name, or the one that a file describes, whose name ends with `.toml`.
///
/// # Errors
/// When there is none, or a file that cannot be read or used.
pub fn load(name: &str) -> Result<Paper, PaperError> {
    if name.ends_with(".toml") {
        let text = std::fs::read_to_string(name).map_err(|source| PaperError::File {
            path: name.to_owned(),
            source,
        })?;
        return Paper::parse(name, &text);
    }
    match PAPERS.iter().find(|(known, _)| *known == name) {
        Some((name, text)) => Paper::parse(name, text),
        None => {
            let known: Vec<&str> = PAPERS.iter().map(|(name, _)| *name).collect();
            Err(PaperError::Unknown {
                name: name.to_owned(),
                known: known.join(", "),
            })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_definition_is_sound() {
        for (name, _) in PAPERS {
            let paper = load(name).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(paper.name, *name);
        }
    }

    #[test]
    fn an_unknown_paper_is_refused_with_the_known_ones() {
        let error = load("ca-sdd").unwrap_err().to_string();
        assert_eq!(
            error,
            "there is no experiment 'ca-sdd'; expected one of ca-ssd, delta-ftl, bvssd, combined, \
             i-cash, i-cash-control"
        );
    }
}
