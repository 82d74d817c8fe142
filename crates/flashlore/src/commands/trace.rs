//! `flashlore trace info` and `flashlore trace convert`.

use std::path::Path;

use flashlore_characterize::{ByteRater, Codec};
use flashlore_trace::convert::convert_rated;
use flashlore_trace::{
    ContentModel, ConvertOptions, ConvertReport, DeltaModel, Existing, Format, Info, RateWrites,
    WorkloadOptions,
};

use crate::bytes::Bytes;
use crate::cli::{ConvertArgs, InfoArgs, Rating};
use crate::error::CliError;
use crate::input::{open, same_file};
use crate::output::{print, print_json};
use crate::progress::Progress;

pub fn info(args: &InfoArgs) -> Result<(), CliError> {
    let progress = Progress::phase("reading the trace");
    let info = Info::from_reader(open(&args.trace, &args.read.options())?)?;
    drop(progress);
    match args.json {
        true => print_json(&info),
        false => print(&info.to_string()),
    }
}

pub fn convert(args: &ConvertArgs) -> Result<(), CliError> {
    let to = output_format(&args.output, args.to)?;
    if same_file(&args.input, &args.output) {
        return Err(CliError::Usage(format!(
            "{} is both input and output; name another file for the output",
            args.input.display()
        )));
    }
    let options = ConvertOptions {
        read: args.read.options(),
        to,
        drop_content: args.drop_content,
        existing: Existing::from(args.force),
    };
    let is_rated = !matches!(args.delta, Rating::Model(DeltaModel::FromTrace));
    if is_rated && to != Format::Native {
        return Err(CliError::Usage(format!(
            "--delta gives page writes an R_c, which {to} has no place for; expected native output"
        )));
    }
    options.existing.check_file(&args.output)?;
    let progress = Progress::phase("converting the trace");
    let report = match args.delta {
        Rating::Model(model) => {
            let mut rater = model.rater()?;
            convert_one(
                args,
                &options,
                rater.as_mut().map(|rater| &mut **rater as _),
            )
        }
        Rating::Bytes(codec) => convert_encoded(args, &options, codec),
    }?;
    drop(progress);
    print(&report_text(&report, &args.output))
}

fn convert_one(
    args: &ConvertArgs,
    options: &ConvertOptions,
    rater: Option<&mut dyn RateWrites>,
) -> Result<ConvertReport, CliError> {
    let reader = open(&args.input, &options.read)?;
    Ok(convert_rated(reader, &args.output, options, rater)?)
}

/// Converts with the R_c that the bytes of the pages have.
fn convert_encoded(
    args: &ConvertArgs,
    options: &ConvertOptions,
    codec: Codec,
) -> Result<ConvertReport, CliError> {
    let workload = WorkloadOptions {
        read: options.read,
        ..WorkloadOptions::new(ContentModel::FromTrace)
    };
    let bytes = Bytes::of(std::slice::from_ref(&args.input), &workload)?;
    let source = match &bytes {
        Bytes::Unknown(why) => {
            return Err(CliError::Usage(format!(
                "--delta codec encodes the bytes of pages, and {why}"
            )));
        }
        known => known.source(),
    };
    let mut rater = source.map(|source| ByteRater::new(source, codec));
    convert_one(args, options, rater.as_mut().map(|rater| rater as _))
}

/// The format of a trace to be written: as asked for, or as the ending of its name says.
///
/// # Errors
/// When neither tells one, or it is not written.
pub fn output_format(output: &Path, to: Option<Format>) -> Result<Format, CliError> {
    let ending = output.extension().and_then(|ending| ending.to_str());
    if let Some(packed @ ("gz" | "xz" | "zst")) = ending {
        return Err(CliError::Usage(format!(
            "{}: the output is written uncompressed, expected a name without .{packed}",
            output.display()
        )));
    }
    let format = match to {
        Some(format) => format,
        None => by_ending(output, ending)?,
    };
    if !format.is_writable() {
        return Err(CliError::Usage(format!(
            "traces are not written as {format}; expected one of {}",
            Format::list(&Format::WRITABLE)
        )));
    }
    Ok(format)
}

fn by_ending(output: &Path, ending: Option<&str>) -> Result<Format, CliError> {
    let by_ending = match ending {
        Some("parquet") => Some(Format::Native),
        Some(name) => name.parse().ok(),
        None => None,
    };
    by_ending.ok_or_else(|| {
        CliError::Usage(format!(
            "the name {} does not tell its format; say --to {}",
            output.display(),
            Format::list(&Format::WRITABLE)
        ))
    })
}

fn report_text(report: &ConvertReport, output: &Path) -> String {
    format!(
        "{} records from {} to {} in {}\n{}",
        report.read.records,
        report.from,
        report.to,
        output.display(),
        notes(report)
    )
}

/// What else there is to say about a trace that was written: a line for each.
pub fn notes(report: &ConvertReport) -> String {
    let notes = [
        ("malformed records skipped", report.read.skipped),
        ("records joined with the one before", report.read.coalesced),
        ("events that are no requests", report.read.passed_over),
        (
            "records out of order, raised to the time of the one before",
            report.read.clamped,
        ),
        ("records that lost their content", report.contents_dropped),
        ("records that lost their R_c", report.ratios_dropped),
        ("pages written with R_c", report.rated_writes),
        (
            "times cut to whole clock ticks of the format",
            report.times_cut,
        ),
    ];
    let there = notes.iter().filter(|(_, count)| *count > 0);
    there
        .map(|(what, count)| format!("{what}: {count}\n"))
        .collect()
}
