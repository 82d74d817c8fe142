//! What a configuration calls the choices that the core has enums for.
//!
//! The core knows no serde, so that each enum is listed here once more: with the names that users write, and nowhere
//! else. A field of a configuration has the core's type and says `#[serde(with = "names::…")]`. A variant that the core
//! gains does not compile until it has a name here. Choices that are the configuration's own derive their names where
//! they are defined, and so do those of codecs and of I-CASH, which the files of real arrays name too.

use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
#[serde(
    remote = "flashlore_flash::sim::Concurrency",
    rename_all = "kebab-case"
)]
pub(super) enum Concurrency {
    Die,
    Plane,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "flashlore_ftl::Placement", rename_all = "kebab-case")]
pub(super) enum Placement {
    Dynamic,
    Static,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "flashlore_ftl::Level", rename_all = "kebab-case")]
enum Level {
    Channel,
    Package,
    Die,
    Plane,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "flashlore_ftl::Rotate", rename_all = "kebab-case")]
pub(super) enum Rotate {
    Page,
    Block,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "flashlore_ftl::PoolScope", rename_all = "kebab-case")]
pub(super) enum PoolScope {
    Plane,
    Die,
    Package,
    Device,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "flashlore_ftl::Streams", rename_all = "kebab-case")]
pub(super) enum Streams {
    Separate,
    Shared,
}

#[derive(Serialize, Deserialize)]
#[serde(
    remote = "flashlore_ftl::policies::history::OnPressure",
    rename_all = "kebab-case"
)]
pub(super) enum OnPressure {
    Shrink,
    #[serde(rename = "enospc")]
    Refuse,
}

#[derive(Serialize, Deserialize)]
#[serde(remote = "flashlore_array::hdd::Scheduler", rename_all = "kebab-case")]
pub(super) enum Scheduler {
    Fcfs,
    Look,
    CLook,
}

/// A striping order as a list of levels.
pub(super) mod stripe {
    use flashlore_ftl::Level;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    #[serde(transparent)]
    struct Named(#[serde(with = "super::Level")] Level);

    pub fn serialize<S: Serializer>(stripe: &[Level; 4], to: S) -> Result<S::Ok, S::Error> {
        stripe.map(Named).serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<[Level; 4], D::Error> {
        <[Named; 4]>::deserialize(from).map(|stripe| stripe.map(|named| named.0))
    }
}
