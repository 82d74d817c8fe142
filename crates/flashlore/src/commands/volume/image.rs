//! `import`, `export`, `read`: bytes into a volume and out of it.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::Path;
use std::sync::Arc;

use flashlore_nbd::server::is_zero;
use flashlore_serve::array::ArrayService;
use flashlore_serve::clock::even;
use flashlore_serve::control::{Reach, Remote};
use flashlore_serve::past::lacking;
use flashlore_serve::request::MOST_READ;
use flashlore_serve::{Answer, Request, Served};
use flashlore_volume::disk::{BlockDevice, DiskError};

use super::history::tell_missing;
use super::{
    DirectoryNames, clocks, disk_failed, failed, home, mode, named, open, reach, tell_of,
    unexpected,
};
use crate::cli::{ExportArgs, ImportArgs, ReadVolumeArgs, VolumeArgs};
use crate::error::CliError;
use crate::output::tell;
use crate::progress::Progress;

const PAGE: usize = 4096;
/// Bytes of an image that go into an array at once. In write-through it makes each request durable: an image that went in
/// page by page would wait for the disk at each of them.
const PIECE: usize = 256 * PAGE;
/// Pages between two flushes while an image is copied in.
const FLUSH_EVERY: u64 = 1 << 16;

pub fn import(args: &ImportArgs) -> Result<(), CliError> {
    let directory = &args.volume.directory;
    let path = &args.image;
    let mut image = File::open(path).map_err(CliError::file("open", path))?;
    let home = home(&args.volume);
    if Remote::connect(&home).is_some() {
        return Err(CliError::Differs(format!(
            "{} is served: copy the image in over NBD, as with nbdcopy, or onto the mounted file",
            directory.display()
        )));
    }
    let service = open(&args.memory.of(&args.volume))?;
    let DirectoryNames { disk, units, .. } = named(&args.volume);
    let mut end = 0;
    let copied = copy_in(&*service, args, &mut image, &mut end);
    // Also where the image was refused, or did not fit: otherwise the next opening finds a volume that was not closed.
    let closed = service.close();
    if copied.is_err() && end > 0 {
        tell(&format!(
            "the first {end} bytes of {} are in the {disk}{}; what it held behind them is as it was",
            path.display(),
            if closed.is_ok() {
                ""
            } else {
                ", but perhaps not durable"
            },
        ));
    }
    let Copied { room, stored } = copied?;
    closed.map_err(disk_failed(&args.volume))?;
    // The length of a pipe is not known before.
    if fill(&mut image, &mut [0]).map_err(CliError::file("read", path))? > 0 {
        return Err(CliError::Differs(format!(
            "{} has more than the {room} bytes that the {disk} shows; those are in it now",
            path.display()
        )));
    }
    let rest = room - end;
    if rest > 0 {
        let what = match args.trim_rest {
            true => "are zeros now",
            false => "are as they were (--trim-rest makes zeros of them)",
        };
        tell(&format!(
            "{} has {end} bytes: the {rest} that the {disk} shows behind them {what}",
            path.display()
        ));
    }
    tell(&format!("{stored} {units} are stored"));
    Ok(())
}

/// What was copied into a disk.
struct Copied {
    /// Bytes it shows.
    room: u64,
    /// Pages stored.
    stored: u64,
}

