//! One layer of configuration: a TOML text as a flat list of keys, values and places.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;

use serde_json::Value;
use toml_edit::{Document, Item, TableLike};

use super::error::ConfigError;
use super::template::Template;

/// Where a value was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Nowhere: it is the default.
    Default,
    /// In a value that was not loaded.
    Value,
    /// In a bundled preset or part set.
    Preset {
        name: String,
        /// Line, from 1.
        line: usize,
    },
    /// In a file of the user's.
    File {
        /// The file.
        path: PathBuf,
        /// Line, from 1.
        line: usize,
    },
    /// In a `--set` option.
    Set {
        /// The option's text.
        text: String,
    },
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::Value => f.write_str("configuration"),
            Self::Preset { name, line } => write!(f, "preset {name}, line {line}"),
            Self::File { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Set { text } => write!(f, "--set {text}"),
        }
    }
}

/// A value, where it was given, and the comment behind it.
#[derive(Debug, Clone)]
pub(super) struct LayerEntry {
    pub value: Value,
    pub origin: Origin,
    pub note: String,
}

/// The keys of one layer, in the order of the text.
pub(super) type Layer = Vec<(String, LayerEntry)>;

/// A TOML text and how to name places in it.
pub(super) struct TomlSource<'a> {
    /// For messages about the text as a whole.
    pub name: String,
    pub text: &'a str,
    /// Makes an origin of a line number.
    pub origin: &'a dyn Fn(usize) -> Origin,
}

impl TomlSource<'_> {
    fn origin_at(&self, span: Option<Range<usize>>) -> Origin {
        let start = span.map_or(0, |span| span.start).min(self.text.len());
        (self.origin)(
            1 + self.text.as_bytes()[..start]
                .iter()
                .filter(|b| **b == b'\n')
                .count(),
        )
    }

    /// The comment that follows a value on its line.
    fn note_after(&self, span: Option<Range<usize>>) -> String {
        let rest = span
            .and_then(|span| self.text.get(span.end..))
            .unwrap_or("");
        let line = rest.lines().next().unwrap_or("").trim_start();
        line.strip_prefix('#')
            .map_or_else(String::new, |comment| comment.trim().to_string())
    }
}

/// The keys of `source` by their full path, each known to `template`.
pub(super) fn flatten(source: &TomlSource, template: &Template) -> Result<Layer, ConfigError> {
    let document = parse(source)?;
    let mut layer = Vec::new();
    walk(source, template, document.as_table(), "", &mut layer)?;
    Ok(layer)
}

/// The keys of a template's own text, whose values define what is known.
pub(super) fn flatten_unchecked(source: &TomlSource) -> Result<Layer, ConfigError> {
    let document = parse(source)?;
    let mut layer = Vec::new();
    let template = Template::accepting_anything();
    walk(source, &template, document.as_table(), "", &mut layer)?;
    Ok(layer)
}

fn parse<'a>(source: &TomlSource<'a>) -> Result<Document<&'a str>, ConfigError> {
    Document::parse(source.text).map_err(|error| ConfigError::Syntax {
        name: source.name.clone(),
        message: error.to_string().trim_end().to_string(),
    })
}

fn walk(
    source: &TomlSource,
    template: &Template,
    table: &dyn TableLike,
    path: &str,
    layer: &mut Layer,
) -> Result<(), ConfigError> {
    for (name, item) in table.iter() {
        let key = if path.is_empty() {
            name.to_string()
        } else {
            format!("{path}.{name}")
        };
        let origin = source.origin_at(
            item.span()
                .or_else(|| table.key(name).and_then(|k| k.span())),
        );
        let inner = item.as_table_like();
        template.check_key(&key, inner.is_some(), &origin)?;
        match inner {
            Some(inner) => walk(source, template, inner, &key, layer)?,
            None => {
                let value = to_json(item).map_err(|message| ConfigError::Invalid {
                    origin: origin.clone(),
                    key: template.kind.full_key(&key),
                    message,
                })?;
                layer.push((
                    key,
                    LayerEntry {
                        value,
                        origin,
                        note: source.note_after(item.span()),
                    },
                ));
            }
        }
    }
    Ok(())
}

/// A TOML value as JSON. TOML's dates and lists of tables are values of no key.
fn to_json(item: &Item) -> Result<Value, String> {
    match item.as_value() {
        Some(value) => value_to_json(value),
        None => Err(format!("expected a value, found {}", item.type_name())),
    }
}

/// A TOML value as JSON, or a sentence about what has no counterpart.
pub(super) fn value_to_json(value: &toml_edit::Value) -> Result<Value, String> {
    match value {
        toml_edit::Value::String(text) => Ok(Value::from(text.value().as_str())),
        toml_edit::Value::Integer(number) => Ok(Value::from(*number.value())),
        toml_edit::Value::Float(number) if number.value().is_finite() => {
            Ok(Value::from(*number.value()))
        }
        toml_edit::Value::Boolean(flag) => Ok(Value::from(*flag.value())),
        toml_edit::Value::Array(items) => items.iter().map(value_to_json).collect(),
        toml_edit::Value::Float(number) => Err(format!(
            "expected a finite number, found {}",
            number.value()
        )),
        other => Err(format!(
            "expected a number, a text, true or false, or a list, found a {}",
            other.type_name()
        )),
    }
}
