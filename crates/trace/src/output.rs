//! Files that commands write: results, pages of figures, converted traces, logs.
//!
//! - What has the name already is refused, unless the caller was told to replace it ([`Existing`]). An empty file
//!   holds nothing and is replaced.
//! - A file is written beside its place, on the same file system and under a name of its own, made durable, and
//!   renamed when it is complete. Until then, and whenever something fails, what was there before is still there.
//! - Files that belong together ([`OutputSet`]) are all written before the first gets its name. The *head* of the set
//!   is the file without which the others are not read: it is the first of an old set to go and the last of a new one
//!   to come, so that a process killed in between leaves a directory without results, not with mixed ones. What it
//!   was replacing is then in a directory `.flashlore-` and some letters.
//! - What is no regular file, such as `/dev/stdout` or a pipe, has nothing to be lost and is written as it is.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::{NamedTempFile, TempDir};

/// Temporary names begin so.
const PREFIX: &str = ".flashlore-";

/// What becomes of a file or of results that are there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Existing {
    /// They stay, and writing is refused.
    Refuse,
    /// They are replaced when the new ones are complete: `--force`.
    Replace,
}

/// Why an output was not written. What was there before is unchanged.
#[derive(Debug, thiserror::Error)]
pub enum OutputError {
    #[error("{} exists already: name another file, or replace it with --force (force=True in Python)", path.display())]
    Exists { path: PathBuf },
    #[error(
        "{} holds results already ({found}): name another directory, or replace them with --force \
         (force=True in Python)",
        directory.display()
    )]
    Holds {
        directory: PathBuf,
        found: &'static str,
    },
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
}

impl OutputError {
    /// Whether another name or `--force` helps.
    pub fn is_usage(&self) -> bool {
        !matches!(self, OutputError::Write { .. })
    }

    pub(crate) fn write(path: &Path, source: impl Into<io::Error>) -> Self {
        OutputError::Write {
            path: path.to_path_buf(),
            source: source.into(),
        }
    }
}

impl From<bool> for Existing {
    /// From a flag `--force`.
    fn from(force: bool) -> Self {
        match force {
            true => Existing::Replace,
            false => Existing::Refuse,
        }
    }
}

impl Existing {
    /// Refuses a file early, before hours of work: it exists and is to stay, or has no directory.
    pub fn check_file(self, path: &Path) -> Result<(), OutputError> {
        let refused = |kind: io::ErrorKind| OutputError::write(path, kind);
        match fs::metadata(path) {
            Ok(found) if found.is_dir() => return Err(refused(io::ErrorKind::IsADirectory)),
            Ok(found) if found.is_file() && found.len() > 0 && self == Existing::Refuse => {
                let path = path.to_path_buf();
                return Err(OutputError::Exists { path });
            }
            Ok(_) => return Ok(()),
            Err(_) => {}
        }
        match fs::metadata(directory_of(path)) {
            Ok(found) if found.is_dir() => Ok(()),
            Ok(_) => Err(refused(io::ErrorKind::NotADirectory)),
            Err(source) => Err(OutputError::write(path, source)),
        }
    }

    /// Refuses a directory early that cannot be made, or that holds files of a set that are to stay.
    pub fn check_set(self, directory: &Path, names: &[&'static str]) -> Result<(), OutputError> {
        drop(OutputDirectory::make(directory)?);
        let found = names
            .iter()
            .find(|name| directory.join(name).symlink_metadata().is_ok());
        match found.filter(|_| self == Existing::Refuse) {
            None => Ok(()),
            Some(found) => Err(OutputError::Holds {
                directory: directory.to_path_buf(),
                found,
            }),
        }
    }
}

/// A file that is being written. It has its name once it is completed; dropped before, it leaves nothing.
pub struct OutputFile {
    path: PathBuf,
    existing: Existing,
    target: Target,
}

enum Target {
    Beside(NamedTempFile),
    Stream(File),
}

impl OutputFile {
    /// Begins a file.
    ///
    /// # Errors
    /// As [`Existing::check_file`], and when nothing can be written there.
    pub fn create(path: &Path, existing: Existing) -> Result<Self, OutputError> {
        existing.check_file(path)?;
        let failed = |source| OutputError::write(path, source);
        let is_stream = fs::metadata(path).is_ok_and(|found| !found.is_file());
        let target = match is_stream {
            true => Target::Stream(OpenOptions::new().write(true).open(path).map_err(failed)?),
            false => Target::Beside(beside(&behind_link(path)).map_err(failed)?),
        };
        Ok(OutputFile {
            path: path.to_path_buf(),
            existing,
            target,
        })
    }

