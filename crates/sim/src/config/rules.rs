//! Which keys exclude each other, which need another key's value, and which nothing can replace.
//!
//! A key of a higher layer silently replaces what it excludes in a lower one (`--set
//! device.capacity` over a preset's over-provisioning); two keys of the same layer, or a key
//! without the value it needs, are an error. A key that is not used reverts to its default, so
//! that equal behaviour has equal configuration.

use serde::Serialize;
use serde_json::{Value, json};

use super::apply::{Placed, Tree};
use super::array::ArrayKind;
use super::device::{BufferPolicy, CacheKey, GcCheck, GcPolicy};
use super::error::ConfigError;
use super::host::HostMode;
use super::layer::Origin;
use super::presets::PresetKind;
use super::system::{Base, Form, RatioFrom, Sampling};
use super::template::Template;

/// `keys` are used only while `control` has one of the values `needs`.
struct Condition {
    /// Keys, or `section.*` for all of a section but the control.
    keys: &'static [&'static str],
    control: &'static str,
    needs: Vec<Value>,
    /// Why using a key otherwise is an error. Without, the key is recorded as unused: the same `--set` may be meant
    /// for another of several systems.
    strict: Option<&'static str>,
}

/// As [`Condition`] says, with the values as configurations have them, so that their names stand in their types alone.
fn needs<T: Serialize>(
    control: &'static str,
    values: impl IntoIterator<Item = T>,
    keys: &'static [&'static str],
) -> Condition {
    Condition {
        keys,
        control,
        needs: values.into_iter().map(|value| json!(value)).collect(),
        strict: None,
    }
}

impl Condition {
    fn or_else(self, reason: &'static str) -> Self {
        Condition {
            strict: Some(reason),
            ..self
        }
    }

    fn rules(&self, key: &str) -> bool {
        let names = |pattern: &&str| match pattern.strip_suffix('*') {
            Some(section) => key.starts_with(section) && key != self.control,
            None => key == *pattern,
        };
        self.keys.iter().any(names)
    }
}

/// The conditions of a kind. A control stands before the keys that it rules, as what rules it does before it.
fn conditions(kind: PresetKind) -> Vec<Condition> {
    match kind {
        PresetKind::Device => device_conditions(),
        PresetKind::Host => host_conditions(),
        PresetKind::System => [system_conditions(), array_conditions()]
            .into_iter()
            .flatten()
            .collect(),
        PresetKind::Part => vec![],
    }
}

fn device_conditions() -> Vec<Condition> {
    let policy = |policy, keys| needs("gc.policy", [policy], keys);
    vec![
        policy(GcPolicy::DChoices, &["gc.choices"])
            .or_else("only policy \"d-choices\" draws blocks"),
        policy(GcPolicy::WindowedGreedy, &["gc.window"])
            .or_else("only policy \"windowed-greedy\" has a window"),
        needs("gc.check", [GcCheck::Dispatch], &["gc.on_reads"])
            .or_else("reads allocate nothing, so only check \"dispatch\" sees them"),
        needs(
            "buffer.policy",
            [BufferPolicy::Fifo, BufferPolicy::Slru],
            &["buffer.size"],
        )
        .or_else("policy \"none\" has no buffer"),
        needs("buffer.policy", [BufferPolicy::Slru], &["buffer.protected"])
            .or_else("only policy \"slru\" has segments"),
        needs(
            "read_cache.key",
            [CacheKey::Lpn, CacheKey::Value],
            &["read_cache.size"],
        )
        .or_else("key \"none\" has no cache"),
    ]
}

fn host_conditions() -> Vec<Condition> {
    let mode = |mode, keys| needs("mode", [mode], keys);
    vec![
        mode(HostMode::Closed, &["queue_depth"])
            .or_else("only mode \"closed\" keeps requests in flight"),
        mode(HostMode::Closed, &["think_time"])
            .or_else("only mode \"closed\" pauses between requests"),
        mode(HostMode::Open, &["time_scale"]).or_else("only mode \"open\" follows time stamps"),
    ]
}

