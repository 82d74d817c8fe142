//! Which instants outlive the window of old versions, as a configuration says it: `"1h:all,1d:1min,7d:1h"`.
//!
//! An age and, behind a colon, what stays up to it: `all` instants, or the multiples of a spacing. Ages rise,
//! and every spacing is a multiple of the one before.

use std::str::FromStr;

use flashlore_content::history::{Schedule, Tier};
use flashlore_units::Nanos;
use serde::{Deserialize, Serialize};

/// A schedule of retention, or none.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Retention {
    text: String,
    schedule: Option<Schedule>,
}

impl Retention {
    /// The schedule, in nanoseconds.
    pub fn schedule(&self) -> Option<&Schedule> {
        self.schedule.as_ref()
    }
}

impl FromStr for Retention {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let schedule = match text {
            "none" => None,
            _ => Some(parse(text)?),
        };
        Ok(Retention {
            text: text.to_owned(),
            schedule,
        })
    }
}

impl TryFrom<String> for Retention {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Retention> for String {
    fn from(retention: Retention) -> String {
        retention.text
    }
}

fn parse(text: &str) -> Result<Schedule, String> {
    let fail = |why: String| {
        format!("expected \"none\" or ages such as \"1h:all,1d:1min,7d:1h\", found {text:?}: {why}")
    };
    let time = |text: &str| {
        let time: Result<Nanos, _> = text.trim().parse();
        time.map(|time| time.0).map_err(|e| fail(e.to_string()))
    };
    let (mut exact, mut tiers) = (0, Vec::new());
    for (i, item) in text.split(',').enumerate() {
        let Some((age, what)) = item.split_once(':') else {
            return Err(fail(format!("{item:?} has no colon")));
        };
        let up_to = time(age)?;
        match what.trim() {
            "all" if i == 0 => exact = up_to,
            "all" => return Err(fail("`all` instants stay up to the first age alone".into())),
            spacing => {
                let spacing = time(spacing)?;
                tiers.push(Tier { up_to, spacing });
            }
        }
    }
    Schedule::new(exact, tiers).map_err(|error| fail(format!("{error} (in nanoseconds)")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    #[test]
    fn a_schedule_is_read_as_it_is_written() {
        let retention: Retention = "1h:all, 1d:1min,7d:1h".parse().unwrap();
        let schedule = retention.schedule().unwrap();
        assert_eq!(schedule.exact(), 3600 * S);
        let now = 400 * 3600 * S;
        let kept = [
            (61, true),
            (60 * 24 + 1, false),
            (60 * 25, true),
            (60 * 24 * 7 + 60, false),
        ];
        for (minutes, stays) in kept {
            assert_eq!(
                schedule.wants(now - minutes * 60 * S, now),
                stays,
                "{minutes}"
            );
        }
        assert_eq!(String::from(retention), "1h:all, 1d:1min,7d:1h");
        assert_eq!("none".parse::<Retention>().unwrap().schedule(), None);
        assert_eq!(
            "1d:1min"
                .parse::<Retention>()
                .unwrap()
                .schedule()
                .unwrap()
                .exact(),
            0
        );
    }

    #[test]
    fn what_cannot_be_kept_says_why() {
        let error = |text: &str| text.parse::<Retention>().unwrap_err();
        assert!(
            error("1h").contains("\"1h\" has no colon"),
            "{}",
            error("1h")
        );
        assert!(error("1h:1min,1d:all").contains("first age"));
        assert!(
            error("1h:all,1d:1").contains("unit"),
            "{}",
            error("1h:all,1d:1")
        );
        assert!(error("1h:1min,1d:90s").contains("multiple of"));
        assert!(error("1d:1us").contains("at most 65536"));
    }
}
