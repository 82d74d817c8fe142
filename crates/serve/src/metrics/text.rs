//! The text format of Prometheus, version 0.0.4: families of samples.
//!
//! Invariant: a family is begun once and its samples follow it.

use std::borrow::Cow;
use std::fmt::{Display, Write as _};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// It only grows, from the start of the server or of the volume on.
    Counter,
    /// It may fall.
    Gauge,
    Histogram,
}

#[derive(Debug, Default)]
pub struct Page {
    text: String,
    name: &'static str,
}

impl Page {
    /// Begins a family; `help` is one line without backslashes.
    pub fn family(&mut self, name: &'static str, kind: MetricKind, help: &str) -> &mut Self {
        let kind = match kind {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
        };
        self.name = name;
        // Writing to a text cannot fail.
        let _ = write!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
        self
    }

    /// A family of one sample without labels, which may fall.
    pub fn gauge(&mut self, name: &'static str, help: &str, value: impl Display) {
        self.family(name, MetricKind::Gauge, help)
            .sample("", &[], value);
    }

    /// The same of what only grows.
    pub fn counter(&mut self, name: &'static str, help: &str, value: impl Display) {
        self.family(name, MetricKind::Counter, help)
            .sample("", &[], value);
    }

    /// A sample with a label.
    pub fn of(&mut self, label: &str, is: &str, value: impl Display) -> &mut Self {
        self.sample("", &[(label, is)], value)
    }

    /// A sample of the family's name and a suffix.
    pub fn sample(
        &mut self,
        suffix: &str,
        labels: &[(&str, &str)],
        value: impl Display,
    ) -> &mut Self {
        let _ = write!(self.text, "{}{suffix}", self.name);
        for (number, (label, is)) in labels.iter().enumerate() {
            let before = if number == 0 { '{' } else { ',' };
            let _ = write!(self.text, "{before}{label}=\"{}\"", escaped(is));
        }
        let after = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.text, "{after} {value}");
        self
    }

    pub fn into_text(self) -> String {
        self.text
    }
}

/// The value of a label as the format demands it.
fn escaped(value: &str) -> Cow<'_, str> {
    if !value.contains(['\\', '"', '\n']) {
        return Cow::Borrowed(value);
    }
    let mut text = String::with_capacity(value.len() + 2);
    for letter in value.chars() {
        match letter {
            '\\' => text.push_str("\\\\"),
            '"' => text.push_str("\\\""),
            '\n' => text.push_str("\\n"),
            _ => text.push(letter),
        }
    }
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_label_may_not_hold_is_escaped() {
        let mut page = Page::default();
        page.family("flashlore_info", MetricKind::Gauge, "A name.")
            .of("name", "a \"b\" \\ c\nd", 1);
        let sample = page.into_text().lines().last().unwrap_or("").to_owned();
        assert_eq!(sample, r#"flashlore_info{name="a \"b\" \\ c\nd"} 1"#);
    }
}
