//! Layers laid over each other: defaults, base, part set, preset or file, `--set`.
//!
//! A later layer wins key by key. A layer that names a part set has it directly beneath itself.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value};

use super::error::ConfigError;
use super::layer::{self, Layer, LayerEntry, Origin, TomlSource};
use super::presets::PresetKind;
use super::settings::Settings;
use super::template::Template;

/// A value and the number of the layer that gave it; layer 0 holds the defaults.
#[derive(Debug, Clone)]
pub(super) struct Placed {
    pub entry: LayerEntry,
    pub rank: usize,
}

/// All values by key.
pub(super) type Tree = BTreeMap<String, Placed>;

/// Lays the settings over the preset or file `name` over the defaults.
pub(super) fn merge(
    template: &Template,
    name: Option<&str>,
    settings: &Settings,
) -> Result<Tree, ConfigError> {
    let mut layers = vec![template.defaults()];
    if let Some(name) = name {
        expand_named(template, name, &mut layers)?;
    }
    push_with_part(settings.layer(template.kind).clone(), &mut layers)?;
    let mut tree = Tree::new();
    for (rank, layer) in layers.into_iter().enumerate() {
        for (key, entry) in layer {
            tree.insert(key, Placed { entry, rank });
        }
    }
    Ok(tree)
}

/// The layers of a preset by name, or of a file by path: anything that ends in `.toml` or has a
/// path separator, unless a preset has that name.
fn expand_named(
    template: &Template,
    name: &str,
    layers: &mut Vec<Layer>,
) -> Result<(), ConfigError> {
    let path = Path::new(name);
    let is_path = name.contains(std::path::MAIN_SEPARATOR) || name.ends_with(".toml");
    if is_path && template.kind.find_preset(name).is_none() {
        return expand_file(template, path, layers);
    }
    expand_preset(template, name, None, layers)
}

fn expand_file(
    template: &Template,
    path: &Path,
    layers: &mut Vec<Layer>,
) -> Result<(), ConfigError> {
    let text = std::fs::read_to_string(path).map_err(|source| ConfigError::Read {
        path: path.to_path_buf(),
        source,
    })?;
    let origin = |line| Origin::File {
        path: path.to_path_buf(),
        line,
    };
    let source = TomlSource {
        name: path.display().to_string(),
        text: &text,
        origin: &origin,
    };
    let stem = path
        .file_stem()
        .map_or_else(String::new, |stem| stem.to_string_lossy().into_owned());
    expand(template, &source, &stem, layers)
}

fn expand_preset(
    template: &Template,
    name: &str,
    named_at: Option<&Origin>,
    layers: &mut Vec<Layer>,
) -> Result<(), ConfigError> {
    let preset = template.kind.preset(name, named_at)?;
    let origin = |line| Origin::Preset {
        name: preset.name.to_string(),
        line,
    };
    let source = TomlSource {
        name: format!("preset {name}"),
        text: preset.text,
        origin: &origin,
    };
    expand(template, &source, preset.name, layers)
}

/// The layers of one text; without a `name` of its own it is called `default_name`.
fn expand(
    template: &Template,
    source: &TomlSource,
    default_name: &str,
    layers: &mut Vec<Layer>,
) -> Result<(), ConfigError> {
    let mut layer = layer::flatten(source, template)?;
    if let Some(at) = layer.iter().position(|(key, _)| key == "base") {
        let (key, entry) = layer.remove(at);
        expand_preset(
            template,
            text_of(&key, &entry)?,
            Some(&entry.origin),
            layers,
        )?;
    }
    if template.has_key("name") && !layer.iter().any(|(key, _)| key == "name") {
        let entry = LayerEntry {
            value: Value::from(default_name),
            origin: Origin::Default,
            note: String::new(),
        };
        layer.push(("name".to_string(), entry));
    }
    push_with_part(layer, layers)
}

/// Adds `layer`, and beneath it the part set that it names.
fn push_with_part(layer: Layer, layers: &mut Vec<Layer>) -> Result<(), ConfigError> {
    if let Some((key, entry)) = layer.iter().rfind(|(key, _)| key == "part") {
        layers.push(part_layer(text_of(key, entry)?, &entry.origin)?);
    }
    layers.push(layer);
    Ok(())
}

/// The figures of the part set `name`, as keys of a device.
fn part_layer(name: &str, named_at: &Origin) -> Result<Layer, ConfigError> {
    let preset = PresetKind::Part.preset(name, Some(named_at))?;
    let origin = |line| Origin::Preset {
        name: name.to_string(),
        line,
    };
    let source = TomlSource {
        name: format!("part {name}"),
        text: preset.text,
        origin: &origin,
    };
    let mut layer = layer::flatten(&source, &Template::of(PresetKind::Part))?;
    layer.retain(|(key, _)| key.contains('.'));
    Ok(layer)
}

fn text_of<'a>(key: &str, entry: &'a LayerEntry) -> Result<&'a str, ConfigError> {
    entry.value.as_str().ok_or_else(|| ConfigError::Invalid {
        origin: entry.origin.clone(),
        key: key.to_string(),
        message: format!("expected a name in quotes, found {}", entry.value),
    })
}

/// The tree as nested JSON objects, ready to become a typed value.
pub(super) fn nest(tree: &Tree) -> Value {
    let mut root = Map::new();
    for (key, placed) in tree {
        let mut table = &mut root;
        let mut parts = key.split('.').peekable();
        while let Some(part) = parts.next() {
            if parts.peek().is_none() {
                table.insert(part.to_string(), placed.entry.value.clone());
                break;
            }
            let below = table
                .entry(part)
                .or_insert_with(|| Value::Object(Map::new()));
            match below {
                Value::Object(map) => table = map,
                // Templates have no key that is both value and section.
                _ => break,
            }
        }
    }
    Value::Object(root)
}