/// Copies a raw image into the disk that was asked for; `end` counts the bytes of the image that are in it, however
/// this ends.
fn copy_in(
    service: &dyn Served,
    args: &ImportArgs,
    image: &mut File,
    end: &mut u64,
) -> Result<Copied, CliError> {
    let path = &args.image;
    let disk = service
        .disk_of(args.machine)
        .map_err(failed(&args.volume))?;
    let device = Arc::clone(&service.lives()[disk].device);
    let failed = disk_failed(&args.volume);
    let length = length_of(image).map_err(CliError::file("read", path))?;
    let room = device.size();
    if length > room {
        return Err(CliError::Usage(format!(
            "{} has {length} bytes, the {} shows {room}",
            path.display(),
            named(&args.volume).disk
        )));
    }
    let progress = Progress::phase("importing");
    let mut piece = match service.volume() {
        Some(_) => vec![0; PAGE],
        None => vec![0; PIECE],
    };
    while *end < room {
        let most = (room - *end).min(piece.len() as u64) as usize;
        let filled = fill(image, &mut piece[..most]).map_err(CliError::file("read", path))?;
        if filled == 0 {
            break;
        }
        for run in piece[..filled]
            .chunks(PAGE)
            .collect::<Vec<_>>()
            .chunk_by(|a, b| is_hole(a) == is_hole(b))
        {
            copy_run(&*device, run, end).map_err(&failed)?;
        }
        if end.is_multiple_of(FLUSH_EVERY * PAGE as u64) {
            device.flush().map_err(&failed)?;
        }
    }
    drop(progress);
    if *end < room && args.trim_rest {
        device
            .write_zeroes(*end, room - *end, false)
            .map_err(&failed)?;
    }
    let stored = service.space(disk).map_err(&failed)?.stored;
    Ok(Copied { room, stored })
}

/// Whether a page of an image is trimmed rather than written. What is behind the end of the image is no part of it.
fn is_hole(page: &[u8]) -> bool {
    page == [0; PAGE]
}

/// Copies pages that all are holes, or all are none, to where the last ones ended. What can be copied of them is, and
/// counted, also if not all can.
fn copy_run(device: &dyn BlockDevice, run: &[&[u8]], end: &mut u64) -> Result<(), DiskError> {
    let copy = |at: u64, pages: &[&[u8]]| match is_hole(pages[0]) {
        true => device.trim(at, (pages.len() * PAGE) as u64),
        false => device.write(at, &pages.concat()),
    };
    if copy(*end, run).is_ok() {
        *end += run.iter().map(|page| page.len() as u64).sum::<u64>();
        return Ok(());
    }
    for &page in run {
        copy(*end, &[page])?;
        *end += page.len() as u64;
    }
    Ok(())
}

/// Bytes of a file or block device; 0 of what does not say, such as a pipe.
fn length_of(image: &mut File) -> io::Result<u64> {
    let told = image.metadata()?;
    if !told.file_type().is_block_device() {
        return Ok(told.len());
    }
    let length = image.seek(SeekFrom::End(0))?;
    image.rewind()?;
    Ok(length)
}

/// Reads until the buffer is full or the file ends.
fn fill(from: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match from.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(filled)
}

/// A volume that is read, at one instant if that is wanted.
struct ImageSource<'a> {
    args: &'a VolumeArgs,
    reach: Reach,
    at: Option<String>,
    /// Of an array.
    machine: Option<u8>,
    /// Zeros for what was purged.
    allow_missing: bool,
    size: u64,
    /// Whether there are instants.
    has_history: bool,
}

impl<'a> ImageSource<'a> {
    /// An instant is looked up once, so that "10min ago" stays the same.
    fn open(
        args: &'a VolumeArgs,
        mut reach: Reach,
        at: Option<&str>,
        machine: Option<u8>,
        allow_missing: bool,
    ) -> Result<Self, CliError> {
        let mut ask = |request| reach.ask(&request).map_err(failed(args));
        let mut has_history = false;
        let size = match ask(Request::Info)? {
            Answer::Info(info) => {
                has_history = info.history.is_some();
                Some(info.size).filter(|_| machine.is_none())
            }
            Answer::Array(info) => {
                let mut all = info.machines.iter();
                let found = all.find(|other| machine.is_none_or(|number| other.number == number));
                found.map(|found| found.size)
            }
            _ => return Err(unexpected(args)),
        };
        let Some(size) = size else {
            // Whoever is asked says why there is no such machine.
            ask(Request::Read {
                at: None,
                machine,
                offset: 0,
                length: 0,
                allow_missing: false,
            })?;
            return Err(unexpected(args));
        };
        let mut source = ImageSource {
            args,
            reach,
            at: None,
            machine,
            allow_missing,
            size,
            has_history,
        };
        if let Some(at) = at {
            source.stay_at(at)?;
        }
        Ok(source)
    }

