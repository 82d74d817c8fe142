//! A loaded configuration as commented TOML, which loads back to the same values.

use serde_json::Value;
use toml_edit::{DocumentMut, Item, Table};

use super::load::{Checked, Loaded};
use super::rules;
use super::template::Template;

#[expect(private_bounds, reason = "the loadable kinds are closed")]
impl<T: Checked> Loaded<T> {
    /// Every key that is in use with its meaning above it and, behind it, the comment that the
    /// preset or file gives: the source of the value. Keys not in use are left out, and defaults
    /// are written like any other value.
    pub fn to_toml(&self) -> String {
        let template = Template::of(T::KIND);
        // Both are bundled or checked: serialising plain structs and parsing a tested text.
        let values = serde_json::to_value(&self.config).expect("a configuration is plain data");
        let mut document: DocumentMut = T::KIND
            .template()
            .parse()
            .expect("bundled template is valid TOML");
        let value_of = |key: &str| {
            values
                .pointer(&format!("/{}", key.replace('.', "/")))
                .cloned()
        };
        for key in template.keys() {
            let value = value_of(key).filter(|value| *value != "");
            let value = value.filter(|_| rules::is_used(T::KIND, key, value_of));
            let note = self.origins.get(key).map_or("", |(_, note)| note);
            assign(
                document.as_table_mut(),
                key,
                value.as_ref().map(to_toml),
                note,
            );
        }
        document.to_string()
    }
}

/// Gives the key at `path` a value and the comment behind it, or removes it, and its table when
/// nothing is left there.
fn assign(table: &mut Table, path: &str, value: Option<toml_edit::Value>, note: &str) {
    if let Some((section, rest)) = path.split_once('.') {
        if let Some(inner) = table.get_mut(section).and_then(Item::as_table_mut) {
            assign(inner, rest, value, note);
            if inner.is_empty() {
                table.remove(section);
            }
        }
        return;
    }
    match value {
        Some(mut value) => {
            let suffix = if note.is_empty() {
                String::new()
            } else {
                format!("  # {note}")
            };
            value.decor_mut().set_prefix(" ");
            value.decor_mut().set_suffix(suffix);
            // In place: an insertion would lose the comments above the key.
            if let Some(item) = table.get_mut(path) {
                *item = Item::Value(value);
            }
        }
        None => {
            table.remove(path);
        }
    }
}

fn to_toml(value: &Value) -> toml_edit::Value {
    match value {
        Value::Bool(flag) => (*flag).into(),
        Value::Number(number) => match number.as_i64() {
            Some(integer) => integer.into(),
            None => number.as_f64().unwrap_or(f64::NAN).into(),
        },
        Value::String(text) => text.as_str().into(),
        Value::Array(items) => items
            .iter()
            .map(to_toml)
            .collect::<toml_edit::Array>()
            .into(),
        // The templates have neither: absent keys are not serialised, sections are walked by key.
        Value::Null | Value::Object(_) => "".into(),
    }
}