fn system_conditions() -> Vec<Condition> {
    use RatioFrom::{Codec, Drawn, Trace};
    let section = |control, keys| needs(control, [true], keys);
    let form = |form, keys| needs("history.form", [form], keys);
    vec![
        section("dedup.enabled", &["dedup.*"]),
        needs(
            "dedup.sampling",
            [Sampling::Request],
            &["dedup.sampling_unit"],
        ),
        section("dedup.switch_off.enabled", &["dedup.switch_off.*"])
            .or_else("switching off is not enabled"),
        section("delta.enabled", &["delta.*", "codec.sketch_cycles"]),
        needs(
            "delta.base",
            [Base::Similar],
            &[
                "delta.base_entries",
                "delta.base_sharers",
                "codec.sketch_cycles",
            ],
        ),
        section("compress.enabled", &["compress.*"]),
        section("history.enabled", &["history.*"]),
        form(
            Form::Pages,
            &[
                "history.schedule",
                "history.sealed_before_window",
                "history.tier_bytes",
            ],
        ),
        form(Form::Parities, &["history.mean", "history.deviation"]),
        needs(
            "codec.ratio",
            [Drawn],
            &[
                "delta.mean",
                "delta.deviation",
                "history.mean",
                "history.deviation",
            ],
        ),
        needs(
            "codec.ratio",
            [Drawn, Trace],
            &["compress.mean", "compress.deviation"],
        ),
        needs("codec.ratio", [Codec], &["codec.algorithm"]),
        section("queue.enabled", &["queue.*"]),
    ]
}

/// Which keys of an array which kinds of array use.
fn array_conditions() -> Vec<Condition> {
    use ArrayKind::{DedupCache, ICash, LruCache, PureSsd, Raid0};
    let kinds = |kinds: &[ArrayKind], keys| needs("array.kind", kinds, keys);
    vec![
        kinds(
            &[ICash, PureSsd, Raid0, LruCache, DedupCache],
            &["array.background", "array.loaded", "array.machine_pages"],
        ),
        kinds(
            &[ICash, PureSsd, LruCache, DedupCache],
            &["array.read_uj", "array.write_uj"],
        ),
        kinds(
            &[ICash, Raid0, LruCache, DedupCache],
            &[
                "array.drive",
                "array.disks",
                "array.stripe",
                "array.scheduler",
                "array.write_cache",
                "array.disk_watts",
            ],
        ),
        kinds(
            &[ICash, LruCache, DedupCache],
            &["array.fast", "array.write_back"],
        ),
        kinds(&[LruCache, DedupCache], &["array.clean_ahead"]),
        kinds(
            &[ICash],
            &[
                "array.clones",
                "array.delta_ram",
                "array.virtual_blocks",
                "array.log",
                "array.scan_every",
                "array.scan_blocks",
                "array.positions",
                "array.tried",
                "array.delta_limit",
                "array.flush_blocks",
                "array.too_big",
                "array.similarity",
                "array.compression",
                "array.halve_heatmap",
                "array.fill",
                "array.data_ram",
                "array.early_answer",
                "array.unpack_all",
                "array.ordered",
                "array.algorithm",
                "array.encode_time",
                "array.decode_time",
                "array.signature_time",
            ],
        ),
        kinds(&[DedupCache], &["array.fingerprint_time"]),
    ]
}

/// Whether `key` is used, given the other values: what is not is not printed.
pub(super) fn is_used(
    kind: PresetKind,
    key: &str,
    value_of: impl Fn(&str) -> Option<Value>,
) -> bool {
    conditions(kind)
        .iter()
        .filter(|c| c.rules(key))
        .all(|c| value_of(c.control).is_some_and(|value| c.needs.contains(&value)))
}

/// Applies the rules of `template`'s kind to `tree`; returns the keys given by `--set` that this
/// configuration does not use.
pub(super) fn apply(template: &Template, tree: &mut Tree) -> Result<Vec<String>, ConfigError> {
    let mut unused = Vec::new();
    for condition in conditions(template.kind) {
        for key in template.keys().filter(|key| condition.rules(key)) {
            revert_unless_needed(template, tree, key, &condition, &mut unused)?;
        }
    }
    if template.kind == PresetKind::Device {
        exclude_in_device(tree)?;
    }
    Ok(unused)
}

fn revert_unless_needed(
    template: &Template,
    tree: &mut Tree,
    key: &str,
    condition: &Condition,
    unused: &mut Vec<String>,
) -> Result<(), ConfigError> {
    let (Some(placed), Some(control)) = (tree.get(key), tree.get(condition.control)) else {
        return Ok(());
    };
    if placed.rank == 0 || condition.needs.contains(&control.entry.value) {
        return Ok(());
    }
    if let Some(reason) = condition.strict
        && placed.rank >= control.rank
    {
        let other = condition.control;
        return Err(contradiction(
            key,
            placed,
            other,
            control,
            reason,
            template.kind,
        ));
    }
    if matches!(placed.entry.origin, Origin::Set { .. }) {
        unused.push(template.kind.full_key(key));
    }
    match template.default_of(key) {
        Some(default) => tree.insert(
            key.to_string(),
            Placed {
                entry: default.clone(),
                rank: 0,
            },
        ),
        None => tree.remove(key),
    };
    Ok(())
}

