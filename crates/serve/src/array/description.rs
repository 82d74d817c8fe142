//! The file `array.json` in the directory of an array: where the media are, and how the array is opened.
//!
//! The sizes of an array lie on its media; what is here is how it is used. Everything under `options` and `running` may
//! be changed while nobody has the array open: the array refuses what it cannot work with. Some of it can be changed
//! while it is open ([`super::tune`]). The file appears as a whole, after the array was made.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use flashlore_array::icash::parameters::{SEQUENTIAL_CUTOFF, TABLE_PAGES};
use flashlore_array::icash::{Compression, Fill, Mode, Options, Similarity, TooBig};
use flashlore_delta::Codec;
use flashlore_medium::Piece;
use flashlore_units::{Bytes, Size};
use serde::de::{DeserializeOwned, IntoDeserializer, value};
use serde::{Deserialize, Deserializer, Serialize};
use tempfile::NamedTempFile;

use crate::error::ServeError;
use crate::home::{DESCRIPTION, Home};

const VERSION: u32 = 1;
/// Half of what the fast medium holds may be dirty: what is used again is written home once and not each time.
const DIRTY_TARGET: u32 = 50;
/// What a disk writes in batches of some neighbours each, beside requests that it serves: 4 MiB a second.
const WRITE_BACK_RATE: u64 = 4 << 20;
/// What `system` says.
pub const SYSTEM: &str = "i-cash";

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    version: u32,
    system: String,
    /// Both media have it: 32 hexadecimal digits.
    identity: String,
    pub fast: PathBuf,
    pub slow: PathBuf,
    /// Where the parts of the slow medium lie in its file or device; none if they lie as the array counts them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    slow_pieces: Vec<PieceText>,
    /// The disk image around which the array was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<Adopted>,
    #[serde(with = "StoredText")]
    options: Options,
    /// Arrays that were made before it could be changed have the defaults.
    #[serde(default)]
    pub running: Running,
}

/// A disk image at the begin of the slow medium, which the first machine's blocks are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Adopted {
    /// Its bytes. All that is behind them is the array's.
    pub bytes: u64,
    pub state: AdoptedState,
}

/// How far the array around an image is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AdoptedState {
    /// The array is being made; the image is untouched.
    Adopting,
    /// The array is used.
    Used,
    /// The image holds all again; what is behind it goes.
    Leaving,
}

/// Bytes that lie together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PieceText {
    at: u64,
    bytes: u64,
}

/// What the thread of a served array does ahead of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Running {
    /// Blocks that are not at home, in percent of those that the fast medium has room for: more than these go home
    /// ahead.
    pub dirty_target: u32,
    /// Bytes a second that go home ahead.
    pub write_back_rate: Bytes,
}

impl Default for Running {
    fn default() -> Self {
        Running {
            dirty_target: DIRTY_TARGET,
            write_back_rate: Bytes::Limited(Size(WRITE_BACK_RATE)),
        }
    }
}

/// What messages call [`Options`].
type Stored = Options;

/// [`Options`] as they are written.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Stored", deny_unknown_fields)]
struct StoredText {
    virtual_blocks: u32,
    segments: u32,
    scan_every: u64,
    scan_blocks: usize,
    similar_positions: u32,
    /// Arrays that were made before there was a choice tried one.
    #[serde(default = "one")]
    tried: usize,
    delta_limit: usize,
    flush_blocks: u32,
    write_back_batch: usize,
    /// What a user notices of it is decided when the array is served.
    #[serde(default)]
    answers_early: bool,
    /// Arrays that were made before there was a choice are in write-back.
    #[serde(default)]
    mode: Mode,
    too_big: TooBig,
    /// `none` was called `nothing` before.
    #[serde(deserialize_with = "similarity")]
    similarity: Similarity,
    compression: Compression,
    halve_heatmap: bool,
    /// Before there were three choices it was called otherwise, and either yes or no.
    #[serde(alias = "lazy_fill", deserialize_with = "fill")]
    fill: Fill,
    #[serde(default)]
    ram_blocks: u32,
    /// Arrays that were made before there was one have the same as new ones.
    #[serde(default = "sequential_cutoff")]
    sequential_cutoff: u32,
    /// Arrays that were made when all of the table was in memory have the same as new ones.
    #[serde(default = "table_pages")]
    table_pages: u32,
    unpack_all: bool,
    codec: Codec,
}

fn table_pages() -> u32 {
    TABLE_PAGES
}

fn one() -> usize {
    1
}

fn sequential_cutoff() -> u32 {
    SEQUENTIAL_CUTOFF
}

/// A name, or whether it waits for the second read.
fn fill<'de, D: Deserializer<'de>>(from: D) -> Result<Fill, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Either {
        Waits(bool),
        Named(String),
    }
    match Either::deserialize(from)? {
        Either::Waits(true) => Ok(Fill::SecondRead),
        Either::Waits(false) => Ok(Fill::Read),
        Either::Named(name) => Fill::deserialize(name.into_deserializer()),
    }
}

