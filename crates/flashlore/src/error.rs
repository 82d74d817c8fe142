//! What ends a command early, as a sentence and an exit code.

use std::io;
use std::path::PathBuf;

use flashlore_array::ArrayError;
use flashlore_characterize::CharacterizeError;
use flashlore_papers::PaperError;
use flashlore_sim::config::ConfigError;
use flashlore_sim::engine::RunError;
use flashlore_sim::results::ResultsError;
use flashlore_synth::ProfileError;
use flashlore_trace::OutputError;

#[derive(Debug, thiserror::Error)]
pub enum CliError {
    /// Flags that contradict each other, or mean nothing.
    #[error("{0}")]
    Usage(String),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Paper(#[from] PaperError),
    #[error(transparent)]
    Trace(#[from] flashlore_trace::Error),
    #[error(transparent)]
    Characterize(#[from] CharacterizeError),
    #[error(transparent)]
    Profile(#[from] ProfileError),
    #[error("{trace} on system {system}: {source}")]
    Run {
        trace: String,
        system: String,
        source: Box<RunError>,
    },
    #[error(transparent)]
    Results(#[from] ResultsError),
    #[error("cannot {action} {}: {source}", path.display())]
    File {
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("{}: {source}", directory.display())]
    Volume {
        directory: PathBuf,
        source: flashlore_serve::ServeError,
    },
    /// A recording that cannot begin or be completed; it names its file.
    #[error(transparent)]
    Recording(flashlore_serve::ServeError),
    #[error(transparent)]
    Mount(#[from] flashlore_fuse::MountError),
    /// A file or directory that holds something already, or cannot be written.
    #[error(transparent)]
    Place(#[from] OutputError),
    #[error("cannot write the output: {0}")]
    Output(io::Error),
    /// What the Python package refused, or that there is none.
    #[error("{0}")]
    Python(String),
    /// Some of several things that were to be done; a line for each.
    #[error("{0}")]
    Failed(String),
    /// A repetition that does not repeat.
    #[error("{0}")]
    Differs(String),
}

impl CliError {
    /// An error of a file or directory with which something was to be done.
    pub fn file<'a>(
        action: &'static str,
        path: &'a std::path::Path,
    ) -> impl Fn(io::Error) -> Self + 'a {
        move |source| Self::File {
            action,
            path: path.to_path_buf(),
            source,
        }
    }

    /// An error of the volume in a directory.
    pub fn serve(directory: &std::path::Path, source: flashlore_serve::ServeError) -> Self {
        Self::Volume {
            directory: directory.to_path_buf(),
            source,
        }
    }

    /// Prints the message, if there is anybody to read it, and gives the exit status.
    pub fn report(&self) -> u8 {
        if let Self::Output(source) = self
            && source.kind() == io::ErrorKind::BrokenPipe
        {
            return 0;
        }
        use io::Write;
        // Without standard error there is nobody to tell.
        let _ = writeln!(io::stderr(), "error: {self}");
        self.code()
    }

    /// 2 where other flags or settings would help, 1 where something failed.
    pub fn code(&self) -> u8 {
        match self {
            Self::Profile(ProfileError::Io { .. }) | Self::Config(ConfigError::Read { .. }) => 1,
            Self::Usage(_) | Self::Config(_) | Self::Profile(_) => 2,
            Self::Paper(
                PaperError::Unknown { .. }
                | PaperError::UnknownFigure { .. }
                | PaperError::NoQuick { .. }
                | PaperError::Scale { .. },
            ) => 2,
            Self::Trace(flashlore_trace::Error::Layout(_)) => 2,
            Self::Place(error) | Self::Trace(flashlore_trace::Error::Output(error))
                if error.is_usage() =>
            {
                2
            }
            Self::Characterize(_) => 2,
            Self::Run { source, .. } => match **source {
                RunError::Config(_)
                | RunError::Geometry { .. }
                | RunError::Options { .. }
                | RunError::TooSmall { .. }
                | RunError::NoContent { .. }
                | RunError::NoBytes { .. }
                | RunError::WritesWithoutContent { .. }
                | RunError::UnknownBytes { .. }
                | RunError::NoRatios { .. }
                | RunError::AllWarmup { .. }
                | RunError::OutOfBand { .. }
                | RunError::MapOfParities { .. }
                | RunError::Array(ArrayError::Shape(_))
                | RunError::Disks(_)
                | RunError::SmallSsd { .. }
                | RunError::Memory { .. }
                | RunError::CountsApart { .. } => 2,
                RunError::Interrupted
                | RunError::Trace(_)
                | RunError::Array(_)
                | RunError::OfArray { .. }
                | RunError::Timed(_)
                | RunError::WrongContent { .. }
                | RunError::Log { .. }
                | RunError::Prepare { .. }
                | RunError::Recovery { .. }
                | RunError::WornOut { .. }
                | RunError::Request { .. } => 1,
            },
            Self::Volume { source, .. } | Self::Recording(source) if source.is_usage() => 2,
            Self::Trace(_)
            | Self::Paper(_)
            | Self::Results(_)
            | Self::File { .. }
            | Self::Volume { .. }
            | Self::Recording(_)
            | Self::Mount(_)
            | Self::Place(_)
            | Self::Output(_)
            | Self::Python(_)
            | Self::Failed(_)
            | Self::Differs(_) => 1,
        }
    }
}
