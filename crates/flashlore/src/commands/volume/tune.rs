//! `tune`: how an array works, changed while it runs.

use std::fmt::Write as _;

use flashlore_serve::{Answer, Request};

use super::{json, request, unexpected};
use crate::cli::TuneArgs;
use crate::error::CliError;
use crate::output::print;

pub fn tune(args: &TuneArgs) -> Result<(), CliError> {
    let asked = Request::Tune {
        pairs: args.values.clone(),
    };
    let answer = request(&args.volume, &asked)?;
    let Answer::Tuned { values } = &answer else {
        return Err(unexpected(&args.volume));
    };
    if args.json {
        return print(&json(&answer));
    }
    let mut text = String::new();
    for tuned in values {
        let set = format!("{}={}", tuned.key, tuned.value);
        // Writing to a text cannot fail.
        let _ = writeln!(text, "{set:<28} {}", tuned.about);
    }
    print(&text)
}
