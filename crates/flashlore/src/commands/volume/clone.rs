//! `clone`: a machine of an array, filled with what another one holds, or with an image that is compared with it.

use std::path::PathBuf;

use flashlore_serve::{Answer, Request};

use super::{human, json, request, unexpected};
use crate::cli::CloneArgs;
use crate::error::CliError;
use crate::output::{print, tell};

pub fn clone(args: &CloneArgs) -> Result<(), CliError> {
    let absolute = |path: &PathBuf| std::path::absolute(path).map_err(CliError::file("find", path));
    let asked = Request::Clone {
        native: args.native,
        machine: args.machine,
        // Whoever serves the array may be in another directory.
        image: args.image.as_ref().map(absolute).transpose()?,
        overwrite: args.overwrite,
    };
    let answer = request(&args.volume, &asked)?;
    let Answer::Cloned {
        zeros,
        deltas,
        delta_bytes,
        compressed,
        compressed_bytes,
        whole,
    } = answer
    else {
        return Err(unexpected(&args.volume));
    };
    if args.json {
        return print(&json(&answer));
    }
    let mean = delta_bytes as f64 / deltas.max(1) as f64;
    tell(&format!(
        "machine {}: {deltas} blocks are deltas, {mean:.1} bytes each on average ({} in all); {compressed} are \
         compressed ({} in all), {whole} are whole, {zeros} are zeros",
        args.machine,
        human(delta_bytes),
        human(compressed_bytes),
    ));
    Ok(())
}