fn similarity<'de, D: Deserializer<'de>>(from: D) -> Result<Similarity, D::Error> {
    let name = String::deserialize(from)?;
    match &*name {
        "nothing" => Ok(Similarity::Nothing),
        _ => Similarity::deserialize(name.into_deserializer()),
    }
}

/// What the file calls a choice.
pub(super) fn name_of(choice: impl Serialize) -> String {
    let name = serde_json::to_value(choice);
    let name = name.ok().and_then(|name| name.as_str().map(str::to_owned));
    name.expect("a choice is written as its name")
}

/// The choice that the file calls so.
pub(super) fn named<T: DeserializeOwned>(name: &str) -> Option<T> {
    T::deserialize(IntoDeserializer::<value::Error>::into_deserializer(name)).ok()
}

/// What is looked at first: a file of another version may have other fields.
#[derive(Deserialize)]
struct Version {
    version: u32,
}

impl Description {
    pub fn new(identity: [u8; 16], fast: PathBuf, slow: PathBuf, options: &Options) -> Self {
        Description {
            version: VERSION,
            system: SYSTEM.to_owned(),
            identity: hexadecimal(identity),
            fast,
            slow,
            slow_pieces: Vec::new(),
            image: None,
            options: options.clone(),
            running: Running::default(),
        }
    }

    /// Where the parts of the slow medium lie; none if they lie as the array counts them.
    pub fn pieces(&self) -> Vec<Piece> {
        let piece = |&PieceText { at, bytes }: &PieceText| Piece { at, bytes };
        self.slow_pieces.iter().map(piece).collect()
    }

    /// The same array with the parts of its slow medium in other places.
    pub fn with_pieces(&self, pieces: &[Piece]) -> Self {
        let text = |&Piece { at, bytes }: &Piece| PieceText { at, bytes };
        Description {
            slow_pieces: pieces.iter().map(text).collect(),
            ..self.clone()
        }
    }

    /// The same array around a disk image.
    pub fn around(&self, bytes: u64, state: AdoptedState) -> Self {
        Description {
            image: Some(Adopted { bytes, state }),
            ..self.clone()
        }
    }

    /// Refuses an array that is not whole: one on its way to or from a disk image.
    pub(super) fn demand_whole(&self) -> Result<(), ServeError> {
        let what = match self.image.map(|image| image.state) {
            None | Some(AdoptedState::Used) => return Ok(()),
            Some(AdoptedState::Adopting) => "the disk image was not adopted as a whole",
            Some(AdoptedState::Leaving) => "the disk image is being left",
        };
        Err(ServeError::Refused(format!(
            "{what}: flashlore array leave gives it back"
        )))
    }

    /// Whether a medium with this identity belongs to the array.
    pub fn is_of(&self, identity: [u8; 16]) -> bool {
        self.identity == hexadecimal(identity)
    }

    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The same with other options.
    pub fn with(&self, options: Options, running: Running) -> Self {
        Description {
            options,
            running,
            ..self.clone()
        }
    }

    /// The same array with another fast medium.
    pub fn with_fast(&self, fast: PathBuf) -> Self {
        Description {
            fast,
            ..self.clone()
        }
    }

    /// Reads a description.
    ///
    /// # Errors
    /// The file cannot be read, is of another version, or says something else.
    pub fn load(home: &Home) -> Result<Self, ServeError> {
        let path = &home.description();
        let bytes = home.read(DESCRIPTION);
        let bytes = bytes.map_err(ServeError::file("read", path))?;
        let content = |why: String| ServeError::Content {
            path: path.clone(),
            why,
        };
        let other = |error: serde_json::Error| {
            content(format!("expected the description of an array: {error}"))
        };
        let Version { version } = serde_json::from_slice(&bytes).map_err(other)?;
        if version != VERSION {
            return Err(content(format!("version {version}, expected {VERSION}")));
        }
        let description: Description = serde_json::from_slice(&bytes).map_err(other)?;
        match description.system == SYSTEM {
            true => Ok(description),
            false => Err(content(format!(
                "system is {:?}, expected {SYSTEM:?}",
                description.system
            ))),
        }
    }

    /// Writes the description where there is none; it is durable when this returns.
    ///
    /// # Errors
    /// There is one, a path is no text, or the file cannot be written.
    pub fn store(&self, path: &Path) -> Result<(), ServeError> {
        let bytes = self.bytes(path)?;
        let directory = path.parent().unwrap_or(Path::new("."));
        // A file of its own for each attempt: two at once do not write into each other's.
        let stored = NamedTempFile::new_in(directory).and_then(|mut file| {
            file.write_all(&bytes)?;
            file.as_file().sync_all()?;
            // Does not replace a description that somebody else just wrote.
            file.persist_noclobber(path)?;
            File::open(directory)?.sync_all().inspect_err(|_| {
                // The media are going to be removed: nothing may name them.
                let _ = fs::remove_file(path);
            })
        });
        stored.map_err(ServeError::file("write", path))
    }

