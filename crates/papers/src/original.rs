//! The traces that papers used, where the user has them: found by name in a directory, and replayed whole instead of
//! the profiles that stand for them.
//!
//! A definition says which files of which names are the trace behind a profile. What a profile was fitted to is not
//! fitted any more when the trace itself is replayed.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use flashlore_trace::{Batch, ContentModel, Op, ReadOptions, TraceReader, UNIT_BYTES};
use serde::Serialize;

use crate::definition::Paper;
use crate::error::PaperError;

/// Endings of compressed files that can be read.
const COMPRESSED: [&str; 3] = [".gz", ".xz", ".zst"];

/// The files of a trace, in the order in which they follow one another. A report has their names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(into = "Vec<String>")]
pub struct Original {
    files: Vec<PathBuf>,
}

impl From<Original> for Vec<String> {
    fn from(original: Original) -> Self {
        original.names()
    }
}

impl Original {
    /// The traces behind a paper's profiles that are in a directory.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn all(paper: &Paper, directory: &Path) -> Result<BTreeMap<String, Self>, PaperError> {
        let failed = |source| PaperError::File {
            path: directory.display().to_string(),
            source,
        };
        let mut names = Vec::new();
        for entry in fs::read_dir(directory).map_err(failed)? {
            names.extend(entry.map_err(failed)?.file_name().into_string().ok());
        }
        names.sort_by_key(|name| in_order(name));
        let mut found = BTreeMap::new();
        for (profile, pattern) in &paper.original {
            let is_one = |name: &&String| is_named(name, pattern);
            let files = names.iter().filter(is_one).map(|name| directory.join(name));
            let files: Vec<PathBuf> = files.collect();
            if !files.is_empty() {
                found.insert(profile.clone(), Original { files });
            }
        }
        Ok(found)
    }

    /// Its files without their directory.
    pub fn names(&self) -> Vec<String> {
        let name = |file: &PathBuf| file.file_name()?.to_str().map(str::to_owned);
        self.files.iter().filter_map(name).collect()
    }

    /// Readers of its files, from the first on.
    pub fn open(&self) -> Result<Vec<TraceReader>, PaperError> {
        let open = |file: &PathBuf| Ok(TraceReader::open(file, &ReadOptions::default())?);
        self.files.iter().map(open).collect()
    }

    /// What is known of it when it was read through once.
    pub fn extent(&self) -> Result<Extent, PaperError> {
        let mut extent = Extent::default();
        let mut batch = Batch::default();
        for mut reader in self.open()? {
            while reader.next_batch(&mut batch)? {
                extent.requests += batch.len() as u64;
                let writes = batch.op.iter().zip(&batch.length);
                let writes = writes.filter(|(op, _)| **op == Op::Write);
                extent.page_writes += writes
                    .map(|(_, bytes)| bytes.div_ceil(UNIT_BYTES))
                    .sum::<u64>();
            }
            extent.has_content |= reader.value_count() > 0;
        }
        Ok(extent)
    }
}

/// How large a trace is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Extent {
    pub requests: u64,
    /// Pages of its writes, cut at nothing.
    pub page_writes: u64,
    /// Whether it tells contents.
    pub has_content: bool,
}

impl Extent {
    /// Its own contents, or all different ones.
    pub fn content(self) -> ContentModel {
        match self.has_content {
            true => ContentModel::FromTrace,
            false => ContentModel::Distinct,
        }
    }
}

/// Whether a file, compressed or not, has a name with at most one `*` in it, which stands for anything.
fn is_named(file: &str, pattern: &str) -> bool {
    let plain = COMPRESSED
        .iter()
        .find_map(|ending| file.strip_suffix(ending));
    let plain = plain.unwrap_or(file);
    match pattern.split_once('*') {
        None => plain == pattern,
        Some((first, last)) => plain
            .strip_prefix(first)
            .is_some_and(|rest| rest.ends_with(last)),
    }
}

/// Text and numbers of a name in turn, so that part 10 comes behind part 9.
fn in_order(name: &str) -> Vec<(String, u64)> {
    let mut parts = vec![(String::new(), 0_u64)];
    for character in name.chars() {
        let last = parts.len() - 1;
        match character.to_digit(10) {
            Some(digit) => parts[last].1 = parts[last].1.saturating_mul(10) + u64::from(digit),
            None if parts[last].1 > 0 => parts.push((character.to_string(), 0)),
            None => parts[last].0.push(character),
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_follow_one_another_by_their_numbers() {
        let mut names = ["homes.10.blkparse", "homes.9.blkparse", "homes.1.blkparse"];
        names.sort_by_key(|name| in_order(name));
        assert_eq!(
            names,
            ["homes.1.blkparse", "homes.9.blkparse", "homes.10.blkparse"]
        );
    }

    #[test]
    fn a_compressed_file_is_known_by_the_same_name() {
        let known = |name: &str| is_named(name, "homes*.blkparse");
        assert!(known("homes-1.blkparse") && known("homes-1.blkparse.gz"));
        assert!(!known("homes-1.blkparse.bz2") && !known("my-homes.blkparse"));
    }
}