fn exclude_in_device(tree: &mut Tree) -> Result<(), ConfigError> {
    const SIZED: &str = "a template computes the blocks per plane";
    exclude(tree, "auto.utilization", "geometry.blocks_per_plane", SIZED)?;
    if !tree.contains_key("auto.utilization") {
        const SPACE: &str = "the exported size is given either itself or by the share kept back";
        // The two stand together: the newer speaks for both.
        let spare = ["space.over_provisioning", "space.definition"];
        let newest = spare
            .into_iter()
            .filter_map(|key| Some((tree.get(key)?.rank, key)))
            .max();
        if let Some((_, key)) = newest {
            exclude(tree, "space.capacity", key, SPACE)?;
        }
        if tree.contains_key("space.capacity") {
            for key in spare {
                tree.remove(key);
            }
        }
    }
    Ok(())
}

/// Of two keys that exclude each other, keeps the one of the higher layer.
fn exclude(tree: &mut Tree, a: &str, b: &str, reason: &'static str) -> Result<(), ConfigError> {
    let (Some(first), Some(second)) = (tree.get(a), tree.get(b)) else {
        return Ok(());
    };
    match first.rank.cmp(&second.rank) {
        std::cmp::Ordering::Less => tree.remove(a),
        std::cmp::Ordering::Greater => tree.remove(b),
        std::cmp::Ordering::Equal => {
            return Err(contradiction(
                b,
                second,
                a,
                first,
                reason,
                PresetKind::Device,
            ));
        }
    };
    Ok(())
}

fn contradiction(
    key: &str,
    placed: &Placed,
    other: &str,
    other_placed: &Placed,
    reason: &'static str,
    kind: PresetKind,
) -> ConfigError {
    let value = &other_placed.entry.value;
    ConfigError::Contradiction {
        origin: Box::new(placed.entry.origin.clone()),
        key: kind.full_key(key),
        other: format!("{} = {value}", kind.full_key(other)),
        other_origin: Box::new(other_placed.entry.origin.clone()),
        reason,
    }
}

/// Refuses a tree without a key that nothing can replace.
pub(super) fn require(template: &Template, tree: &Tree) -> Result<(), ConfigError> {
    const PART: &str = "give it, name a `part`, or start from a `base`";
    const SPACE: &str = "give it, or space.over_provisioning with space.definition";
    const BLOCKS: &str = "give it, or auto.utilization for a template";
    const DEFINITION: &str =
        "say what space.over_provisioning is a share of: \"exported\" or \"raw\"";
    const TEMPLATE: &str = "a template computes its raw size from it";
    const SHARE: &str = "space.definition says what it is a share of, and needs it";
    if template.kind != PresetKind::Device {
        return Ok(());
    }
    let has = |key: &str| tree.contains_key(key);
    let from_part = template.keys().filter(|key| {
        matches!(key.split_once('.'), Some(("geometry", key)) if key != "blocks_per_plane")
            || key.starts_with("timing.")
    });
    let mut missing: Vec<(&str, &'static str)> = from_part
        .filter(|key| !has(key))
        .map(|key| (key, PART))
        .collect();
    let rules = [
        (
            "geometry.blocks_per_plane",
            BLOCKS,
            !has("auto.utilization"),
        ),
        (
            "space.definition",
            DEFINITION,
            has("space.over_provisioning"),
        ),
        ("space.over_provisioning", TEMPLATE, has("auto.utilization")),
        ("space.over_provisioning", SHARE, has("space.definition")),
        ("space.capacity", SPACE, !has("space.over_provisioning")),
    ];
    missing.extend(
        rules
            .into_iter()
            .filter(|(key, _, needed)| *needed && !has(key))
            .map(|(key, hint, _)| (key, hint)),
    );
    let Some((key, hint)) = missing.first() else {
        return Ok(());
    };
    let name = tree
        .get("name")
        .and_then(|placed| placed.entry.value.as_str())
        .unwrap_or("");
    Err(ConfigError::Missing {
        name: name.to_string(),
        key: template.kind.full_key(key),
        hint,
    })
}