    /// Writes the description over the one of an open array: whoever reads finds the old one or this one, as a whole,
    /// also after a crash.
    ///
    /// # Errors
    /// The file cannot be written. The old one is there then.
    pub fn replace(&self, home: &Home) -> Result<(), ServeError> {
        let path = home.description();
        let bytes = self.bytes(&path)?;
        let replaced = home.replace(DESCRIPTION, &bytes);
        replaced.map_err(ServeError::file("write", &path))
    }

    fn bytes(&self, path: &Path) -> Result<Vec<u8>, ServeError> {
        let bytes = serde_json::to_vec_pretty(self).map_err(|error| ServeError::Content {
            path: path.to_owned(),
            why: error.to_string(),
        });
        let mut bytes = bytes?;
        bytes.push(b'\n');
        Ok(bytes)
    }
}

fn hexadecimal(identity: [u8; 16]) -> String {
    identity.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn description() -> Description {
        let options = Options {
            scan_every: 7,
            mode: Mode::WriteThrough,
            too_big: TooBig::Log,
            similarity: Similarity::SuperFeatures,
            compression: Compression::IfShorter,
            codec: Codec::Copy,
            fill: Fill::SecondRead,
            ram_blocks: 12,
            unpack_all: false,
            ..Options::new(500, 900)
        };
        Description::new(*b"identity of one.", "/a".into(), "/b c".into(), &options)
    }

    #[test]
    fn what_was_stored_is_found_again_and_not_replaced() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("array.json");
        let stored = description();
        stored.store(&path).unwrap();
        let found = Description::load(&Home::new(directory.path())).unwrap();
        assert_eq!(found, stored);
        assert_eq!(found.options().too_big, TooBig::Log);
        assert_eq!(found.options().mode, Mode::WriteThrough);
        assert_eq!(
            (found.options().virtual_blocks, found.options().segments),
            (500, 900)
        );
        assert!(found.is_of(*b"identity of one.") && !found.is_of(*b"identity of two."));
        let other = stored.with_fast("/d".into());
        other.replace(&Home::new(directory.path())).unwrap();
        let found = Description::load(&Home::new(directory.path())).unwrap();
        assert_eq!((&found, found.slow.as_path()), (&other, Path::new("/b c")));
        let refused = stored.store(&path).unwrap_err().to_string();
        assert!(refused.contains("array.json: File exists"), "{refused}");
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    }

    /// Each of several at once writes a file of its own; one is there in the end, whole, and nothing else was touched.
    #[test]
    fn of_several_at_once_one_is_stored() {
        for _ in 0..20 {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("array.json");
            let other = directory.path().join("array.new");
            fs::write(&other, "somebody's").unwrap();
            let stored = std::thread::scope(|scope| {
                let one = |byte: u8| {
                    let (path, options) = (path.clone(), Options::new(500, 900));
                    scope.spawn(move || {
                        let own = Description::new([byte; 16], "/a".into(), "/b".into(), &options);
                        own.store(&path).is_ok().then_some(own)
                    })
                };
                let all: Vec<_> = (1..=4).map(one).collect();
                let ended = all.into_iter().filter_map(|thread| thread.join().unwrap());
                ended.collect::<Vec<_>>()
            });
            assert_eq!(
                stored,
                [Description::load(&Home::new(directory.path())).unwrap()]
            );
            assert_eq!(fs::read_to_string(&other).unwrap(), "somebody's");
            assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 2);
        }
    }

    #[test]
    fn words_that_earlier_files_have_are_understood() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("array.json");
        let mut stored = description();
        stored.options.similarity = Similarity::Nothing;
        stored.store(&path).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let earlier = [
            ("\"similarity\": \"none\"", "\"similarity\": \"nothing\""),
            ("\"fill\": \"second-read\"", "\"lazy_fill\": true"),
        ];
        let earlier = earlier.iter().fold(text.clone(), |text, (now, before)| {
            assert!(text.contains(now), "{text}");
            text.replace(now, before)
        });
        fs::write(&path, earlier).unwrap();
        let found = Description::load(&Home::new(directory.path())).unwrap();
        assert_eq!(found, stored);
        found.replace(&Home::new(directory.path())).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), text);
    }

    #[test]
    fn a_file_that_says_something_else_is_told() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("array.json");
        description().store(&path).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        for (from, to, why) in [
            ("\"version\": 1", "\"version\": 2", "version 2, expected 1"),
            ("i-cash", "raid", "system is \"raid\", expected \"i-cash\""),
            ("\"fast\":", "\"quick\":", "unknown field `quick`"),
            ("\"log\"", "\"tape\"", "unknown variant `tape`"),
            ("{", "[", "expected the description of an array"),
        ] {
            fs::write(&path, text.replacen(from, to, 1)).unwrap();
            let error = Description::load(&Home::new(directory.path()))
                .unwrap_err()
                .to_string();
            assert!(
                error.contains("array.json: ") && error.contains(why),
                "{error}"
            );
        }
    }
}
