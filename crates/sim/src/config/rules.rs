//! Which keys exclude each other, which need another key's value, and which nothing can replace.
//!
//! A key of a higher layer silently replaces what it excludes in a lower one (`--set
//! device.capacity` over a preset's over-provisioning); two keys of the same layer, or a key
//! without the value it needs, are an error. A key that is not used reverts to its default, so
//! that equal behaviour has equal configuration.

use serde_json::{Value, json};

use super::apply::{Placed, Tree};
use super::error::ConfigError;
use super::layer::Origin;
use super::presets::Kind;
use super::template::Template;

/// `key` is used only while `control` has one of the values `needs`.
struct Condition {
    key: &'static str,
    control: &'static str,
    needs: Vec<Value>,
    reason: &'static str,
    /// Whether using the key otherwise is an error; if not, it is recorded as unused: the same
    /// `--set` may be meant for another of several systems.
    strict: bool,
}

fn conditions(kind: Kind) -> Vec<Condition> {
    let strict_any = |key, control, needs, reason| Condition {
        key,
        control,
        needs,
        reason,
        strict: true,
    };
    let strict = |key, control, needs, reason| strict_any(key, control, vec![needs], reason);
    match kind {
        Kind::Device => vec![
            strict(
                "gc.choices",
                "gc.policy",
                json!("d-choices"),
                "only policy \"d-choices\" draws blocks",
            ),
            strict(
                "gc.window",
                "gc.policy",
                json!("windowed-greedy"),
                "only policy \"windowed-greedy\" has a window",
            ),
            strict(
                "gc.on_reads",
                "gc.check",
                json!("dispatch"),
                "reads allocate nothing, so only check \"dispatch\" sees them",
            ),
            strict_any(
                "buffer.size",
                "buffer.policy",
                vec![json!("fifo"), json!("slru")],
                "policy \"none\" has no buffer",
            ),
            strict(
                "buffer.protected",
                "buffer.policy",
                json!("slru"),
                "only policy \"slru\" has segments",
            ),
            strict_any(
                "read_cache.size",
                "read_cache.key",
                vec![json!("lpn"), json!("value")],
                "key \"none\" has no cache",
            ),
        ],
        Kind::Host => vec![
            strict(
                "queue_depth",
                "mode",
                json!("closed"),
                "only mode \"closed\" keeps requests in flight",
            ),
            strict(
                "think_time",
                "mode",
                json!("closed"),
                "only mode \"closed\" pauses between requests",
            ),
            strict(
                "time_scale",
                "mode",
                json!("open"),
                "only mode \"open\" follows time stamps",
            ),
        ],
        Kind::System => {
            let part = |key, control| Condition {
                key,
                control,
                needs: vec![json!(true)],
                reason: "",
                strict: false,
            };
            let dedup = |key| part(key, "dedup.enabled");
            let queue = |key| part(key, "queue.enabled");
            let history = |key| part(key, "history.enabled");
            let parities = |key| Condition {
                needs: vec![json!("parities")],
                ..part(key, "history.form")
            };
            let pages = |key| Condition {
                needs: vec![json!("pages")],
                ..part(key, "history.form")
            };
            let delta = |key| part(key, "delta.enabled");
            let similar = |key| Condition {
                needs: vec![json!("similar")],
                ..part(key, "delta.base")
            };
            let compress = |key| part(key, "compress.enabled");
            let ratio = |key, from: &[&str]| Condition {
                key,
                control: "codec.ratio",
                needs: from.iter().map(|from| json!(from)).collect(),
                reason: "",
                strict: false,
            };
            let off = |key| {
                strict(
                    key,
                    "dedup.switch_off.enabled",
                    json!(true),
                    "switching off is not enabled",
                )
            };
            vec![
                dedup("dedup.oracle"),
                dedup("dedup.index_entries"),
                dedup("dedup.hash_time"),
                dedup("dedup.digest"),
                dedup("dedup.verify"),
                dedup("dedup.fingerprint_bits"),
                dedup("dedup.prefill_in_index"),
                dedup("dedup.sampling"),
                dedup("dedup.sampling_unit"),
                dedup("dedup.out_of_line"),
                dedup("dedup.prefetch"),
                dedup("dedup.switch_off.enabled"),
                dedup("dedup.switch_off.window"),
                dedup("dedup.switch_off.windows"),
                dedup("dedup.switch_off.sample"),
                Condition {
                    key: "dedup.sampling_unit",
                    control: "dedup.sampling",
                    needs: vec![json!("request")],
                    reason: "",
                    strict: false,
                },
                off("dedup.switch_off.window"),
                off("dedup.switch_off.windows"),
                off("dedup.switch_off.sample"),
                delta("delta.hot_writes"),
                delta("delta.hot_reads"),
                delta("delta.scan_period"),
                delta("delta.counted_pages"),
                delta("delta.protected"),
                delta("delta.lambda"),
                delta("delta.pinned"),
                delta("delta.base"),
                delta("delta.base_entries"),
                delta("delta.base_sharers"),
                similar("delta.base_entries"),
                similar("delta.base_sharers"),
                delta("codec.sketch_cycles"),
                similar("codec.sketch_cycles"),
                delta("delta.mean"),
                delta("delta.deviation"),
                ratio("delta.mean", &["drawn"]),
                ratio("delta.deviation", &["drawn"]),
                compress("compress.mean"),
                compress("compress.deviation"),
                ratio("compress.mean", &["drawn", "trace"]),
                ratio("compress.deviation", &["drawn", "trace"]),
                ratio("codec.algorithm", &["codec"]),
                history("history.min_window"),
                history("history.on_pressure"),
                history("history.reserve"),
                history("history.entries"),
                history("history.field_time"),
                history("history.form"),
                pages("history.schedule"),
                pages("history.sealed_before_window"),
                history("history.sealed_before_window"),
                pages("history.tier_bytes"),
                history("history.schedule"),
                history("history.tier_bytes"),
                parities("history.mean"),
                parities("history.deviation"),
                ratio("history.mean", &["drawn"]),
                ratio("history.deviation", &["drawn"]),
                queue("queue.requests"),
                queue("queue.bucket"),
                queue("queue.ack"),
                queue("queue.period"),
            ]
            .into_iter()
            .chain(array_conditions())
            .collect()
        }
        Kind::Part => vec![],
    }
}

