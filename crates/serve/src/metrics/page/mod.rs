//! The page for people: one answer without a build step, whose script asks `/metrics` again and again.
//!
//! | file | what it is |
//! |---|---|
//! | `page.html` | the document, with a mark where style and script go |
//! | `style.css` | how it looks |
//! | `samples.js` | the text format read, and what follows from two readings: rates and percentiles |
//! | `words.js` | numbers as people read them |
//! | `chart.js` | charts that move on, and bars |
//! | `parts.js` | what sections are made of |
//! | `requests.js`, `volume.js`, `array.js` | the sections: of whatever is served, of a volume, of an array |
//! | `sections.js` | which of them there are, the tiles above and every metric below |
//! | `main.js` | when it is asked, and what is said if no answer comes |
//!
//! Invariant: the policy lets nothing run or paint but the style and the script that are written here, and nothing be
//! asked but the server itself; whatever comes from metrics is text to the script.

use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use super::http::HttpAnswer;

const DOCUMENT: &str = include_str!("page.html");
const STYLE: &str = include_str!("style.css");
/// The parts of one module.
const SCRIPT: &str = concat!(
    include_str!("samples.js"),
    include_str!("words.js"),
    include_str!("chart.js"),
    include_str!("parts.js"),
    include_str!("requests.js"),
    include_str!("volume.js"),
    include_str!("array.js"),
    include_str!("sections.js"),
    include_str!("main.js"),
);
/// Where style and script go.
const MARKS: [&str; 2] = ["/* style.css */", "/* scripts */"];

static PAGE: LazyLock<String> = LazyLock::new(|| {
    DOCUMENT
        .replacen(MARKS[0], STYLE, 1)
        .replacen(MARKS[1], SCRIPT, 1)
});

static POLICY: LazyLock<String> = LazyLock::new(|| {
    let of = |text: &str| STANDARD.encode(Sha256::digest(text));
    format!(
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; connect-src 'self'; img-src data:; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        of(STYLE),
        of(SCRIPT)
    )
});

pub(super) fn answer() -> HttpAnswer {
    HttpAnswer {
        status: "200 OK",
        content_type: "text/html; charset=utf-8",
        policy: &POLICY,
        body: PAGE.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What stands between two texts, which come once.
    fn between<'a>(text: &'a str, begin: &str, end: &str) -> &'a str {
        let parts: Vec<&str> = text.split(begin).collect();
        let [_, rest] = parts[..] else {
            panic!("{begin} comes {} times", parts.len() - 1);
        };
        rest.split_once(end).expect(end).0
    }

    #[test]
    fn style_and_script_are_those_of_the_policy() {
        let answer = answer();
        assert_eq!(between(&answer.body, "<style>", "</style>"), STYLE);
        let script = between(&answer.body, "<script type=\"module\">", "</script>");
        assert_eq!(script, SCRIPT);
        // As `openssl dgst -sha256 -binary | base64` has it.
        let nothing = STANDARD.encode(Sha256::digest(""));
        assert_eq!(nothing, "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
        assert_eq!(answer.policy.matches("sha256-").count(), 2);
    }

    #[test]
    fn nothing_is_fetched_from_elsewhere_or_inserted_as_markup() {
        for part in [
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "style=\"",
        ] {
            assert!(!PAGE.contains(part), "{part}");
        }
        // Names of formats, which nobody fetches.
        let named = ["http://www.w3.org/2000/svg"];
        for address in PAGE
            .split("http")
            .skip(1)
            .filter(|rest| rest.starts_with("://") || rest.starts_with("s://"))
        {
            let address = format!("http{address}");
            assert!(
                named.iter().any(|name| address.starts_with(name)),
                "{:.60}",
                address
            );
        }
    }
}
