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
        include_str!("../../../papers/i-cash-control/experiment.toml"),
    ),
];

/// The paper of that name, or the one that a file describes, whose name ends with `.toml`.
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
    use std::fs;
    use std::path::Path;

    use crate::definition::{Claim, ClaimKind};

    use super::*;

    /// docs/reproduce.md promises these to --traces.
    #[test]
    fn the_traces_that_are_promised_are_known() {
        let known = |name: &str| {
            let paper = load(name).unwrap();
            let originals = paper.original.into_iter();
            originals
                .map(|(profile, file)| format!("{profile} {file}"))
                .collect::<Vec<_>>()
        };
        let of_umass = ["financial Financial1.spc"];
        let of_fiu = [
            "homes-7d homes*.blkparse",
            "mail cheetah*.blkparse",
            "web web*.blkparse",
        ];
        assert_eq!(known("ca-ssd"), [&of_umass[..], &of_fiu].concat());
        assert_eq!(
            known("delta-ftl"),
            ["f1 Financial1.spc", "f2 Financial2.spc"]
        );
        let bvssd = [
            "bvssd-financial1 Financial1.spc",
            "bvssd-websearch1 WebSearch1.spc",
        ];
        assert_eq!(known("bvssd"), bvssd);
    }

    /// A README tells the differences in the words of the definition. Where it does not, run this test with
    /// FLASHLORE_WRITE=1 in the environment: it writes them there.
    #[test]
    fn readmes_tell_the_differences_of_the_definitions() {
        let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../papers"));
        for (name, _) in PAPERS {
            let path = folder.join(name).join("README.md");
            let text = fs::read_to_string(&path).unwrap();
            let begin =
                "<!-- The differences of experiment.toml, which a test compares with it. -->";
            let from = text.find(begin).expect("a beginning") + begin.len();
            let to = from + text[from..].find("<!-- Their end. -->").expect("an end");
            let differences = load(name).unwrap().difference;
            let told: Vec<String> = differences
                .iter()
                .map(|d| format!("**{}** {}", d.title, d.text.trim_end()))
                .collect();
            let expected = format!("\n\n{}\n\n", told.join("\n\n"));
            if std::env::var_os("FLASHLORE_WRITE").is_some() {
                fs::write(&path, [&text[..from], &expected, &text[to..]].concat()).unwrap();
            } else {
                assert_eq!(&text[from..to], expected, "{name}");
            }
        }
    }

    /// Whoever has a paper beside the page must find each statement in it.
    #[test]
    fn claims_of_papers_quote_them_or_say_how_values_were_read() {
        for (name, _) in PAPERS {
            let paper = load(name).unwrap();
            let of_paper = |claim: &&Claim| claim.kind != ClaimKind::Ours;
            let claims: Vec<&Claim> = paper.claim.iter().filter(of_paper).collect();
            assert_eq!(
                paper.without_claim.is_empty(),
                claims.is_empty(),
                "{name}: figures and tables without a claim are named"
            );
            for claim in claims {
                assert!(
                    claim.quote.is_some() || !claim.reading.is_empty(),
                    "{name}: claim {} has neither a quotation nor a reading",
                    claim.id
                );
            }
        }
    }

    #[test]
    fn every_definition_says_what_a_quick_look_is() {
        for (name, _) in PAPERS {
            assert!(load(name).unwrap().quick.is_some(), "{name}");
        }
    }

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
