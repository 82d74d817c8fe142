//! `completions` and `man`: the definition of the command line for shells and for `man`.

use std::path::Path;

use clap::CommandFactory;
use clap_complete::Shell;
use clap_mangen::Man;
use flashlore_trace::output::write_into;

use crate::cli::{Cli, CompletionShell, CompletionsArgs, ManArgs};
use crate::error::CliError;
use crate::output::print;

pub fn completions(args: &CompletionsArgs) -> Result<(), CliError> {
    let shell = match args.shell {
        CompletionShell::Bash => Shell::Bash,
        CompletionShell::Zsh => Shell::Zsh,
        CompletionShell::Fish => Shell::Fish,
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "flashlore", &mut script);
    print(&String::from_utf8_lossy(&script))
}

/// Writes a page for each command into a directory, or prints that of the program.
pub fn man(args: &ManArgs) -> Result<(), CliError> {
    // The command `help` says what the pages say.
    let command = Cli::command().disable_help_subcommand(true);
    let Some(directory) = &args.directory else {
        let mut page = Vec::new();
        let rendered = Man::new(command).render(&mut page);
        rendered.map_err(CliError::Output)?;
        return print(&String::from_utf8_lossy(&page));
    };
    let pages = |directory: &Path| clap_mangen::generate_to(command, directory);
    Ok(write_into(directory, pages)?)
}
