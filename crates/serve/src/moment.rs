//! Texts that name instants.
//!
//! An instant is a number of nanoseconds since 1970. A text is the name of a snapshot or mark, with `snapshot:` or `mark:`
//! in front where both have it, `now`, a time such as
//! `2026-01-01T12:00:00Z`, a duration such as `10min ago`, or the number itself as `ns:1767268800000000000`.

use std::fmt;
use std::str::FromStr;

use flashlore_units::Nanos;
use jiff::Timestamp;

/// An instant as a number. What records of the control socket have of this type are instants in Python too.
pub type InstantNs = u64;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Moment {
    Now,
    At(u64),
    /// So many nanoseconds before the present.
    Ago(u64),
    /// A snapshot or the last mark of that name, whichever there is.
    Named(String),
    /// The snapshot of that name.
    Snapshot(String),
    /// The last mark of that name.
    Mark(String),
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "expected an instant such as \"10min ago\", \"2026-01-01T12:00:00Z\", \"now\" or the name of a snapshot, \
     found {found:?}{why}"
)]
pub struct ParseMomentError {
    found: String,
    why: String,
}

pub const LONGEST_NAME: usize = 64;

/// Whether a text may be the name of a snapshot or mark: letters, digits, `.`, `_`, `-`, no instant by itself.
pub fn is_name(text: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let starts = text.chars().next().is_some_and(|c| c.is_ascii_alphabetic());
    starts && text.len() <= LONGEST_NAME && text.chars().all(fits) && text != "now"
}

impl FromStr for Moment {
    type Err = ParseMomentError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let fail = |why: String| ParseMomentError {
            found: text.to_owned(),
            why,
        };
        let text = text.trim();
        if text == "now" {
            return Ok(Moment::Now);
        }
        // Before durations, which begin with a digit: "santiago" is a name.
        if is_name(text) {
            return Ok(Moment::Named(text.to_owned()));
        }
        if let Some(duration) = text.strip_suffix("ago") {
            let ago = duration.trim().parse::<Nanos>();
            return ago
                .map(|nanos| Moment::Ago(nanos.0))
                .map_err(|error| fail(format!(": {error}")));
        }
        if let Some(name) = text.strip_prefix("snapshot:").filter(|name| is_name(name)) {
            return Ok(Moment::Snapshot(name.to_owned()));
        }
        if let Some(name) = text.strip_prefix("mark:").filter(|name| is_name(name)) {
            return Ok(Moment::Mark(name.to_owned()));
        }
        if let Some(number) = text.strip_prefix("ns:") {
            let number = number.parse();
            return number.map(Moment::At).map_err(|_| fail(String::new()));
        }
        let time: Timestamp = text
            .parse()
            .map_err(|error: jiff::Error| fail(format!(": {error}")))?;
        let nanos = u64::try_from(time.as_nanosecond());
        nanos
            .map(Moment::At)
            .map_err(|_| fail(": it is not after 1970 and before 2554".to_owned()))
    }
}

/// An instant as people read it, exact to the nanosecond; parses back to the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Time(pub u64);

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Timestamp::from_nanosecond(i128::from(self.0)) {
            Ok(time) => write!(f, "{time}"),
            Err(_) => write!(f, "ns:{}", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn texts_name_instants() {
        let noon = 1_767_268_800_000_000_000;
        let cases = [
            ("now", Moment::Now),
            ("2026-01-01T12:00:00Z", Moment::At(noon)),
            ("2026-01-01T13:00:00+01:00", Moment::At(noon)),
            ("2026-01-01T12:00:00.000000007Z", Moment::At(noon + 7)),
            ("10min ago", Moment::Ago(600_000_000_000)),
            ("1.5h ago", Moment::Ago(5_400_000_000_000)),
            ("ns:12", Moment::At(12)),
            ("before-upgrade", Moment::Named("before-upgrade".into())),
            ("santiago", Moment::Named("santiago".into())),
            ("ago", Moment::Named("ago".into())),
            ("snapshot:a", Moment::Snapshot("a".into())),
            ("mark:a.b", Moment::Mark("a.b".into())),
            ("10minago", Moment::Ago(600_000_000_000)),
        ];
        for (text, moment) in cases {
            assert_eq!(text.parse(), Ok(moment), "{text}");
        }
        for text in [
            "",
            "10",
            "10 min",
            "min ago",
            "ns:",
            "ns:-1",
            "a b",
            "-a",
            "mark:",
            "snapshot:1",
            "1969-01-01T00:00:00Z",
        ] {
            let error = text.parse::<Moment>().unwrap_err().to_string();
            assert!(error.contains("10min ago"), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn a_time_parses_back(instant: u64) {
            prop_assert_eq!(Time(instant).to_string().parse(), Ok(Moment::At(instant)));
        }

        #[test]
        fn a_name_names_itself(text in "[a-zA-Z][a-zA-Z0-9._-]{0,10}(ago)?") {
            prop_assume!(is_name(&text));
            prop_assert_eq!(text.parse(), Ok(Moment::Named(text)));
        }

        #[test]
        fn no_text_is_a_panic(text: String) {
            let _ = text.parse::<Moment>();
        }
    }
}