    fn ask(&mut self, request: &Request) -> Result<Answer, CliError> {
        self.reach.ask(request).map_err(failed(self.args))
    }

    /// From now on what is read is of this instant.
    fn stay_at(&mut self, moment: &str) -> Result<(), CliError> {
        let asked = Request::Resolve {
            moment: moment.to_owned(),
        };
        match self.ask(&asked)? {
            Answer::Instant { instant } => self.at = Some(format!("ns:{instant}")),
            _ => return Err(unexpected(self.args)),
        }
        Ok(())
    }

    /// From now on what is read is of the present instant, if there are instants; whether there are.
    fn stay_at_now(&mut self) -> Result<bool, CliError> {
        if self.has_history {
            self.stay_at("now")?;
        }
        Ok(self.has_history)
    }

    fn read(&mut self, offset: u64, length: u64) -> Result<Vec<u8>, CliError> {
        let asked = Request::Read {
            at: self.at.clone(),
            machine: self.machine,
            offset,
            length,
            allow_missing: self.allow_missing,
        };
        let bytes = self.ask(&asked)?.into_bytes(length);
        bytes.ok_or_else(|| unexpected(self.args))
    }

    /// Tells what of these bytes was purged and reads as zeros; unless that is allowed, refuses to go on before
    /// anything is read.
    fn look_for_missing(&mut self, bytes: Range<u64>) -> Result<(), CliError> {
        let Some(at) = self.at.clone() else {
            return Ok(());
        };
        let Answer::Missing { ranges } = self.ask(&Request::Missing { at })? else {
            return Err(unexpected(self.args));
        };
        let lies_in =
            |&(first, length): &(u64, u64)| first < bytes.end && first + length > bytes.start;
        let missing: Vec<(u64, u64)> = ranges.into_iter().filter(lies_in).collect();
        if missing.is_empty() || self.allow_missing {
            tell_missing(&missing, "read as zeros");
            return Ok(());
        }
        Err(failed(self.args)(lacking(self.at.as_deref(), &missing)))
    }

    /// Refuses to go on where no page at all can be read any more: the server is gone, or the window has passed the
    /// instant.
    fn demand_present(&mut self) -> Result<(), CliError> {
        let asked = match &self.at {
            Some(at) => Request::Resolve { moment: at.clone() },
            // Nothing lies behind the end.
            None => Request::Scrub { from: u32::MAX },
        };
        self.ask(&asked).map(drop)
    }

    fn close(self) -> Result<(), CliError> {
        self.reach.close().map_err(failed(self.args))
    }
}

/// The slow medium of an array, without the fast one.
fn slow_alone(args: &VolumeArgs) -> Result<Reach, CliError> {
    let opened = ArrayService::slow_alone(home(args), mode(args), even(clocks()));
    let opened = opened.map_err(failed(args))?;
    tell_of(args, opened.recovered());
    Ok(Reach::local(Box::new(opened)))
}

pub fn export(args: &ExportArgs) -> Result<(), CliError> {
    let path = &args.image;
    let reach = match args.slow_alone {
        true => slow_alone(&args.volume)?,
        false => reach(&args.memory.of(&args.volume))?,
    };
    let (at, machine) = (args.at.as_deref(), args.machine);
    // What is served may be written while it is copied.
    let may_change = at.is_none() && matches!(reach, Reach::Remote(_));
    let mut source = ImageSource::open(&args.volume, reach, at, machine, args.allow_missing)?;
    let is_of_one_instant = !may_change || source.stay_at_now()?;
    source.look_for_missing(0..source.size)?;
    if path.exists() {
        return Err(CliError::file("create", path)(
            ErrorKind::AlreadyExists.into(),
        ));
    }
    let directory = match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    // It gets its name once it is whole, also if a signal ends this.
    let image = tempfile::Builder::new()
        .prefix(".flashlore-")
        .tempfile_in(directory)
        .map_err(CliError::file("create", path))?;
    let copied = copy_out(&mut source, args.skip_bad, image.as_file(), path).and_then(|()| {
        let named = image.persist_noclobber(path);
        named.map_err(|error| CliError::file("create", path)(error.error))?;
        Ok(())
    });
    let closed = source.close();
    copied.and(closed)?;
    if !is_of_one_instant {
        tell(
            "it is served and keeps no history: what was written to it meanwhile may be in the image in part; stop its \
             writers for an image of one instant",
        );
    }
    Ok(())
}

