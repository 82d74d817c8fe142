//! `flashlore trace characterize`.

use std::path::{Path, PathBuf};

use flashlore_characterize::{
    CHARACTERISTICS_FILES, Characteristics, Options, PageSource, write_dir,
};
use flashlore_trace::{ContentModel, DeltaModel, Existing, Join, Pages, WorkloadOptions};

use crate::bytes::pages_of;
use crate::characterizing::characterized;
use crate::cli::CharacterizeArgs;
use crate::error::CliError;
use crate::input::open;
use crate::output::{print, print_json};
use crate::progress::Progress;

pub fn characterize(args: &CharacterizeArgs) -> Result<(), CliError> {
    let options = options(args);
    options.check()?;
    let groups: Vec<&[PathBuf]> = match args.join {
        Some(_) => vec![&args.traces],
        None => args.traces.chunks(1).collect(),
    };
    refuse_contradictions(args, groups.len())?;
    let existing = Existing::from(args.force);
    if let Some(dir) = &args.out {
        existing.check_set(dir, CHARACTERISTICS_FILES)?;
    }
    let workload = workload_options(args);
    let progress = Progress::phase("reading the trace");
    let found = groups
        .into_iter()
        .map(|paths| one(paths, args, &options, &workload))
        .collect::<Result<Vec<_>, CliError>>()?;
    drop(progress);
    if let (Some(dir), [found]) = (&args.out, &found[..]) {
        write_dir(dir, found, existing)?;
    }
    if args.json {
        return print_json(&found);
    }
    let texts: Vec<String> = found.iter().map(Characteristics::to_string).collect();
    print(&texts.join("\n\n"))
}

fn options(args: &CharacterizeArgs) -> Options {
    let default = Options::default();
    Options {
        slice_ns: args.slice.map(|slice| slice.0),
        sample_rate: args.sample.map_or(default.sample_rate, |share| share.get()),
        capacities: args.capacity.iter().map(|size| size.0).collect(),
        ..default
    }
}

fn workload_options(args: &CharacterizeArgs) -> WorkloadOptions {
    WorkloadOptions {
        read: args.read.options(),
        join: args.join.map_or(Join::Sequence, Join::from),
        devices: args.device.clone(),
        delta: args.delta.or(Some(DeltaModel::FromTrace)),
        ..WorkloadOptions::new(args.content.clone())
    }
}

fn refuse_contradictions(args: &CharacterizeArgs, results: usize) -> Result<(), CliError> {
    let refuse = |why: &str| Err(CliError::Usage(why.to_string()));
    if results > 1 && args.out.is_some() {
        return refuse("--out holds the result of one trace; name one, or say --join");
    }
    if results > 1 && args.pages.is_some() {
        return refuse("--pages belongs to one trace; name one");
    }
    if args.pages.is_some() && args.content != ContentModel::FromTrace {
        return refuse("--pages are those of the trace's own content; leave out --content");
    }
    Ok(())
}

/// Looks at traces that are one.
fn one(
    paths: &[PathBuf],
    args: &CharacterizeArgs,
    options: &Options,
    workload: &WorkloadOptions,
) -> Result<Characteristics, CliError> {
    let pages = match (&args.pages, paths) {
        (Some(file), [trace]) => Some(open_pages(file, trace, args)?),
        _ => None,
    };
    let source = pages.as_ref().map(|pages| pages as &dyn PageSource);
    let readers = paths
        .iter()
        .map(|path| open(path, &workload.read))
        .collect::<Result<Vec<_>, CliError>>()?;
    characterized(readers, options, workload, source, args.delta)
}

/// Reads a file of pages and demands that it belongs to the trace.
fn open_pages(file: &Path, trace: &Path, args: &CharacterizeArgs) -> Result<Pages, CliError> {
    if trace == Path::new("-") {
        return Err(CliError::Usage(
            "--pages reads the trace twice, which standard input does not allow; name a file"
                .to_string(),
        ));
    }
    let read = args.read.options();
    pages_of(file, trace, &read, args.pages_memory.0)
}