    /// Lets nobody but its user read it, now and once it has its name: it holds what was on somebody's disk.
    pub fn make_private(&self) -> Result<(), OutputError> {
        let private = fs::Permissions::from_mode(0o600);
        match &self.target {
            Target::Beside(file) => file.as_file().set_permissions(private),
            Target::Stream(_) => Ok(()),
        }
        .map_err(|source| self.failed(source))
    }

    /// The same open file, for a writer that keeps it; what it writes belongs to this.
    pub fn handle(&self) -> Result<File, OutputError> {
        let file = match &self.target {
            Target::Beside(file) => file.as_file(),
            Target::Stream(file) => file,
        };
        file.try_clone().map_err(|source| self.failed(source))
    }

    pub fn failed(&self, source: impl Into<io::Error>) -> OutputError {
        OutputError::write(&self.path, source)
    }

    /// Makes the file durable and gives it its name.
    ///
    /// # Errors
    /// When that fails, or a file has appeared there meanwhile that is to stay.
    pub fn complete(self) -> Result<(), OutputError> {
        let OutputFile {
            path,
            existing,
            target,
        } = self;
        let Target::Beside(file) = target else {
            return Ok(());
        };
        existing.check_file(&path)?;
        let failed = |source| OutputError::write(&path, source);
        file.as_file().sync_all().map_err(failed)?;
        let place = behind_link(&path);
        let named = match existing == Existing::Refuse && !place.exists() {
            true => file.persist_noclobber(&place),
            false => file.persist(&place),
        };
        named.map_err(|error| failed(error.error))?;
        sync_directory(directory_of(&place)).map_err(failed)
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.target {
            Target::Beside(file) => file.write(bytes),
            Target::Stream(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.target {
            Target::Beside(file) => file.flush(),
            Target::Stream(file) => file.flush(),
        }
    }
}

impl Seek for OutputFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        match &mut self.target {
            Target::Beside(file) => file.seek(to),
            Target::Stream(file) => file.seek(to),
        }
    }
}

/// Writes a file whole.
pub fn write_whole(
    path: &Path,
    existing: Existing,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), OutputError> {
    let mut out = BufWriter::new(OutputFile::create(path, existing)?);
    let written = write(&mut out).and_then(|()| out.flush());
    written.map_err(|source| OutputError::write(path, source))?;
    let file = out.into_inner();
    file.map_err(|error| OutputError::write(path, error.into_error()))?
        .complete()
}

/// A directory that is there, with those above it that it needs. Those that were made for it are gone when it is
/// dropped before it is kept, unless something lies in them.
struct OutputDirectory {
    /// What was made, the innermost first.
    made: Vec<PathBuf>,
}

impl OutputDirectory {
    fn make(directory: &Path) -> Result<Self, OutputError> {
        let is_missing = |path: &&Path| !path.as_os_str().is_empty() && !path.exists();
        let made = directory.ancestors().take_while(is_missing);
        let made = OutputDirectory {
            made: made.map(Path::to_path_buf).collect(),
        };
        fs::create_dir_all(directory).map_err(|source| OutputError::write(directory, source))?;
        Ok(made)
    }

    fn keep(mut self) {
        self.made.clear();
    }
}

impl Drop for OutputDirectory {
    fn drop(&mut self) {
        for path in &self.made {
            // One that somebody else uses stays.
            let _ = fs::remove_dir(path);
        }
    }
}

/// Writes files into a directory, which is made if need be: `write` gets a temporary one, and its files are moved to
/// their places once all are written. Files of the same names are replaced.
pub fn write_into(
    directory: &Path,
    write: impl FnOnce(&Path) -> io::Result<()>,
) -> Result<(), OutputError> {
    let failed = |source| OutputError::write(directory, source);
    let made = OutputDirectory::make(directory)?;
    let staged = staged_in(directory)?;
    write(staged.path()).map_err(failed)?;
    for entry in fs::read_dir(staged.path()).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        fs::rename(entry.path(), directory.join(entry.file_name())).map_err(failed)?;
    }
    made.keep();
    sync_directory(directory).map_err(failed)
}