/// Which keys of an array which kinds of array use.
fn array_conditions() -> impl Iterator<Item = Condition> {
    const ALL: &[&str] = &["i-cash", "pure-ssd", "raid0", "lru-cache", "dedup-cache"];
    const WITH_SSD: &[&str] = &["i-cash", "pure-ssd", "lru-cache", "dedup-cache"];
    const WITH_DISKS: &[&str] = &["i-cash", "raid0", "lru-cache", "dedup-cache"];
    const WITH_POOL: &[&str] = &["i-cash", "lru-cache", "dedup-cache"];
    const CACHES: &[&str] = &["lru-cache", "dedup-cache"];
    const CODED: &[&str] = &["i-cash"];
    const HASHED: &[&str] = &["dedup-cache"];
    let keys: [(&[&str], &[&'static str]); 7] = [
        (
            ALL,
            &["array.background", "array.loaded", "array.machine_pages"],
        ),
        (WITH_SSD, &["array.read_uj", "array.write_uj"]),
        (
            WITH_DISKS,
            &[
                "array.drive",
                "array.disks",
                "array.stripe",
                "array.scheduler",
                "array.write_cache",
                "array.disk_watts",
            ],
        ),
        (WITH_POOL, &["array.fast", "array.write_back"]),
        (CACHES, &["array.clean_ahead"]),
        (
            CODED,
            &[
                "array.clones",
                "array.delta_ram",
                "array.virtual_blocks",
                "array.log",
                "array.scan_every",
                "array.scan_blocks",
                "array.positions",
                "array.delta_limit",
                "array.flush_blocks",
                "array.too_big",
                "array.similarity",
                "array.compression",
                "array.halve_heatmap",
                "array.lazy_fill",
                "array.unpack_all",
                "array.ordered",
                "array.algorithm",
                "array.encode_time",
                "array.decode_time",
                "array.signature_time",
            ],
        ),
        (HASHED, &["array.fingerprint_time"]),
    ];
    let conditions = keys.map(|(kinds, keys)| {
        let needs: Vec<Value> = kinds.iter().map(|kind| json!(kind)).collect();
        let condition = move |&key: &&'static str| Condition {
            key,
            control: "array.kind",
            needs: needs.clone(),
            reason: "",
            strict: false,
        };
        keys.iter().map(condition).collect::<Vec<_>>()
    });
    conditions.into_iter().flatten()
}

/// Whether `key` is used, given the other values: what is not is not printed.
pub(super) fn is_used(kind: Kind, key: &str, value_of: impl Fn(&str) -> Option<Value>) -> bool {
    conditions(kind)
        .iter()
        .filter(|c| c.key == key)
        .all(|c| value_of(c.control).is_some_and(|value| c.needs.contains(&value)))
}

/// Applies the rules of `template`'s kind to `tree`; returns the keys given by `--set` that this
/// configuration does not use.
pub(super) fn apply(template: &Template, tree: &mut Tree) -> Result<Vec<String>, ConfigError> {
    let mut unused = Vec::new();
    for condition in conditions(template.kind) {
        revert_unless_needed(template, tree, &condition, &mut unused)?;
    }
    if template.kind == Kind::Device {
        exclude_in_device(tree)?;
    }
    Ok(unused)
}

fn revert_unless_needed(
    template: &Template,
    tree: &mut Tree,
    condition: &Condition,
    unused: &mut Vec<String>,
) -> Result<(), ConfigError> {
    let (Some(placed), Some(control)) = (tree.get(condition.key), tree.get(condition.control))
    else {
        return Ok(());
    };
    if placed.rank == 0 || condition.needs.contains(&control.entry.value) {
        return Ok(());
    }
    if condition.strict && placed.rank >= control.rank {
        return Err(contradiction(
            condition.key,
            placed,
            condition.control,
            control,
            condition.reason,
            template.kind,
        ));
    }
    if matches!(placed.entry.origin, Origin::Set { .. }) {
        unused.push(template.kind.full_key(condition.key));
    }
    match template.default_of(condition.key) {
        Some(default) => tree.insert(
            condition.key.to_string(),
            Placed {
                entry: default.clone(),
                rank: 0,
            },
        ),
        None => tree.remove(condition.key),
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
            return Err(contradiction(b, second, a, first, reason, Kind::Device));
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
    kind: Kind,
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
    if template.kind != Kind::Device {
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
