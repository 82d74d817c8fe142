//! `flashlore trace synth` and `flashlore trace profiles`.

use std::path::Path;

use flashlore_synth::presets::PRESETS;
use flashlore_synth::{Definition, ProfileSource, SynthOptions, profile_hash, write_pages};
use flashlore_trace::convert::convert_reader;
use flashlore_trace::{ConvertOptions, ConvertReport, Existing, Format, ReadOptions};
use serde_json::json;

use super::trace::{notes, output_format};
use crate::cli::{ProfilesArgs, SynthArgs};
use crate::error::CliError;
use crate::input::same_file;
use crate::output::{print, print_json};
use crate::progress::Progress;

pub fn synth(args: &SynthArgs) -> Result<(), CliError> {
    let to = output_format(&args.output, args.to)?;
    if same_file(Path::new(&args.profile), &args.output) {
        return Err(CliError::Usage(format!(
            "{} is both profile and output; name another file for the output",
            args.profile
        )));
    }
    let options = SynthOptions {
        scale: args.scale,
        requests: args.requests,
        seed: args.seed,
    };
    let source = ProfileSource::new(&args.profile, options)?;
    if let Some(pages) = &args.pages {
        check_pages(args, pages, &source, to)?;
    }
    let existing = Existing::from(args.force);
    for path in std::iter::once(&args.output).chain(&args.pages) {
        existing.check_file(path)?;
    }
    let convert = ConvertOptions {
        read: ReadOptions::default(),
        to,
        drop_content: args.drop_content,
        existing,
    };
    let progress = Progress::phase("writing the workload");
    // Both files are written before one of them has its name.
    let pages = match (
        &args.pages,
        args.pages.as_ref().and_then(|_| source.recipes()),
    ) {
        (Some(path), Some(recipes)) => Some((path, write_pages(&recipes, path, existing)?)),
        _ => None,
    };
    let report = convert_reader(source.open(), &args.output, &convert)?;
    let mut text = report_text(&source, &report, &args.output);
    if let Some((path, (pages, file))) = pages {
        file.complete()?;
        text.push_str(&format!("{pages} pages in {}\n", path.display()));
    }
    drop(progress);
    print(&text)
}

/// Refuses pages that the profile does not tell or that would not fit the trace.
fn check_pages(
    args: &SynthArgs,
    pages: &Path,
    source: &ProfileSource,
    to: Format,
) -> Result<(), CliError> {
    let refuse = |message: String| Err(CliError::Usage(message));
    let profile = source.definition.profile();
    if profile.is_none_or(|profile| profile.similarity.is_none()) {
        return refuse(format!(
            "the profile {} has no [similarity], which tells the bytes of pages; leave out --pages",
            args.profile
        ));
    }
    if to != Format::Native {
        return refuse(format!(
            "--pages goes with native output (.parquet): digests in {to} would not be those of the \
             pages"
        ));
    }
    if same_file(&args.output, pages)
        || args.output == pages
        || same_file(Path::new(&args.profile), pages)
    {
        return refuse(format!(
            "{} is to hold the pages and is profile or output too; name another file for the pages",
            pages.display()
        ));
    }
    Ok(())
}

fn report_text(source: &ProfileSource, report: &ConvertReport, output: &Path) -> String {
    let SynthOptions { scale, seed, .. } = source.options;
    format!(
        "profile {}, hash {}, scale {scale}, seed {seed}\n{} records as {} in {}\n{}",
        source.name,
        source.hash,
        report.read.records,
        report.to,
        output.display(),
        notes(report)
    )
}

pub fn profiles(args: &ProfilesArgs) -> Result<(), CliError> {
    let all = PRESETS
        .iter()
        .map(|preset| Ok((Definition::parse(preset.name, preset.text)?, preset.text)))
        .collect::<Result<Vec<_>, CliError>>()?;
    if args.json {
        let list: Vec<_> = all.iter().map(|(one, text)| entry(one, text)).collect();
        return print_json(&list);
    }
    let width = all.iter().map(|(one, _)| one.name().len()).max();
    let width = width.unwrap_or(0);
    let line = |(one, text): &(Definition, &str)| {
        let (name, description, source) = (one.name(), one.description(), one.source());
        let hash = profile_hash(text);
        format!("{name:width$}  {hash}  {description} [{source}]\n")
    };
    print(&all.iter().map(line).collect::<String>())
}

fn entry(definition: &Definition, text: &str) -> serde_json::Value {
    json!({
        "name": definition.name(),
        "hash": profile_hash(text),
        "description": definition.description(),
        "source": definition.source(),
        "requests": definition.requests(),
        "content": definition.has_content(),
    })
}