fn staged_in(directory: &Path) -> Result<TempDir, OutputError> {
    tempfile::Builder::new()
        .prefix(PREFIX)
        .tempdir_in(directory)
        .map_err(|source| OutputError::write(directory, source))
}

/// Files that belong together, being written. They have their names once all are completed; dropped before, this
/// leaves nothing.
pub struct OutputSet {
    directory: PathBuf,
    /// All files that such a set may have; its head is the first.
    names: &'static [&'static str],
    existing: Existing,
    staged: TempDir,
    // Behind what lies in it.
    made: OutputDirectory,
    written: Vec<&'static str>,
}

impl OutputSet {
    /// Begins the files of a directory, which is made if need be. `names` are all that such a set may have, its head
    /// first.
    pub fn create(
        directory: &Path,
        names: &'static [&'static str],
        existing: Existing,
    ) -> Result<Self, OutputError> {
        let made = OutputDirectory::make(directory)?;
        existing.check_set(directory, names)?;
        let staged = staged_in(directory)?;
        Ok(OutputSet {
            directory: directory.to_path_buf(),
            names,
            existing,
            staged,
            made,
            written: Vec::new(),
        })
    }

    /// Writes one of them.
    ///
    /// # Errors
    /// What `write` says, and a file that cannot be written or is not of the set.
    pub fn write(
        &mut self,
        name: &str,
        write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
    ) -> Result<(), OutputError> {
        let failed = |source| OutputError::write(&self.directory.join(name), source);
        let Some(name) = self.names.iter().find(|known| **known == name) else {
            return Err(failed(io::Error::other("it is no file of the set")));
        };
        let mut file = File::create(self.staged.path().join(name))
            .map(BufWriter::new)
            .map_err(failed)?;
        write(&mut file).map_err(failed)?;
        let file = file
            .into_inner()
            .map_err(|error| failed(error.into_error()))?;
        file.sync_all().map_err(failed)?;
        self.written.push(name);
        Ok(())
    }

    /// Gives all files their names; those of an old set that the new one has not are gone then.
    ///
    /// # Errors
    /// A file that cannot be moved, or others that have appeared there meanwhile and are to stay. All is as it was
    /// then.
    pub fn complete(self) -> Result<(), OutputError> {
        let failed = |source| OutputError::write(&self.directory, source);
        let directory = File::open(&self.directory).map_err(failed)?;
        // Two that end at the same time come one after the other.
        directory.lock().map_err(failed)?;
        self.existing.check_set(&self.directory, self.names)?;
        let old = self.staged.path().join("old");
        fs::create_dir(&old).map_err(failed)?;
        let mut moves = Moves::default();
        let moved = (|| {
            for name in self.names {
                let place = self.directory.join(name);
                if place.symlink_metadata().is_ok() {
                    moves.rename(place, old.join(name))?;
                }
            }
            for name in self.names.iter().rev() {
                if self.written.contains(name) {
                    let place = self.directory.join(name);
                    moves.rename(self.staged.path().join(name), place)?;
                }
            }
            directory.sync_all()
        })();
        moved.map_err(|source| {
            moves.undo();
            failed(source)
        })?;
        self.made.keep();
        Ok(())
    }
}

/// Renames that can be taken back.
#[derive(Default)]
struct Moves(Vec<(PathBuf, PathBuf)>);

impl Moves {
    fn rename(&mut self, from: PathBuf, to: PathBuf) -> io::Result<()> {
        fs::rename(&from, &to)?;
        self.0.push((from, to));
        Ok(())
    }

    fn undo(&mut self) {
        for (from, to) in self.0.drain(..).rev() {
            // Nothing better can be done; what was moved is still in the temporary directory's place.
            let _ = fs::rename(to, from);
        }
    }
}

/// A file in the directory of `place`, which is gone when it is dropped.
fn beside(place: &Path) -> io::Result<NamedTempFile> {
    tempfile::Builder::new()
        .prefix(PREFIX)
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(directory_of(place))
}

/// What a link leads to; a link stays one.
fn behind_link(path: &Path) -> PathBuf {
    fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf())
}

fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: &[&str] = &["head", "a", "b"];

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).unwrap();
        let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string();
        let mut names: Vec<String> = entries.map(|entry| name(entry).unwrap()).collect();
        names.sort();
        names
    }

    fn set(directory: &Path, existing: Existing, files: &[&'static str], text: &str) {
        let mut set = OutputSet::create(directory, NAMES, existing).unwrap();
        for name in files {
            set.write(name, |out| out.write_all(text.as_bytes()))
                .unwrap();
        }
        set.complete().unwrap();
    }

    fn full(_: &mut dyn Write) -> io::Result<()> {
        Err(io::ErrorKind::StorageFull.into())
    }

    #[test]
    fn a_file_is_refused_replaced_or_kept_when_writing_fails() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("out");
        let write = |existing, text: &str| {
            write_whole(&path, existing, |out| out.write_all(text.as_bytes()))
        };
        fs::write(&path, "").unwrap();
        write(Existing::Refuse, "one").unwrap();
        let refused = write(Existing::Refuse, "two").unwrap_err();
        assert!(refused.is_usage());
        assert!(
            refused.to_string().contains("out exists already"),
            "{refused}"
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), "one");
        let failed = write_whole(&path, Existing::Replace, full).unwrap_err();
        assert!(!failed.is_usage());
        assert!(failed.to_string().starts_with("cannot write "), "{failed}");
        assert_eq!(fs::read_to_string(&path).unwrap(), "one");
        write(Existing::Replace, "two").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        assert_eq!(names(place.path()), ["out"]);
    }

    #[test]
    fn a_file_that_appears_meanwhile_stays() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("out");
        let begun = OutputFile::create(&path, Existing::Refuse).unwrap();
        fs::write(&path, "another's").unwrap();
        assert!(begun.complete().unwrap_err().is_usage());
        assert_eq!(fs::read_to_string(&path).unwrap(), "another's");
        assert_eq!(names(place.path()), ["out"]);
    }

    #[test]
    fn a_link_stays_one_and_a_device_is_written_as_it_is() {
        let place = tempfile::tempdir().unwrap();
        let (path, link) = (place.path().join("out"), place.path().join("link"));
        fs::write(&path, "one").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        write_whole(&link, Existing::Replace, |out| out.write_all(b"two")).unwrap();
        assert!(link.symlink_metadata().unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        let full = Path::new("/dev/full");
        let failed = write_whole(full, Existing::Refuse, |out| out.write_all(b"x")).unwrap_err();
        assert!(failed.to_string().contains("No space left"), "{failed}");
        write_whole(Path::new("/dev/null"), Existing::Refuse, |out| {
            out.write_all(b"x")
        })
        .unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }

    #[test]
    fn a_set_replaces_all_of_an_older_one_and_nothing_else() {
        let place = tempfile::tempdir().unwrap();
        let out = place.path().join("deep/out");
        set(&out, Existing::Refuse, &["a", "b", "head"], "one");
        fs::write(out.join("notes"), "mine").unwrap();
        let refused = OutputSet::create(&out, NAMES, Existing::Refuse)
            .err()
            .unwrap();
        assert!(refused.is_usage());
        assert!(
            refused.to_string().contains("holds results already"),
            "{refused}"
        );
        set(&out, Existing::Replace, &["a", "head"], "two");
        assert_eq!(names(&out), ["a", "head", "notes"]);
        assert_eq!(fs::read_to_string(out.join("a")).unwrap(), "two");
    }

    #[test]
    fn a_set_that_cannot_be_written_or_moved_leaves_the_old_one() {
        let place = tempfile::tempdir().unwrap();
        let out = place.path();
        set(out, Existing::Refuse, &["a", "b", "head"], "one");
        let mut half = OutputSet::create(out, NAMES, Existing::Replace).unwrap();
        half.write("a", |file| file.write_all(b"two")).unwrap();
        let failed = half.write("b", |file| full(file)).unwrap_err();
        assert!(failed.to_string().contains("/b: "), "{failed}");
        drop(half);
        assert_eq!(names(out), ["a", "b", "head"]);
        // The staged file is gone, so that the second rename fails when the old set is already away.
        let mut lost = OutputSet::create(out, NAMES, Existing::Replace).unwrap();
        for name in ["a", "head"] {
            lost.write(name, |file| file.write_all(b"two")).unwrap();
        }
        fs::remove_file(lost.staged.path().join("head")).unwrap();
        lost.complete().unwrap_err();
        assert_eq!(names(out), ["a", "b", "head"]);
        for name in NAMES {
            assert_eq!(fs::read_to_string(out.join(name)).unwrap(), "one", "{name}");
        }
    }
}
