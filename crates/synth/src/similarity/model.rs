//! `[similarity]` of a profile: what the bytes of its pages have in common.
//!
//! A page has a kind, which its place on the device determines. It is a reference, an associate, which
//! is a variant of the reference, or independent. Pages that are written in place have versions.

use flashlore_trace::pages::PAGE_BYTES;
use serde::{Deserialize, Serialize};

use super::materialise::BODY_BYTES;
use super::recipe::PageKind;
use crate::feasible::{Fault, at_least, share};

/// What the bytes of a workload's pages have in common.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Similarity {
    pub kinds: Kinds,
    /// Share of the pages that others are variants of: every so many pages of the address space have
    /// one reference.
    #[serde(default)]
    pub references: f64,
    /// Share of the pages that are variants of the reference nearby.
    #[serde(default)]
    pub associates: f64,
    #[serde(default)]
    pub changes: Changes,
    #[serde(default)]
    pub records: Records,
    #[serde(default)]
    pub log: Log,
    #[serde(default)]
    pub padded: Padded,
    /// Images of virtual machines that were cloned from one; absent when there is one image.
    pub images: Option<Images>,
}

/// Share of the pages that are of each kind; a cluster is of one kind. They make 1 together.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Kinds {
    pub record: f64,
    pub log: f64,
    pub text: f64,
    pub zero: f64,
    pub padded: f64,
    pub random: f64,
}

/// How a variant differs from its reference.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Changes {
    /// Short runs of other bytes.
    Runs {
        /// Mean number, at least 1.
        count: f64,
        /// Bytes of each.
        bytes: u32,
    },
    /// Bits here and there.
    Scattered {
        /// Share of the bits that differ, in the part concerned.
        bits: f64,
        /// Share of the page that is concerned: one stretch, anywhere.
        over: f64,
    },
}

impl Default for Changes {
    fn default() -> Self {
        Changes::Runs {
            count: 4.0,
            bytes: 8,
        }
    }
}

/// How a page of records is updated. Each record is as often updated as the others of its page.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Records {
    /// Records of a page.
    pub page: u32,
    /// Bytes that an update changes, always the same of a record.
    pub bytes: u32,
    /// Mean number of records that differ between a version and the next, at least 1.
    pub updated: f64,
}

impl Default for Records {
    fn default() -> Self {
        Records {
            page: 20,
            bytes: 8,
            updated: 2.0,
        }
    }
}

/// How a log grows.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Log {
    /// Mean bytes that each version appends, at least 1. A full page is begun anew.
    pub append: f64,
}

impl Default for Log {
    fn default() -> Self {
        Log { append: 512.0 }
    }
}

/// Pages with zeros behind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Padded {
    /// Mean bytes in front of the zeros; from 1 to twice as many, each as likely.
    pub head: f64,
}

impl Default for Padded {
    fn default() -> Self {
        Padded { head: 1024.0 }
    }
}

/// Images of virtual machines: equal parts of the address space.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Images {
    /// How many, at least 2.
    pub count: u32,
    /// Share of the pages of an image that are variants of the first image's page at the same offset.
    /// `references` and `associates` are about the others.
    pub cloned: f64,
}

impl Kinds {
    fn shares(&self) -> [(PageKind, &'static str, f64); 6] {
        [
            (PageKind::Record, "similarity.kinds.record", self.record),
            (PageKind::Log, "similarity.kinds.log", self.log),
            (PageKind::Text, "similarity.kinds.text", self.text),
            (PageKind::Zero, "similarity.kinds.zero", self.zero),
            (PageKind::Padded, "similarity.kinds.padded", self.padded),
            (PageKind::Random, "similarity.kinds.random", self.random),
        ]
    }

    /// The kind at `at`, a number in [0, 1), when all kinds are laid side by side.
    pub(crate) fn at(&self, at: f64) -> PageKind {
        let mut end = 0.0;
        let mut last = PageKind::Random;
        for (kind, _, share) in self.shares() {
            end += share;
            if at < end {
                return kind;
            }
            if share > 0.0 {
                last = kind;
            }
        }
        last
    }
}

impl Similarity {
    pub(crate) fn check(&self) -> Result<(), Fault> {
        let mut sum = 0.0;
        for (_, key, value) in self.kinds.shares() {
            share(key, value)?;
            sum += value;
        }
        if (sum - 1.0).abs() > 1e-6 {
            return Err((
                "similarity.kinds",
                format!("the shares make {sum}, expected 1"),
            ));
        }
        self.check_clusters()?;
        self.changes.check()?;
        self.records.check()?;
        within("similarity.log.append", self.log.append, 1.0, BODY_BYTES)?;
        within(
            "similarity.padded.head",
            self.padded.head,
            1.0,
            BODY_BYTES / 2,
        )?;
        let Some(images) = &self.images else {
            return Ok(());
        };
        at_least("similarity.images.count", f64::from(images.count), 2.0)?;
        share("similarity.images.cloned", images.cloned)
    }

    fn check_clusters(&self) -> Result<(), Fault> {
        share("similarity.references", self.references)?;
        share("similarity.associates", self.associates)?;
        let both = self.references + self.associates;
        if both > 1.0 + 1e-9 {
            return Err((
                "similarity.associates",
                format!("references + associates = {both}, expected at most 1"),
            ));
        }
        if self.associates > 0.0 && self.references == 0.0 {
            return Err((
                "similarity.references",
                "found 0, expected more: the associates are variants of references".to_owned(),
            ));
        }
        Ok(())
    }
}

impl Changes {
    fn check(&self) -> Result<(), Fault> {
        match *self {
            Changes::Runs { count, bytes } => {
                within("similarity.changes.runs.count", count, 1.0, PAGE_BYTES)?;
                let bytes = f64::from(bytes);
                within("similarity.changes.runs.bytes", bytes, 1.0, BODY_BYTES)
            }
            Changes::Scattered { bits, over } => {
                share("similarity.changes.scattered.over", over)?;
                if (0.0..0.5).contains(&bits) {
                    return Ok(());
                }
                Err((
                    "similarity.changes.scattered.bits",
                    format!(
                        "found {bits}, expected a share from 0 to below 0.5, which is that of \
                         unrelated pages"
                    ),
                ))
            }
        }
    }
}

impl Records {
    fn check(&self) -> Result<(), Fault> {
        within(
            "similarity.records.page",
            f64::from(self.page),
            1.0,
            BODY_BYTES,
        )?;
        let record = BODY_BYTES / self.page as usize;
        within(
            "similarity.records.bytes",
            f64::from(self.bytes),
            1.0,
            record,
        )?;
        within(
            "similarity.records.updated",
            self.updated,
            1.0,
            self.page as usize,
        )
    }
}

fn within(key: &'static str, value: f64, least: f64, most: usize) -> Result<(), Fault> {
    if (least..=most as f64).contains(&value) {
        return Ok(());
    }
    Err((
        key,
        format!("found {value}, expected a number from {least} to {most}"),
    ))
}
