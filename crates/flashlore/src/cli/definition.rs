//! Flags of `completions` and `man`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// A shell that completes commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CompletionShell {
    /// GNU bash
    Bash,
    /// Z shell
    Zsh,
    /// fish
    Fish,
}

/// Flags of `completions`.
#[derive(Args)]
#[command(after_help = "Examples:\n  \
                        flashlore completions bash > ~/.local/share/bash-completion/completions/flashlore\n  \
                        flashlore completions zsh > ~/.zfunc/_flashlore\n  \
                        flashlore completions fish > ~/.config/fish/completions/flashlore.fish")]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum, value_name = "SHELL")]
    pub shell: CompletionShell,
}

/// Flags of `man`.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  flashlore man | man -l -\n  flashlore man ~/.local/share/man/man1\n\n\
                        Pages of the same names in DIR are replaced."
)]
pub struct ManArgs {
    /// Write a page for each command into this directory, which is made if it is not there, instead of
    /// printing that of the program
    #[arg(value_name = "DIR")]
    pub directory: Option<PathBuf>,
}
