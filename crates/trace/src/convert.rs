//! A trace in one format becomes the same trace in another.
//!
//! What the output format cannot express is an error that names the record, never a silent loss;
//! content and delta ratios are dropped only when asked for. Ratios can be given to a trace on the
//! way ([`RateWrites`]). Text formats keep the absolute times of the input. The
//! output appears under its name when it is complete: it is written beside it and renamed.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use serde::Serialize;

use crate::error::{Error, Result};
use crate::formats::blkparse::{self, Action};
use crate::formats::native::NativeWriter;
use crate::formats::{Format, disksim, fio, fiu, msr, spc, ssdsim};
use crate::output::{Existing, OutputFile};
use crate::reader::{ReadOptions, ReadStats, TraceReader};
use crate::record::{Batch, Op, Record};

const BUFFER_BYTES: usize = 1 << 18;

#[derive(Debug, Clone, Copy)]
pub struct ConvertOptions {
    pub read: ReadOptions,
    pub to: Format,
    /// Leave out the content and delta ratios where the output format has no place for them.
    pub drop_content: bool,
    /// What becomes of a file that has the output's name.
    pub existing: Existing,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ConvertReport {
    pub from: Format,
    pub to: Format,
    pub read: ReadStats,
    /// Records whose content was left out.
    pub contents_dropped: u64,
    /// Page writes that have an R_c in the output.
    pub rated_writes: u64,
    /// Records whose R_c was left out.
    pub ratios_dropped: u64,
    /// Records whose time was cut to whole clock ticks: 100 ns in MSR, 1 us in fio.
    pub times_cut: u64,
}

/// Gives writes their delta ratio R_c while a trace is converted.
pub trait RateWrites {
    /// Called for every record in order. For a write it appends R_c of each chunk, in 1/65535 and never
    /// 0; for others nothing.
    ///
    /// # Errors
    /// What is missing to tell R_c of this record.
    fn rate(&mut self, record: &Record<'_>, out: &mut Vec<u16>) -> std::result::Result<(), String>;
}

/// Converts the trace at `input` to the file `output`.
///
/// # Errors
/// When the format is only read, the input cannot be read, a record cannot be expressed, or the
/// output cannot be written.
/// Nothing is left behind then.
pub fn convert(
    input: impl AsRef<Path>,
    output: impl AsRef<Path>,
    options: &ConvertOptions,
) -> Result<ConvertReport> {
    convert_reader(TraceReader::open(input, &options.read)?, output, options)
}

/// As [`convert`], from an open trace that has not been read from.
pub fn convert_reader(
    reader: TraceReader,
    output: impl AsRef<Path>,
    options: &ConvertOptions,
) -> Result<ConvertReport> {
    convert_rated(reader, output, options, None)
}

/// As [`convert_reader`]; where `rater` is given, writes get their R_c from it, whatever the trace says.
///
/// # Errors
/// As [`convert`], and when `rater` cannot tell the R_c of a record.
pub fn convert_rated(
    mut reader: TraceReader,
    output: impl AsRef<Path>,
    options: &ConvertOptions,
    mut rater: Option<&mut dyn RateWrites>,
) -> Result<ConvertReport> {
    if !options.to.is_writable() {
        return Err(Error::Unwritable { format: options.to });
    }
    let path = output.as_ref();
    let out = OutputFile::create(path, options.existing)?;
    let failed = |source: io::Error| out.failed(source);
    let mut writer = Writer::new(options, out.handle()?).map_err(failed)?;
    let mut batch = Batch::default();
    let (mut ratios, mut records) = (Vec::new(), 0);
    let mut report = ConvertReport {
        from: reader.format(),
        to: options.to,
        read: ReadStats::default(),
        contents_dropped: 0,
        rated_writes: 0,
        ratios_dropped: 0,
        times_cut: 0,
    };
    while reader.next_batch(&mut batch)? {
        for mut record in batch.iter() {
            records += 1;
            if let Some(rater) = &mut rater {
                ratios.clear();
                rater
                    .rate(&record, &mut ratios)
                    .map_err(|why| Error::Unrated {
                        record: records,
                        why,
                    })?;
                record.delta_ratios = (record.op == Op::Write).then_some(&ratios);
            }
            writer
                .push(&record, &reader, &mut report)?
                .map_err(failed)?;
        }
    }
    writer.finish(&reader).map_err(failed)?;
    report.read = reader.stats().clone();
    out.complete()?;
    Ok(report)
}

/// Writes records in one format.
enum Writer {
    Text(TextWriter),
    Native(Box<NativeWriter<BufWriter<File>>>),
}

struct TextWriter {
    format: Format,
    write_line: WriteLine,
    drop_content: bool,
    file: BufWriter<File>,
    line: String,
    records: u64,
}

/// Appends the lines of a record at an absolute time; `Err` says what the format lacks.
type WriteLine =
    Box<dyn FnMut(&mut String, u64, &Record<'_>, &TraceReader) -> std::result::Result<(), String>>;

/// The writer of a text format; formats that are binary or only read have none.
fn line_writer(format: Format) -> Option<WriteLine> {
    Some(match format {
        Format::Fiu => Box::new(|out, time_ns, record, reader| {
            fiu::write(out, time_ns, record, |id| reader.digest(id))
        }),
        Format::Msr => Box::new(|out, time_ns, record, reader| {
            msr::write(out, time_ns, record, reader.device_names())
        }),
        Format::Spc => Box::new(|out, time_ns, record, _| spc::write(out, time_ns, record)),
        Format::Disksim => Box::new(|out, time_ns, record, _| disksim::write(out, time_ns, record)),
        Format::Ssdsim => Box::new(|out, time_ns, record, _| ssdsim::write(out, time_ns, record)),
        Format::Blkparse(None | Some(Action::Queued)) => {
            let mut number = 0;
            Box::new(move |out, time_ns, record, _| {
                number += 1;
                blkparse::write(out, number, time_ns, record)
            })
        }
        Format::Fio => {
            let mut log = fio::FioWriter::default();
            Box::new(move |out, time_ns, record, reader| {
                log.write(out, time_ns, record, reader.device_names());
                Ok(())
            })
        }
        Format::Blkparse(Some(_))
        | Format::Alibaba
        | Format::Tencent
        | Format::Systor
        | Format::Cloudphysics
        | Format::Vscsi
        | Format::Native
        | Format::Made => return None,
    })
}

/// Nanoseconds of one tick of a format's clock.
fn tick_ns(format: Format) -> u64 {
    match format {
        Format::Msr => msr::TICK_NS,
        Format::Fio => fio::TICK_NS,
        _ => 1,
    }
}

impl Writer {
    fn new(options: &ConvertOptions, file: File) -> io::Result<Self> {
        let file = BufWriter::with_capacity(BUFFER_BYTES, file);
        let Some(write_line) = line_writer(options.to) else {
            return Ok(Writer::Native(Box::new(NativeWriter::new(file)?)));
        };
        Ok(Writer::Text(TextWriter {
            format: options.to,
            write_line,
            drop_content: options.drop_content,
            file,
            line: String::new(),
            records: 0,
        }))
    }

    /// Writes a record and counts what it loses. The outer error is the record's, the inner one the
    /// file's.
    fn push(
        &mut self,
        record: &Record<'_>,
        reader: &TraceReader,
        report: &mut ConvertReport,
    ) -> Result<io::Result<()>> {
        match self {
            Writer::Native(native) => {
                report.rated_writes += record.delta_ratios.map_or(0, <[u16]>::len) as u64;
                Ok(native.push(record))
            }
            Writer::Text(text) => text.push(record, reader, report),
        }
    }

    fn finish(self, reader: &TraceReader) -> io::Result<()> {
        match self {
            Writer::Text(mut text) => text.file.flush(),
            Writer::Native(native) => native
                .finish(reader.device_names(), reader.origin_ns())?
                .flush(),
        }
    }
}

impl TextWriter {
    fn push(
        &mut self,
        record: &Record<'_>,
        reader: &TraceReader,
        report: &mut ConvertReport,
    ) -> Result<io::Result<()>> {
        self.records += 1;
        self.line.clear();
        self.append(record, reader, report)
            .map_err(|why| Error::Unrepresentable {
                record: self.records,
                format: self.format,
                why,
            })?;
        Ok(self.file.write_all(self.line.as_bytes()))
    }

    fn append(
        &mut self,
        record: &Record<'_>,
        reader: &TraceReader,
        report: &mut ConvertReport,
    ) -> std::result::Result<(), String> {
        let time_ns = reader
            .origin_ns()
            .checked_add(record.time_ns)
            .ok_or("its absolute time is not below 2^64 nanoseconds")?;
        let placeless = [
            (
                self.format != Format::Fiu && record.content.is_some(),
                "content",
                &mut report.contents_dropped,
            ),
            (
                record.delta_ratios.is_some(),
                "delta ratios",
                &mut report.ratios_dropped,
            ),
        ];
        for (_, what, dropped) in placeless.into_iter().filter(|(is_there, ..)| *is_there) {
            if !self.drop_content {
                return Err(format!(
                    "it carries {what}, which the format has no place for; ask to drop the content \
                     if it is not wanted"
                ));
            }
            *dropped += 1;
        }
        report.times_cut += u64::from(!time_ns.is_multiple_of(tick_ns(self.format)));
        (self.write_line)(&mut self.line, time_ns, record, reader)
    }
}
