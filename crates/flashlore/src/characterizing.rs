//! What is known about the locality of traces that are one.

use flashlore_characterize::{Characteristics, Characterizer, Options, PageSource};
use flashlore_trace::{DeltaModel, Error, TraceReader, WorkloadOptions, for_each_access};

use crate::error::CliError;

/// Looks at open traces, none of which has been read from. `asked` is the R_c that was asked for: that of the trace
/// must be there then.
///
/// # Errors
/// When a trace cannot be read or followed, or lacks what was asked for.
pub fn characterized(
    readers: Vec<TraceReader>,
    options: &Options,
    workload: &WorkloadOptions,
    pages: Option<&dyn PageSource>,
    asked: Option<DeltaModel>,
) -> Result<Characteristics, CliError> {
    let name = readers
        .first()
        .map_or(String::new(), |reader| reader.path().to_owned());
    let mut characterizer = Characterizer::with_pages(options.clone(), pages)?;
    let mut failure = None;
    let summary = for_each_access(readers, workload, |access| {
        characterizer.observe(access).map_err(|error| {
            let text = error.to_string();
            failure = Some(error);
            Error::Layout(text)
        })
    });
    if let Some(failure) = failure {
        return Err(failure.into());
    }
    // A trace that cannot be read says so, before one of its values is missed.
    let summary = summary?;
    let found = characterizer.finish();
    let given = found.whole.compressibility.as_ref();
    if asked == Some(DeltaModel::FromTrace) && given.is_none_or(|c| c.given.is_none()) {
        return Err(CliError::Usage(format!(
            "--delta trace: {name} has no R_c; `flashlore trace convert --delta` gives it to a trace"
        )));
    }
    Ok(found.with_summary(&summary, workload))
}