fn copy_out(
    source: &mut ImageSource<'_>,
    skip_bad: bool,
    image: &File,
    path: &Path,
) -> Result<(), CliError> {
    let progress = Progress::phase("exporting");
    let mut at = 0;
    let mut bad = Vec::new();
    while at < source.size {
        let length = (source.size - at).min(MOST_READ);
        let bytes = match source.read(at, length) {
            Err(_) if skip_bad => pages_one_by_one(source, at, length, &mut bad)?,
            read => read?,
        };
        write_sparsely(image, at, &bytes).map_err(CliError::file("write", path))?;
        at += length;
    }
    let sized = image.set_len(source.size);
    let synced = sized.and_then(|()| image.sync_all());
    synced.map_err(CliError::file("write", path))?;
    drop(progress);
    for (page, why) in &bad {
        tell(&format!(
            "bytes {} on are zeros instead: {why}",
            page * PAGE as u64
        ));
    }
    if !bad.is_empty() {
        tell(&format!("{} pages could not be read", bad.len()));
    }
    Ok(())
}

/// Writes the pages that hold something into a file without a byte at `at` or behind it: the others become holes, so
/// that the image of a large volume takes what is in it.
fn write_sparsely(image: &File, at: u64, bytes: &[u8]) -> io::Result<()> {
    let mut offset = 0;
    while offset < bytes.len() {
        let pages = bytes[offset..].chunks(PAGE);
        let skipped = pages.take_while(|page| is_zero(page)).count();
        offset = bytes.len().min(offset + skipped * PAGE);
        let pages = bytes[offset..].chunks(PAGE);
        let written = pages.take_while(|page| !is_zero(page)).count();
        let end = bytes.len().min(offset + written * PAGE);
        image.write_all_at(&bytes[offset..end], at + offset as u64)?;
        offset = end;
    }
    Ok(())
}

/// Reads page by page; zeros for those that cannot be read, which are noted. Fails if that is not because of the
/// pages.
fn pages_one_by_one(
    source: &mut ImageSource<'_>,
    at: u64,
    length: u64,
    bad: &mut Vec<(u64, String)>,
) -> Result<Vec<u8>, CliError> {
    let mut all = Vec::with_capacity(length as usize);
    for offset in (at..at + length).step_by(PAGE) {
        match source.read(offset, PAGE as u64) {
            Ok(bytes) => all.extend(bytes),
            Err(error) => {
                bad.push((offset / PAGE as u64, error.to_string()));
                all.resize(all.len() + PAGE, 0);
            }
        }
    }
    source.demand_present()?;
    Ok(all)
}

/// Writes bytes to standard output.
pub fn read(args: &ReadVolumeArgs) -> Result<(), CliError> {
    let reach = reach(&args.volume)?;
    let (at, machine) = (args.at.as_deref(), args.machine);
    let mut source = ImageSource::open(&args.volume, reach, at, machine, args.allow_missing)?;
    let (first, size) = (args.offset.0, source.size);
    let length = args.length.map(|length| length.0);
    let end = match length {
        None => Some(size).filter(|&end| first <= end),
        Some(length) => first.checked_add(length).filter(|&end| end <= size),
    };
    let Some(end) = end else {
        return Err(CliError::Usage(format!(
            "the bytes from {first} on do not lie within the {size} of the {}",
            named(&args.volume).disk
        )));
    };
    source.look_for_missing(first..end)?;
    let mut out = io::stdout().lock();
    let mut at = first;
    while at < end {
        let length = (end - at).min(MOST_READ);
        let bytes = source.read(at, length)?;
        out.write_all(&bytes).map_err(CliError::Output)?;
        at += length;
    }
    out.flush().map_err(CliError::Output)?;
    source.close()
}
